"""A task that searches row patterns sorts what comes to it in any order, and finds what the oracle finds."""

from __future__ import annotations

from random import Random

import pyarrow as pa

from spark_pace.core.plan.row_pattern import output_columns
from spark_pace.errors import ConfigError
from spark_pace.rules.row_patterns.meaning import plan_of
from spark_pace.rules.row_patterns.queries import occurrences_in
from spark_pace.rules.row_patterns.words import read_query
from spark_pace.spark.row_patterns import searching
from tests.support.row_pattern_cases import SKIPPED, trial_of


def rows_of_a_task(sql: str, table: pa.Table, random: Random) -> list[dict[str, object]]:
    """The rows that a task finds to which Spark hands all rows of the table in any order, a few at a time."""
    query = read_query(sql, "query", "spark")
    plan = plan_of(query, occurrences_in(query)[0].clause, table.schema)
    placed = table.append_column("place", pa.array(range(table.num_rows), pa.int64()))
    mixed = placed.take(pa.array(random.sample(range(table.num_rows), table.num_rows), pa.int64()))
    batches = mixed.to_batches(max_chunksize=random.randint(1, 9))
    found = list(searching(plan, tuple(table.column_names))(iter(batches)))
    if not found:
        return []
    answer = pa.Table.from_batches(found)
    names = [name for name, _ in output_columns(plan, tuple(table.column_names))]
    types = [pa.int64() if pa.types.is_timestamp(field.type) else field.type for field in answer.schema]
    plain = answer.rename_columns(names).cast(pa.schema(zip(names, types, strict=True)))
    return plain.to_pylist()  # type: ignore[no-any-return]


def test_random_clauses_give_the_rows_of_the_oracle() -> None:
    found = 0
    for seed in range(300):
        trial = trial_of(Random(seed))
        try:
            rows = rows_of_a_task(trial.sql, trial.table, Random(seed))
        except ConfigError as error:
            assert SKIPPED in str(error)
            assert trial.expected() == SKIPPED
            continue
        assert rows == trial.found(), trial.sql
        found += len(rows)
    assert found > 500


def test_rows_that_are_equal_in_order_by_stay_in_the_order_of_the_input() -> None:
    table = pa.table({"t": [1, 1, 0] * 40, "number": range(120)})
    sql = "SELECT * FROM r MATCH_RECOGNIZE (ORDER BY t DESC MEASURES number AS n PATTERN (A))"
    rows = [row["n"] for row in rows_of_a_task(sql, table, Random(1))]
    assert rows == sorted(range(120), key=lambda number: (number % 3 == 2, number))


def test_no_rows_give_none() -> None:
    table = pa.table({"x": pa.array([], pa.int64())})
    assert rows_of_a_task("SELECT * FROM r MATCH_RECOGNIZE (PATTERN (A))", table, Random(1)) == []
