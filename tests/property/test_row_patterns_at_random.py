"""The rows of random clauses of MATCH_RECOGNIZE are those of plain backtracking."""

from __future__ import annotations

from decimal import Decimal
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from spark_pace import ways
from spark_pace.core.expr import Call, Column, Expr, Literal, evaluate
from spark_pace.core.match.row_patterns import search as search_module
from spark_pace.core.match.row_patterns.measures import summary_of
from spark_pace.core.match.row_patterns.rows import SlotColumns
from spark_pace.core.match.row_patterns.running import result_of, step_of
from spark_pace.core.match.row_patterns.scalars import scalar_function
from spark_pace.core.plan.row_pattern import Summary, slot_name
from spark_pace.errors import ConfigError
from tests.support.row_pattern_cases import (
    SKIPPED,
    difference,
    found_rows,
    many_rows,
    reading_the_match,
    trial_of,
)
from tests.support.row_pattern_streams import expected_rows, stream_difference, stream_trial


@pytest.mark.parametrize("chunk", range(10))
def test_random_clauses_give_the_rows_of_the_oracle(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ways, "FEW_NUMBERS", -1)
    assert [found for seed in range(chunk * 100, chunk * 100 + 100) if (found := difference(seed))] == []


@pytest.mark.parametrize("chunk", range(4))
def test_over_streams_random_clauses_give_the_same_however_they_are_cut(chunk: int) -> None:
    """With the state saved and restored between all batches, and compared with the oracle."""
    seeds = range(chunk * 50, chunk * 50 + 50)
    assert [found for seed in seeds if (found := stream_difference(seed))] == []


def test_arrays_grow_where_a_search_needs_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_module, "_FIRST_ROOM", 1)
    assert [found for seed in range(3000, 3200) if (found := difference(seed))] == []


def test_both_searches_find_the_same_in_many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ways, "FEW_NUMBERS", -1)
    rows = 0
    for seed in range(100):
        random = Random(seed)
        trial, table = trial_of(random, plain=True), many_rows(random)
        try:
            slow = found_rows(reading_the_match(trial.sql), table)
        except ConfigError as error:  # too many steps, or a match cannot be skipped
            assert "steps" in str(error) or SKIPPED in str(error)
            continue
        assert found_rows(trial.sql, table) == slow, trial.sql
        rows += len(slow)
    assert rows > 10_000


def test_random_clauses_find_something() -> None:
    found = [trial_of(Random(seed)).expected() for seed in range(300)]
    assert sum(isinstance(one, list) and len(one) > 0 for one in found) > 100


def test_random_clauses_find_something_over_streams() -> None:
    trials = [stream_trial(Random(seed)) for seed in range(200)]
    assert sum(bool(expected_rows(trial)) for trial in trials) > 100
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


def test_expressions_on_single_values_give_what_columns_give() -> None:
    random, types = Random(1), ("BIGINT", "DOUBLE", "BOOLEAN")
    for _ in range(3000):
        expr = random_expression(random, random.choice(types), random.randint(1, 4))
        values = [random.choice(NUMBERS), random.choice(DOUBLES), random.choice([None, True, False])]
        columns = [
            pa.array([v], t) for v, t in zip(values, (pa.int64(), pa.float64(), pa.bool_()), strict=True)
        ]
        expected = evaluate(expr, SlotColumns(1, columns)).to_pylist()[0]
        found = scalar_function(expr, types)(values)
        assert (type(found), repr(found + 0 if isinstance(found, float) else found)) == (
            type(expected),
            repr(expected + 0 if isinstance(expected, float) else expected),
        ), (expr, values)


OF_TYPES: dict[str, tuple[list[Any], pa.DataType]] = {
    "BIGINT": (NUMBERS, pa.int64()),
    "DOUBLE": (DOUBLES, pa.float64()),
    "DECIMAL(20,2)": ([None, Decimal("1.25"), Decimal("-0.50"), Decimal("1e17")], pa.decimal128(20, 2)),
}


@pytest.mark.parametrize(
    ("kind", "function"),
    [
        *((kind, function) for kind in OF_TYPES for function in ("count", "sum", "min", "max")),
        *((kind, "avg") for kind in ("BIGINT", "DOUBLE")),  # that of DECIMALs is made of sum and count
    ],
)
def test_aggregates_step_by_step_give_what_columns_give(kind: str, function: Any) -> None:
    random, (given, arrow) = Random(2), OF_TYPES[kind]
    one = Summary(function, None, False, Column(None, "x", kind), kind)
    for _ in range(400):
        values = [value for value in random.choices(given, k=random.randint(0, 6)) if value is not None]
        bounds = np.array([0]), np.array([len(values)])
        (expected,) = summary_of(one, pa.array(values, arrow), *bounds).to_pylist()
        state = None
        for value in values:
            count, total = state or (0, None)
            state = count + 1, step_of(one)(total, value)
        found = result_of(one, state)
        assert found == expected or repr(found) == repr(expected), values
