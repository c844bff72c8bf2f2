"""Comparisons by ranks give what expressions give, the compiled search what candidates in pieces give."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from spark_pace.core.expr import ARROW_TYPES, Call, Column, Expr, Literal, TypeName, evaluate_mask
from spark_pace.core.match.contexts.earliest_selected import earliest_selected
from spark_pace.core.match.first import Ranges, completions, greatest, least, walk
from spark_pace.core.match.search.comparison import comparison_of, is_comparison
from spark_pace.core.match.search.search import Search
from spark_pace.core.match.stream import Stream, window_end, window_start
from spark_pace.core.plan.rule import Component, Conjunct, Context, Pattern, Within
from spark_pace.core.ranks import value_orders, value_ranks
from spark_pace.core.tables import MASK, NULL_ORDER, SEQ, TIME, Ints

OPERATORS = ("=", "<>", "<", "<=", ">", ">=")
OTHER_NAN = math.copysign(math.nan, -1.0)
VALUES: dict[TypeName, list[Any]] = {
    "BOOLEAN": [None, False, True],
    "BIGINT": [None, -(2**63), -(2**53) - 1, -(2**53), -1, 0, 1, 2**53, 2**53 + 1, 2**63 - 1],
    "DOUBLE": [None, -math.inf, -1e308, -1.0, -5e-324, -0.0, 0.0, 5e-324, 1.0, math.inf, math.nan, OTHER_NAN],
    "STRING": [None, "", "a", "a\0", "aa", "b", "Z", "é", "\uffff", "\U00010000", "𝄞"],
    "TIMESTAMP": [None, -(2**60), -1, 0, 1, 2**60],
    "DATE": [None, -719162, -1, 0, 1, 2932896],
}
ROLES: dict[str | None, int] = {"a": 0, "b": 1, "c": 2, "d": 3}


def drawn(generator: random.Random, kind: TypeName, rows: int) -> pa.Array:
    arrow = pa.int32() if kind == "DATE" else pa.int64() if kind == "TIMESTAMP" else ARROW_TYPES[kind]
    return pa.array(generator.choices(VALUES[kind], k=rows), arrow).cast(ARROW_TYPES[kind])


def stream_of(table: dict[str, Any], rows: int) -> Stream:
    return Stream(pa.table({TIME: np.arange(rows), SEQ: np.arange(rows), **table}), np.zeros(1, np.int64))


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("operator", OPERATORS)
def test_ranks_compare_as_the_values_do(kind: TypeName, operator: str) -> None:
    generator = random.Random(kind + operator)
    held, both = 0, pattern_of(2, [], Within(events=100))
    for names in [("x", "y"), ("x", "x")] * 20:
        rows = generator.randrange(1, 40)
        stream = stream_of({name: drawn(generator, kind, rows) for name in ("x", "y")}, rows)
        sides = (Column("a", names[0], kind), Column("b", names[1], kind))
        pairs = np.array([(i, j) for i in range(rows) for j in range(rows)])
        for expr in (Call(operator, sides, "BOOLEAN"), Call(operator, sides[::-1], "BOOLEAN")):
            assert is_comparison(expr, ROLES)
            expected = evaluate_mask(expr, Search(stream, both, [pairs[:, 0]] * 2).columns(pairs))
            compared = comparison_of(expr, ROLES, stream)
            assert (compared.earlier, compared.later) == (0, 1)
            assert compared.holds(pairs).tolist() == expected.tolist()
            held += int(expected.sum())
    assert held > 1000


def test_ranks_of_several_columns_are_ranks_of_all_their_values() -> None:
    ranks = value_ranks([pa.array(["b", None, "c"]), pa.array([], pa.string()), pa.array(["a", "b"])])
    assert [part.tolist() for part in ranks] == [[1, -1, 2], [], [0, 1]]


def test_the_least_integer_is_not_taken_for_null() -> None:
    column = pa.array([-(2**63), None, 2**63 - 1, -(2**63)])
    least, null, greatest, again = value_orders([column])[0].tolist()
    assert null == NULL_ORDER < least == again < greatest


def test_a_side_may_be_any_expression_over_one_component() -> None:
    x, y = Column("a", "x", "BIGINT"), Column("b", "y", "BIGINT")
    stream = stream_of({"x": pa.array([1, 2, None, 2**63 - 1]), "y": pa.array([2, 4, 6, 8])}, 4)
    expr = Call("<=", (y, Call("+", (x, Literal(2, "BIGINT")), "BIGINT")), "BOOLEAN")
    pairs = np.array([(i, j) for i in range(4) for j in range(4)])
    held = pairs[comparison_of(expr, ROLES, stream).holds(pairs)]
    assert held.tolist() == [[0, 0], [1, 0], [1, 1]]  # null and what overflows compare with nothing


@pytest.mark.parametrize(
    "expr",
    [
        Call("=", (Column("a", "x", "BIGINT"), Column("a", "y", "BIGINT")), "BOOLEAN"),
        Call("=", (Column("a", "x", "BIGINT"), Literal(1, "BIGINT")), "BOOLEAN"),
        Call("<=>", (Column("a", "x", "BIGINT"), Column("b", "x", "BIGINT")), "BOOLEAN"),
        Call("=", (Column("a", "x", "BIGINT"), Column("b", "y", "DOUBLE")), "BOOLEAN"),
        Call(
            "<",
            (
                Call("-", (Column("a", "x", "BIGINT"), Column("b", "x", "BIGINT")), "BIGINT"),
                Column("c", "x", "BIGINT"),
            ),
            "BOOLEAN",
        ),
    ],
)
def test_other_conditions_are_no_comparisons_of_two_components(expr: Expr) -> None:
    assert not is_comparison(expr, ROLES)


# ---------------------------------------------------------------- the compiled search


def conditions(generator: random.Random, steps: int) -> list[Conjunct]:
    """One to three comparisons, many of them equalities, some of these in a chain; now and then sums."""
    found = []
    for _ in range(generator.randrange(1, 4)):
        if generator.random() < 0.2:
            found.append(sums(generator, steps))
            continue
        first, second = sorted(generator.sample(range(steps), 2))
        sides = tuple(Column("abcd"[k], generator.choice("xxy"), "BIGINT") for k in (first, second))
        operator = generator.choice(["=", "=", *OPERATORS])
        found.append(Conjunct(Call(operator, sides, "BOOLEAN"), (first, second)))
    return found


def sums(generator: random.Random, steps: int) -> Conjunct:
    """A condition on the sum of two components and a third one, which may be one of these."""
    places = [*generator.sample(range(steps), 2), generator.randrange(steps)]
    one, two, three = (Column("abcd"[k], generator.choice("xy"), "BIGINT") for k in places)
    sides = (Call(generator.choice("+-"), (one, two), "BIGINT"), three)
    return Conjunct(Call(generator.choice(OPERATORS), sides, "BOOLEAN"), tuple(sorted({*places})))


def hidden(conjunct: Conjunct) -> Conjunct:
    """The same condition in a form that compiled code does not take."""
    known = Call("coalesce", (conjunct.expr, Literal(False, "BOOLEAN")), "BOOLEAN")
    return Conjunct(known, conjunct.components)


def pattern_of(steps: int, where: Sequence[Conjunct], within: Within) -> Pattern:
    components = tuple(Component("abcd"[k], Literal(True, "BOOLEAN")) for k in range(steps))
    return Pattern(components, tuple(where), within, Context("next", "zero"))


def answers(stream: Stream, pattern: Pattern) -> dict[str, Any]:
    """What each way of searching finds."""
    search = Search(stream, pattern)
    assert search.techniques.unused.compiled != any("coalesce" in str(one.expr) for one in pattern.where)
    starts, lasts = search.members[0], search.members[-1]
    end, start = window_end(stream, starts, pattern.within), window_start(stream, lasts, pattern.within)
    found, matrix = walk(search, Ranges(starts, starts, end))
    return {
        "walk": [found.tolist(), matrix.tolist()],
        "completions": completions(search, starts, end).tolist(),
        "greatest": greatest(search, lasts, start)[0].tolist(),
        "least": least(search, lasts, start).tolist(),
        "without used events": earliest_selected(stream, pattern, search).members.tolist(),
    }


@pytest.mark.parametrize("streams", [60, pytest.param(200, marks=pytest.mark.long)])
@pytest.mark.parametrize("steps", [2, 3, 4])
def test_the_compiled_search_finds_what_candidates_in_pieces_give(
    steps: int, streams: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spark_pace.ways.PIECE_ROWS", 7)  # so that pieces end anywhere
    generator = random.Random(steps)
    matches = 0
    for _ in range(streams):
        rows = generator.randrange(1, 25)
        mask = np.array([generator.randrange(1, 1 << steps) for _ in range(rows)], np.uint16)
        values = {name: pa.array(generator.choices([None, 0, 1, 2], k=rows), pa.int64()) for name in "xy"}
        stream = stream_of({MASK: mask, **values}, rows)
        where, within = conditions(generator, steps), Within(events=generator.randrange(2, 20))
        found = answers(stream, pattern_of(steps, where, within))
        assert found == answers(stream, pattern_of(steps, list(map(hidden, where)), within))
        matches += len(found["greatest"])
    assert matches > 0.75 * streams


@pytest.mark.parametrize("steps", [2, 3])
def test_blocks_in_which_nothing_fits_are_passed_over_and_no_others(steps: int) -> None:
    generator = random.Random(steps)
    matches = 0
    for _ in range(30):
        rows = 700
        mask = np.array([1 << generator.randrange(steps) for _ in range(rows)], np.uint16)
        drift = generator.choice([-0.3, 0.0, 0.3])  # so that the values of far blocks differ
        values = {
            name: pa.array(
                [generator.choice([None, round(k * drift) + generator.randrange(9)]) for k in range(rows)]
            )
            for name in "xy"
        }
        stream = stream_of({MASK: mask, **values}, rows)
        where, within = conditions(generator, steps), Within(events=300 if steps == 2 else 40)
        found = answers(stream, pattern_of(steps, where, within))
        assert found == answers(stream, pattern_of(steps, list(map(hidden, where)), within))
        matches += len(found["greatest"])
    assert matches > 1000


def brute_force(stream: Stream, pattern: Pattern, terminator: int, start: int) -> list[list[int]]:
    """All candidates that end at a row and begin at another or later, of three components."""
    search = Search(stream, pattern)
    a, b, _ = search.members
    rows = [[i, j, terminator] for i in a.tolist() for j in b.tolist() if start <= i < j < terminator]
    matrix: Ints = np.array(rows, np.int64).reshape(-1, 3)
    keep = np.full(len(matrix), True)
    for conjunct in pattern.where:
        keep &= evaluate_mask(conjunct.expr, search.columns(matrix))
    kept: list[list[int]] = matrix[keep].tolist()
    return kept


def test_no_second_thought_is_left_out() -> None:
    generator = random.Random(7)
    within = Within(events=30)
    for _ in range(100):
        mask = np.array([1 << generator.randrange(3) for _ in range(20)], np.uint16)
        values = {name: pa.array(generator.choices(range(6), k=20), pa.int64()) for name in "xy"}
        stream = stream_of({MASK: mask, **values}, 20)
        pattern = pattern_of(3, conditions(generator, 3), within)
        lasts = np.flatnonzero(mask == 4)
        every = [brute_force(stream, pattern, last, 0) for last in lasts.tolist()]
        search, start = Search(stream, pattern), np.zeros(len(lasts), np.int64)
        expected = [max(found, key=lambda match: match[::-1]) for found in every if found]
        assert greatest(search, lasts, start)[0].tolist() == expected
        assert least(search, lasts, start).tolist() == [min(found) for found in every if found]


# ---------------------------------------------------------------- when it is compiled
