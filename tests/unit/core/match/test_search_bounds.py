"""A search ends before it begins where it cannot find anything."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from spark_pace.core.expr import Call, Column, Expr, Literal
from spark_pace.core.match.candidates import Ranges, bounds_of, candidates
from spark_pace.core.match.first import completions, walk
from spark_pace.core.match.search.any_order import AnyOrder
from spark_pace.core.match.search.search import Search
from spark_pace.core.match.stream import Stream
from spark_pace.core.plan.rule import Component, Conjunct, Context, Contiguity, Pattern, Times, Within
from spark_pace.core.tables import MASK, SEQ, TIME, Bools, Ints

ROWS = 40


def x_of(component: str) -> Expr:
    return Column(component=component, attribute="x", type="DOUBLE")


def search_of(letters: str, conditions: list[tuple[str, Expr, Expr]], steps: str = "abc") -> Search:
    """Events of these letters, one a microsecond, whose x rises, and a sequence."""
    bits = [1 << steps.index(letter) if letter in steps else 0 for letter in letters]
    columns = {TIME: np.arange(len(bits)), SEQ: np.arange(len(bits)), MASK: np.array(bits, np.uint16)}
    stream = Stream(pa.table({**columns, "x": np.arange(len(bits)) / 1}), np.zeros(1, np.int64))
    where = []
    for operator, left, right in conditions:
        named = sorted({steps.index(one.component) for one in (left, *getattr(right, "arguments", (right,)))
                        if isinstance(one, Column) and one.component})  # fmt: skip
        where.append(Conjunct(Call(operator, (left, right), "BOOLEAN"), tuple(named)))
    components = tuple(Component(letter, Literal(True, "BOOLEAN")) for letter in steps)
    context = Context("each", "zero")
    return Search(stream, Pattern(components, tuple(where), Within(events=ROWS), context))


@pytest.fixture
def tested(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many partial candidates are tested, each time some are."""
    numbers: list[int] = []
    passes = Search.passes

    def counted(self: Search, level: int, matrix: Ints, *, looked_up: bool = True) -> Bools:
        numbers.append(len(matrix))
        return passes(self, level, matrix, looked_up=looked_up)

    monkeypatch.setattr(Search, "passes", counted)
    return numbers


def bound_search(letters: str, pattern: Pattern) -> Search:
    """Events of these letters, one a microsecond, and a pattern of the components a, g and b."""
    bits = [1 << "agb".index(letter) if letter in "agb" else 0 for letter in letters]
    columns = {TIME: np.arange(len(bits)), SEQ: np.arange(len(bits)), MASK: np.array(bits, np.uint16)}
    return Search(Stream(pa.table(columns), np.zeros(1, np.int64)), pattern)


BETWEEN = {
    "negation": (Component("g", Literal(True, "BOOLEAN"), negated=True), False),
    "group of at most two": (Component("g", Literal(True, "BOOLEAN"), times=Times(1, 2)), False),
    "strict group": (Component("g", Literal(True, "BOOLEAN"), times=Times(1, None)), True),
}


@pytest.mark.parametrize("name", BETWEEN)
def test_no_row_is_tried_behind_what_must_not_stand_between(tested: list[int], name: str) -> None:
    component, strict = BETWEEN[name]
    ends = (Component(letter, Literal(True, "BOOLEAN")) for letter in "ab")
    components = (next(ends), component, next(ends))
    contiguity: Contiguity = "strict" if strict else "relaxed"
    window = Within(events=1000)
    pattern = Pattern(components, (), window, Context("each", "zero"), contiguity=contiguity)
    search = bound_search("ab-agb-ggg" + "abagbgb-bbbb-gggg" * 20, pattern)
    found = np.concatenate([*candidates(search, ranges_of(search))])
    assert len(found) >= 20
    assert sum(tested) < 10 * len(search.initiators)  # there are 140 events b in the windows of many of them


def ranges_of(search: Search) -> Ranges:
    rows = search.initiators
    return Ranges(rows, rows, np.full(len(rows), search.stream.rows))


RISING = [("<", x_of("a"), x_of("b")), ("<", x_of("b"), x_of("c"))]


@pytest.mark.parametrize(
    "letters", ["ab" * 20, "c" + "ab" * 20, "cab" + "ab" * 20], ids=["no", "before", "once"]
)
def test_a_component_without_an_event_in_the_window_ends_the_search(tested: list[int], letters: str) -> None:
    search = search_of(letters, RISING)
    assert not any(map(len, candidates(search, ranges_of(search))))
    assert sum(tested) == 0


def test_a_conjunction_is_not_searched_where_a_component_has_no_event(tested: list[int]) -> None:
    sequence = search_of("ab" * 20 + "--------c", RISING)
    pattern = replace(sequence.pattern, order="conjunction", within=Within(events=8))
    search = AnyOrder(sequence.stream, pattern)
    rows = search.initiators
    ends = np.minimum(rows + 8, search.stream.rows)
    assert not any(map(len, candidates(search, Ranges(rows, rows, ends))))
    assert sum(tested) <= len(rows)


def test_only_rows_before_the_last_event_that_may_end_a_candidate_are_tried(tested: list[int]) -> None:
    search = search_of("abc" + "ab" * 20, RISING)
    assert np.concatenate([*candidates(search, ranges_of(search))]).tolist() == [[0, 1, 2]]
    assert sum(tested) == 2
    assert [bounds.max() for bounds in bounds_of(search, ranges_of(search))[1:]] == [2, 43]


def test_a_condition_that_never_holds_ends_the_search(tested: list[int]) -> None:
    ten_more = Call("+", (x_of("b"), Literal(100.0, "DOUBLE")), "DOUBLE")
    search = search_of("abc" * 10, [(">", x_of("a"), ten_more), (">", x_of("c"), x_of("a"))])
    assert not any(map(len, candidates(search, ranges_of(search))))
    assert sum(tested) == 0
    rows = ranges_of(search)
    assert completions(search, rows.anchors, rows.end).tolist() == [-1] * 10


def test_a_walk_takes_a_row_that_nothing_can_follow() -> None:
    late = search_of("abbc", [("<", x_of("c"), Call("+", (x_of("b"), Literal(1.5, "DOUBLE")), "DOUBLE"))])
    assert walk(late, ranges_of(late))[1].tolist() == []  # the first b is taken, and c does not fit it
    assert completions(late, np.array([0]), np.array([4])).tolist() == [3]
    assert np.concatenate([*candidates(late, ranges_of(late))]).tolist() == [[0, 2, 3]]
