"""The rows of random clauses of MATCH_RECOGNIZE are those of plain backtracking."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from spark_pace import ways
from spark_pace.core.expr import ARROW_TYPES, Call, Column, Expr, Literal, evaluate, walk
from spark_pace.core.match.row_patterns import search as search_module
from spark_pace.core.match.row_patterns.match_programs import plain, so_far_of
from spark_pace.core.match.row_patterns.result import find
from spark_pace.core.match.row_patterns.rows import Rows, SlotColumns
from spark_pace.core.plan.row_pattern import RowPattern, slot_name
from spark_pace.errors import ConfigError
from spark_pace.rules.row_patterns.meaning import plan_of
from spark_pace.rules.row_patterns.queries import occurrences_in
from spark_pace.rules.row_patterns.words import read_query
from tests.support.odd_rows import rows_with_odd_values
from tests.support.row_pattern_cases import (
    SKIPPED,
    computed_outside,
    difference,
    found_rows,
    many_rows,
    reading_the_match,
    trial_of,
)
from tests.support.row_pattern_streams import expected_rows, stream_difference, stream_trial

LONG = pytest.mark.long
SOME_CHUNKS = [1, *(pytest.param(chunk, marks=LONG) for chunk in (0, 2, 3))]


@pytest.mark.parametrize("chunk", [*range(4), *(pytest.param(chunk, marks=LONG) for chunk in range(4, 10))])
def test_random_clauses_give_the_rows_of_the_oracle(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ways, "FEW_NUMBERS", -1)
    assert [found for seed in range(chunk * 100, chunk * 100 + 100) if (found := difference(seed))] == []


@pytest.mark.parametrize("chunk", SOME_CHUNKS)
def test_over_streams_random_clauses_give_the_same_however_they_are_cut(chunk: int) -> None:
    """With the state saved and restored between all batches, and compared with the oracle."""
    seeds = range(chunk * 50, chunk * 50 + 50)
    assert [found for seed in seeds if (found := stream_difference(seed))] == []


def test_arrays_grow_where_a_search_needs_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_module, "_FIRST_ROOM", 1)
    assert [found for seed in range(3000, 3200) if (found := difference(seed))] == []


@pytest.mark.parametrize("seeds", [range(25), pytest.param(range(25, 100), marks=LONG)], ids=["few", "many"])
def test_all_searches_find_the_same_in_many_rows(monkeypatch: pytest.MonkeyPatch, seeds: range) -> None:
    """With conditions that are known, tested by machine code, and computed outside of it."""
    monkeypatch.setattr(ways, "FEW_NUMBERS", -1)
    rows = 0
    for seed in seeds:
        random = Random(seed)
        trial, table = trial_of(random, plain=True), many_rows(random)
        try:
            slow = found_rows(computed_outside(trial.sql), table)
            tested = found_rows(reading_the_match(trial.sql), table)
        except ConfigError as error:  # too many steps, or a match cannot be skipped
            assert "steps" in str(error) or SKIPPED in str(error)
            continue
        assert found_rows(trial.sql, table) == tested == slow, trial.sql
        rows += len(slow)
    assert rows > 100 * len(seeds)


@pytest.mark.parametrize("chunk", SOME_CHUNKS)
def test_programs_hold_where_conditions_computed_outside_do(
    chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of numbers that overflow, are not exact, are no numbers, or are far apart."""
    monkeypatch.setattr(ways, "FEW_NUMBERS", -1)
    compared = 0
    for seed in range(chunk * 50, chunk * 50 + 50):
        random = Random(seed)
        trial, table = trial_of(random, plain=False), rows_with_odd_values(random)
        try:
            slow = found_rows(computed_outside(trial.sql), table)
        except ConfigError as error:
            with pytest.raises(ConfigError, match=re.escape(str(error))):
                found_rows(trial.sql, table)
            continue
        assert repr(found_rows(trial.sql, table)) == repr(slow), f"seed {seed}: {trial.sql}"
        compared += len(slow) > 0
    assert compared > 12


def _plan(define: str, table: pa.Table) -> RowPattern:
    sql = f"SELECT * FROM rows MATCH_RECOGNIZE (ORDER BY i MEASURES COUNT(*) AS c PATTERN (A+) {define})"
    query = read_query(sql, "query", "spark")
    (one,) = occurrences_in(query)
    return plan_of(query, one.clause, table.schema)


def _longest(define: str, table: pa.Table) -> int:
    """How many rows the first match has, whose conditions machine code tests."""
    plan, rows = _plan(define, table), Rows(table, np.array([0, table.num_rows]))
    assert not so_far_of(plan, rows).outside.any()
    return int(find(plan, rows).length[0])


@pytest.mark.parametrize("spread", [1, 8, 20])
def test_running_sums_are_exact_and_rounded_once(spread: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ways, "FEW_NUMBERS", -1)
    for seed in range(20):
        random = Random(seed)
        y = [random.choice([1, -1]) * 10 ** random.uniform(-spread, spread) for _ in range(60)]
        y += [-sum(map(Fraction, y)).__float__(), *(-one for one in y[::-1])]
        sums = [math.fsum(y[: end + 1]) for end in range(len(y))]
        table = pa.table({"i": range(len(y)), "y": y, "s": sums})
        define = "DEFINE A AS SUM(A.y) = s AND AVG(A.y) = s / COUNT(*)"
        assert _longest(define, table) == len(y), seed


@pytest.mark.parametrize("digits", [9, 28, 29, 38])
def test_sums_of_decimals_so_far_are_exact_and_null_above_38_digits(digits: int) -> None:
    random = Random(digits)
    d = [random.choice([1, 1, 1, -1]) * (10**digits - 1 - random.randrange(99)) for _ in range(60)]
    sums = [sum(d[: end + 1]) for end in range(len(d))]
    known = [one if abs(one) < 10 ** min(digits + 10, 38) else None for one in sums]
    of_d, of_s = pa.decimal128(digits, 0), pa.decimal128(38, 0)
    as_decimals = [[None if one is None else Decimal(one) for one in column] for column in (d, known)]
    columns = [pa.array(range(len(d))), pa.array(as_decimals[0], of_d), pa.array(as_decimals[1], of_s)]
    table = pa.table(columns, ["i", "d", "s"])
    plan, rows = _plan("DEFINE A AS SUM(A.d) <=> s", table), Rows(table, np.array([0, len(d)]))
    assert so_far_of(plan, rows).outside.tolist() == [True]
    assert int(find(plan, rows).length[0]) == len(d)
    assert (None in known) == (digits == 38)


def test_running_sums_of_whole_numbers_are_null_only_while_they_overflow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ways, "FEW_NUMBERS", -1)
    for seed in range(20):
        random = Random(seed)
        x = [random.choice([1, -1]) * random.getrandbits(random.choice([5, 40, 63])) for _ in range(80)]
        sums = [sum(x[: end + 1]) for end in range(len(x))]
        known = [one if -(1 << 63) <= one < 1 << 63 else None for one in sums]
        means = [float(one) / (place + 1) for place, one in enumerate(sums)]
        table = pa.table({"i": range(len(x)), "x": x, "s": pa.array(known, pa.int64()), "m": means})
        assert _longest("DEFINE A AS SUM(A.x) <=> s AND AVG(A.x) = m", table) == len(x), seed


@pytest.mark.parametrize(
    "define",
    [
        "SUM(CAST(i AS DECIMAL(9, 0))) > 3",
        "concat(FIRST(k), LAST(k)) <> 'ab'",
        "SUM(y) > 3",  # of numbers far apart
        " + ".join(["coalesce(FIRST(i), LAST(i))"] * 20) + " > 1",  # a million conditions of single values
    ],
)
def test_what_is_computed_outside(define: str) -> None:
    table = pa.table({"i": [1, 2], "k": ["a", "b"], "y": [1e-300, 1e300]})
    found = so_far_of(_plan(f"DEFINE A AS {define} AND COUNT(*) > 0", table), Rows(table, np.array([0, 2])))
    assert found.outside.tolist() == [True, False]


def test_long_lists_are_tested_by_machine_code() -> None:
    table = pa.table({"i": [1, 2]})
    listed = ",".join(map(str, range(1_500)))
    plan = _plan(f"DEFINE A AS i + FIRST(i) IN ({listed})", table)
    assert not so_far_of(plan, Rows(table, np.array([0, 2]))).outside.any()
    plan = _plan(f"DEFINE A AS greatest(i, FIRST(i)) > 9 OR i IN ({listed})", table)
    assert so_far_of(plan, Rows(table, np.array([0, 2]))).outside.any()


def test_random_clauses_find_something() -> None:
    found = [trial_of(Random(seed)).expected() for seed in range(300)]
    assert sum(isinstance(one, list) and len(one) > 0 for one in found) > 100


def test_random_clauses_find_something_over_streams() -> None:
    trials = [stream_trial(Random(seed)) for seed in range(200)]
    assert sum(bool(expected_rows(trial)) for trial in trials) > 80
    assert {trial.rule.forget_key_after_us is not None for trial in trials} == {True, False}


NUMBERS = [None, 0, 1, -3, 2**63 - 1, -(2**63), 7]
DOUBLES = [None, 0.0, -0.0, 1.5, -2.25, float("nan"), float("inf"), float("-inf"), 1e308, 5e-324]


def random_expression(random: Random, kind: str, depth: int) -> Expr:
    """An expression over one slot of each type, and constants."""
    if not depth:
        place = ["BIGINT", "DOUBLE", "BOOLEAN"].index(kind)
        values: dict[str, list[Any]] = {"BIGINT": NUMBERS, "DOUBLE": DOUBLES, "BOOLEAN": [None, True, False]}
        constant = Literal(random.choice(values[kind]), kind)
        return random.choice([Column(None, slot_name(place), kind), constant])

    def part(of: str) -> Expr:
        return random_expression(random, of, depth - 1)

    if kind == "BOOLEAN":
        name = random.choice(["and", "or", "not", "is_null", "=", "<>", "<", ">", "<=", ">=", "<=>", "in"])
        of = "BOOLEAN" if name in ("and", "or", "not") else random.choice(["BIGINT", "DOUBLE"])
        count = {"not": 1, "is_null": 1, "in": 4}.get(name, 2)
        return Call(name, tuple(part(of) for _ in range(count)), kind)
    name = random.choice(
        ["+", "-", "*", "negate", "abs", "case", "coalesce", *(["/", "cast"] * (kind == "DOUBLE"))]
    )
    if name == "cast":
        return Call(name, (part("BIGINT"),), kind)
    if name == "case":
        return Call(name, (part("BOOLEAN"), part(kind), part(kind)), kind)
    return Call(name, tuple(part(kind) for _ in range(1 if name in ("negate", "abs") else 2)), kind)


def test_plain_conditions_are_those_that_they_stand_for() -> None:
    """Without the functions that programs do not have; in them one slot of each type stands for columns."""
    random, of_columns = Random(3), ("BIGINT", "DOUBLE", "BOOLEAN")
    written = 0
    for _ in range(1500):
        expr = random_expression(random, "BOOLEAN", random.randint(1, 3))
        made = plain(expr)
        written += made != expr
        values = [random.choice(NUMBERS), random.choice(DOUBLES), random.choice([None, True, False])]
        columns = [pa.array([v], ARROW_TYPES[t]) for v, t in zip(values, of_columns, strict=True)]
        found, expected = (evaluate(one, SlotColumns(1, columns)).to_pylist() for one in (made, expr))
        assert found == expected, (expr, values)
        names = {node.function for node in walk(made) if isinstance(node, Call)}
        assert not names & {"case", "coalesce", "in", "<=>"}
    assert written > 300
