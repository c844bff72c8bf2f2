"""Programs that compiled code runs say of candidates what expressions say of them."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from spark_pace import replay, ways
from spark_pace.core.expr import ARROW_TYPES, Aggregate, Call, Column, Expr, Literal, TypeName, evaluate_mask
from spark_pace.core.match.compiled.arguments import Placement, Programs
from spark_pace.core.match.compiled.interpreter import first_that_holds
from spark_pace.core.match.compiled.sequences import search_sequences
from spark_pace.core.match.search import programs
from spark_pace.core.match.search.programs import Condition, is_program, programs_of
from spark_pace.core.match.search.search import Search
from spark_pace.core.match.stream import Stream
from spark_pace.core.plan.rule import Component, Context, Pattern, Within
from spark_pace.core.tables import MASK, SEQ, TIME, Ints
from spark_pace.machine_code.kernel import Kernel

LEAST, GREATEST = -(2**63), 2**63 - 1
HALF = 2**31
WHOLE = [None, LEAST, LEAST + 1, -(2**53) - 1, -HALF - 1, -HALF, -3, -2, -1, 0, 1, 2, 3, HALF - 1, HALF]
VALUES: dict[TypeName, list[Any]] = {
    "BOOLEAN": [None, False, True],
    "BIGINT": [*WHOLE, 2**32, 3037000500, 2**53 + 1, 2**62, GREATEST],
    "DOUBLE": [
        None,
        -math.inf,
        -1e308,
        -1.5,
        -5e-324,
        -0.0,
        0.0,
        5e-324,
        0.1,
        3.0,
        1e308,
        math.inf,
        math.nan,
    ],
    "STRING": [None, "", "a", "b", "é"],
}
NAMES: dict[TypeName, str] = {"BOOLEAN": "flag", "BIGINT": "n", "DOUBLE": "v", "STRING": "s"}
ROLES: dict[str | None, int] = {"a": 0, "b": 1, "c": 2}
COMPARED = ("=", "<>", "<", "<=", ">", ">=")


def number(generator: random.Random, kind: TypeName, depth: int) -> Expr:
    """A random expression of numbers."""
    if not depth:
        if generator.random() < 0.25:
            return Literal(generator.choice(VALUES[kind]), kind)
        return Column(generator.choice("abc"), NAMES[kind], kind)
    if kind == "DOUBLE" and generator.random() < 0.2:
        return Call("cast", (number(generator, "BIGINT", depth - 1),), kind)
    if generator.random() < 0.25:
        return Call(generator.choice(["abs", "negate"]), (number(generator, kind, depth - 1),), kind)
    sides = tuple(number(generator, kind, generator.randrange(depth)) for _ in "12")
    return Call(generator.choice("+-*/" if kind == "DOUBLE" else "+-*"), sides, kind)


def condition(generator: random.Random, depth: int) -> Expr:
    """A random condition."""
    drawn = generator.random()
    if depth and drawn < 0.4:
        sides = tuple(condition(generator, generator.randrange(depth)) for _ in "12")
        return Call(generator.choice(["and", "or", "and", "or", "="]), sides, "BOOLEAN")
    if depth and drawn < 0.5:
        return Call("not", (condition(generator, depth - 1),), "BOOLEAN")
    kind = generator.choice(["BIGINT", "DOUBLE"])
    if drawn < 0.55:
        return Call("is_null", (number(generator, kind, 2),), "BOOLEAN")
    if drawn < 0.6:
        return Column(generator.choice("abc"), "flag", "BOOLEAN")
    if drawn < 0.65:
        texts = tuple(Column(generator.choice("abc"), "s", "STRING") for _ in "12")
        return Call(generator.choice(COMPARED), texts, "BOOLEAN")
    numbers = tuple(number(generator, kind, generator.randrange(4)) for _ in "12")
    return Call(generator.choice(COMPARED), numbers, "BOOLEAN")


def stream_of(generator: random.Random, rows: int) -> Stream:
    columns = {
        NAMES[kind]: pa.array(generator.choices(values, k=rows), ARROW_TYPES[kind])
        for kind, values in VALUES.items()
    }
    own = {TIME: np.arange(rows), SEQ: np.arange(rows), MASK: np.full(rows, 7, np.uint16)}
    return Stream(pa.table({**own, **columns}), np.zeros(1, np.int64))


def search_of(stream: Stream) -> Search:
    components = tuple(Component(name, Literal(True, "BOOLEAN")) for name in "abc")
    return Search(stream, Pattern(components, (), Within(events=9), Context("next", "zero")))


@pytest.fixture(autouse=True, params=["machine code", "source"])
def _run_as(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """Let programs be run by machine code, and by its source."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(ways, "FEW_NUMBERS", -1 if request.param == "machine code" else 1 << 62)
    if request.param == "source":
        monkeypatch.setattr(first_one, "runs", {})
    yield
    assert not first_one.runs or any(first_one.runs.values()) == (request.param == "machine code")


@Kernel
def first_one(programs: Programs, placement: Placement, count: int, place: Ints) -> None:
    place[0] = first_that_holds(programs, placement, count)


def said(exprs: list[Expr], stream: Stream, matrix: Ints) -> list[bool]:
    """What programs say of candidates; those of the same rows but for the last one are neighbours."""
    level = matrix.shape[1] - 1
    before = (1 << level) - 1
    programs = programs_of([Condition(expr, before | 1 << level, ROLES, {}) for expr in exprs], stream)
    found = np.zeros(len(matrix), np.bool_)
    at = 0
    while at < len(matrix):
        same = (matrix[at : at + len(programs.rows), :level] == matrix[at, :level]).all(axis=1)
        count = len(same) if same.all() else int(np.argmin(same))
        programs.rows[:count] = matrix[at : at + count, level]
        place = np.zeros(1, np.int64)
        first_one(programs, Placement(level, before, matrix[at], 0), count, place)
        held = int(place[0])
        at += held
        if held < count:
            found[at] = True
            at += 1
    return found.tolist()  # type: ignore[no-any-return]


@pytest.mark.parametrize("draws", [200, pytest.param(750, marks=pytest.mark.long)])
def test_programs_say_what_expressions_say(draws: int) -> None:
    generator = random.Random(3)
    held, null = 0, 0
    for _ in range(draws):
        stream = stream_of(generator, 5)
        triples = np.array([*itertools.product(range(5), repeat=3)])
        exprs = [condition(generator, generator.randrange(4)) for _ in range(generator.choice([1, 1, 2]))]
        assert all(is_program(expr, ROLES) for expr in exprs)
        columns = search_of(stream).columns(triples)
        expected = np.logical_and.reduce([evaluate_mask(expr, columns) for expr in exprs])
        assert said(exprs, stream, triples) == expected.tolist(), exprs
        denied = np.logical_and.reduce(
            [evaluate_mask(Call("not", (expr,), "BOOLEAN"), columns) for expr in exprs]
        )
        held, null = held + int(expected.sum()), null + int((~expected & ~denied).sum())
    assert held > 20 * draws
    assert null > 6 * draws


@pytest.mark.parametrize("function", ["+", "-", "*"])
def test_bigints_overflow_to_null_where_they_do_in_columns(function: str) -> None:
    values = [one for one in VALUES["BIGINT"] if one is not None]
    values += [one + other for one in (GREATEST // 3, 3037000499, HALF) for other in (-1, 0, 1)]
    table = {TIME: np.arange(len(values)), SEQ: np.arange(len(values)), "n": pa.array(values)}
    stream = Stream(pa.table({**table, MASK: np.full(len(values), 7, np.uint16)}), np.zeros(1, np.int64))
    sides: tuple[Expr, Expr] = (Column("a", "n", "BIGINT"), Column("b", "n", "BIGINT"))
    expr = Call("is_null", (Call(function, sides, "BIGINT"),), "BOOLEAN")
    pairs = np.array([*itertools.product(range(len(values)), repeat=2)])
    calculate = {"+": int.__add__, "-": int.__sub__, "*": int.__mul__}[function]
    exact = [calculate(values[one], values[other]) for one, other in pairs.tolist()]
    assert said([expr], stream, pairs) == [not LEAST <= one <= GREATEST for one in exact]


A, B = Column("a", "n", "BIGINT"), Column("b", "n", "BIGINT")


@pytest.mark.parametrize(
    "expr",
    [
        Call("<", (Call("%", (A, B), "BIGINT"), A), "BOOLEAN"),
        Call("<=>", (A, B), "BOOLEAN"),
        Call("<", (Call("coalesce", (A, B), "BIGINT"), A), "BOOLEAN"),
        Call("<", (Call("cast", (Call("<", (A, B), "BOOLEAN"),), "BIGINT"), A), "BOOLEAN"),
        Call("<", (Aggregate("min", "a", "s", "STRING"), Column("b", "s", "STRING")), "BOOLEAN"),
        Call("not", (Call("like", (A, B), "BOOLEAN"),), "BOOLEAN"),
    ],
    ids=str,
)
def test_other_conditions_are_no_programs(expr: Expr) -> None:
    assert not is_program(expr, ROLES)


def test_what_is_said_of_one_component_may_be_anything() -> None:
    root = Call("sqrt", (Column("b", "v", "DOUBLE"),), "DOUBLE")
    length = Call("length", (Column("a", "s", "STRING"),), "BIGINT")
    total = Call("+", (Call("cast", (length,), "DOUBLE"), root), "DOUBLE")
    expr = Call("<", (total, Column("c", "v", "DOUBLE")), "BOOLEAN")
    stream = stream_of(random.Random(1), 8)
    triples = np.array([*itertools.product(range(8), repeat=3)])
    assert is_program(expr, ROLES)
    expected = evaluate_mask(expr, search_of(stream).columns(triples)).tolist()
    assert said([expr], stream, triples) == expected
    assert any(expected)


def test_a_stream_without_events_has_programs_too() -> None:
    programs = programs_of(
        [Condition(Call("<", (A, B), "BOOLEAN"), 0b11, ROLES, {})], stream_of(random.Random(1), 0)
    )
    assert programs.ints.shape == programs.doubles.shape == programs.nulls.shape == (2, 0)


def test_programs_may_be_run_for_few_rows_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    events = pa.table({"time": [*range(40)], "kind": ["a", "b"] * 20, "x": [*range(40)]})
    rules = """
    events: {schema: "time BIGINT, kind STRING, x BIGINT", event_time: time, time_unit: ms}
    rules:
      - name: pairs
        pattern: {sequence: [a: "kind = 'a'", b: "kind = 'b'", c: "kind = 'a'"]}
        where: a.x + b.x = 33 and b.x - a.x > 20 and c.x + a.x > 0
        within: 1 h
        context: latest, zero
    """
    expected = replay(rules, events).matches
    assert len(expected) > 0
    monkeypatch.setattr(programs, "MOST_ROWS", 3)
    assert replay(rules, events).matches.equals(expected)
    monkeypatch.setattr(search_sequences, "_run", lambda *_: None)  # as its source
    assert replay(rules, events).matches.equals(expected)
