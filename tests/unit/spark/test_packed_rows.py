"""Partitions that many tasks pack are searched as if all rows were sorted at once, however these are cut."""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from spark_pace.core.match.row_patterns.result import result_of
from spark_pace.errors import ConfigError
from spark_pace.rules.row_patterns.meaning import plan_of
from spark_pace.rules.row_patterns.queries import occurrences_in
from spark_pace.rules.row_patterns.words import read_query
from spark_pace.spark import row_patterns
from spark_pace.spark.row_patterns import PLACES, packed, unpacked
from tests.support.row_pattern_cases import SKIPPED, Trial, found_rows, many_rows, trial_of

WHOLE = ("PARTITION BY k ", "")


def trial_of_one_partition(random: Random) -> Trial:
    """A random trial whose clause has no PARTITION BY."""
    trial = trial_of(random)
    rows = trial.partitions[0]
    shuffled = pa.Table.from_pylist(random.sample(rows, len(rows)), trial.table.schema)
    return replace(trial, partitions=[rows], sql=trial.sql.replace(*WHOLE), table=shuffled)


def rows_of_tasks(sql: str, table: pa.Table, random: Random, buckets: int = 1) -> list[dict[str, object]]:
    """The rows of the result where several tasks read parts of the table, some of them no row."""
    query = read_query(sql, "query", "spark")
    plan = plan_of(query, occurrences_in(query)[0].clause, table.schema)
    cuts = sorted(random.choices(range(table.num_rows + 1), k=random.randint(0, 4)))
    pieces = []
    for task, (start, end) in enumerate(zip([0, *cuts], [*cuts, table.num_rows], strict=True)):
        batches = table.slice(start, end - start).to_batches(max_chunksize=random.randint(1, 9))
        pieces += packed(plan, tuple(table.column_names), buckets, task, iter(batches))
    together = pa.Table.from_batches(random.sample(pieces, len(pieces)))
    in_order = together.sort_by([(name, "ascending") for name in PLACES])
    batches = in_order.to_batches(max_chunksize=random.randint(1, 9))
    answer = pa.concat_tables(result_of(plan, rows) for rows in unpacked(plan, iter(batches)))
    types = [pa.int64() if pa.types.is_timestamp(field.type) else field.type for field in answer.schema]
    return answer.cast(pa.schema(zip(answer.column_names, types, strict=True))).to_pylist()  # type: ignore[no-any-return]


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_patterns, "FRAME_BYTES", 300)
    monkeypatch.setattr(row_patterns, "PIECE_BYTES", 700)
    monkeypatch.setattr(row_patterns, "AT_ONCE_ROWS", 20)


def test_random_clauses_give_the_rows_of_the_oracle_however_their_input_is_cut() -> None:
    found = 0
    for seed in range(400):
        trial = trial_of_one_partition(Random(seed))
        expected = trial.expected()
        try:
            rows = rows_of_tasks(trial.sql, trial.table, Random(seed))
        except ConfigError as error:
            assert SKIPPED in str(error)
            assert expected == SKIPPED
            continue
        assert isinstance(expected, list)
        assert rows == [
            {name: cell for name, cell in row.items() if name != "@partition"} for row in expected
        ], trial.sql
        found += len(rows)
    assert found > 500


def test_matches_across_many_frames_are_found() -> None:
    """Hundreds of rows in frames of a few, with matches that are longer than these."""
    longest = 0
    for seed in range(40):
        random = Random(seed)
        table = many_rows(random)
        sql = (
            trial_of(random, plain=True).sql.replace(*WHOLE).replace("MEASURES ", "MEASURES COUNT(*) AS n, ")
        )
        try:
            whole = found_rows(sql, table)
        except ConfigError as error:
            assert SKIPPED in str(error)
            continue
        assert rows_of_tasks(sql, table, random) == whole, sql
        longest = max(longest, 0, *(row["n"] or 0 for row in whole))
    assert longest > 25


def test_rows_that_are_equal_in_order_by_stay_in_the_order_of_the_input() -> None:
    table = pa.table({"t": [1, 1, 0] * 40, "number": range(120)})
    sql = "SELECT * FROM r MATCH_RECOGNIZE (ORDER BY t DESC MEASURES number AS n PATTERN (A))"
    rows = [row["n"] for row in rows_of_tasks(sql, table, Random(1))]
    assert rows == sorted(range(120), key=lambda number: (number % 3 == 2, number))


@pytest.mark.parametrize("buckets", [2, 7])
def test_partitions_in_buckets_are_searched_whole(buckets: int) -> None:
    """Each row comes once, however few buckets there are; only the order of partitions is another."""
    found = 0
    for seed in range(150):
        trial = trial_of(Random(seed))
        expected = trial.found()
        try:
            rows = rows_of_tasks(trial.sql, trial.table, Random(seed), buckets)
        except ConfigError as error:
            assert SKIPPED in str(error)
            assert expected == SKIPPED
            continue
        assert isinstance(expected, list)
        assert sorted(rows, key=repr) == sorted(expected, key=repr), trial.sql
        found += len(rows)
    assert found > 200


def test_keys_that_are_equal_meet_in_one_bucket() -> None:
    """0.0 and -0.0, what is not a number, and null, wherever they stand."""
    keys = pa.array([0.0, -0.0, math.nan, -math.nan, None, None, 1.5, 1.5])
    table = pa.table({"k": keys, "text": ["a", "a", "", "", None, None, "b", "b"], "i": range(8)})
    clause = "PARTITION BY k, text ORDER BY i MEASURES COUNT(*) AS n PATTERN (a+)"
    for seed in range(20):
        rows = rows_of_tasks(
            f"SELECT * FROM r MATCH_RECOGNIZE ({clause})", table, Random(seed), buckets=1_000
        )
        assert [row["n"] for row in rows] == [2, 2, 2, 2]


def test_a_task_searches_some_buckets_at_a_time_and_partitions_whole() -> None:
    table = pa.table({"k": np.arange(900) // 30, "i": range(900)})
    query = read_query("SELECT * FROM r MATCH_RECOGNIZE (PARTITION BY k PATTERN (A))", "query", "spark")
    plan = plan_of(query, occurrences_in(query)[0].clause, table.schema)
    pieces = packed(plan, ("k", "i"), 10, 0, iter(table.to_batches()))
    parts = [part["k"].to_pylist() for part in unpacked(plan, pieces)]
    assert len(parts) > 5
    assert sorted(key for part in parts for key in {*part}) == list(range(30))
    assert all(part == sorted(part) for part in parts)


def test_no_rows_give_none() -> None:
    query = read_query("SELECT * FROM r MATCH_RECOGNIZE (PATTERN (A))", "query", "spark")
    plan = plan_of(query, occurrences_in(query)[0].clause, pa.schema([("x", pa.int64())]))
    empty = pa.RecordBatch.from_pydict({"x": pa.array([], pa.int64())})
    assert list(packed(plan, ("x",), 1, 0, iter([empty]))) == []
    assert list(unpacked(plan, iter([]))) == []
