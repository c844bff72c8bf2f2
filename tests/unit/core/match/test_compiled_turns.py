"""Compiled code finds the matches of *earliest, selected* that the steps over whole columns find."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal as Choice
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pytest

from spark_pace.core.expr import Aggregate, Call, Column, Expr, Literal
from spark_pace.core.match.contexts.earliest_selected import earliest_selected, in_turn, in_turn_by_columns
from spark_pace.core.match.search.any_order import search_of
from spark_pace.core.match.search.search import Search
from spark_pace.core.match.stream import Found, Stream
from spark_pace.core.plan.rule import Component, Conjunct, Context, Contiguity, Pattern, Times, Within
from spark_pace.core.tables import MASK, SEQ, SPENT, SPENT_BITS, TIME, UNUSED, USED, Ints

Function: TypeAlias = Choice["count", "sum", "avg", "min", "max", "first", "last"]
TRUE = Literal(True, "BOOLEAN")
STREAMS = [(10, 2), pytest.param(24, 10, marks=pytest.mark.long)]  # and matches, at the least


def number(value: int) -> Literal:
    return Literal(value, "BIGINT")


def one(name: str) -> Component:
    return Component(name, TRUE)


def group(name: str, least: int, most: int | None) -> Component:
    return Component(name, TRUE, times=Times(least, most))


def no(name: str) -> Component:
    return Component(name, TRUE, negated=True)


def compared(operator: str, left: tuple[int, str], right: tuple[int, str]) -> Conjunct:
    sides: list[Expr] = [Column(component=name, attribute="x", type="BIGINT") for _, name in (left, right)]
    return Conjunct(Call(operator, tuple(sides), "BOOLEAN"), (left[0], right[0]))


def attribute(name: str, of: str = "x") -> Column:
    return Column(name, of, {"x": "BIGINT", "v": "DOUBLE"}[of])


def over(function: Function, of: str = "x") -> Aggregate:
    """An aggregate over the group `g`."""
    kind = "DOUBLE" if of == "v" or function == "avg" else "BIGINT"
    return Aggregate(function, "g", None if function == "count" else of, kind)


def said(operator: str, left: Expr, right: Expr, components: tuple[int, ...]) -> Conjunct:
    return Conjunct(Call(operator, (left, right), "BOOLEAN"), components)


def own(of: str = "x") -> Column:
    return attribute("g", of)


def asks(operator: str, left: Expr, right: Expr) -> Expr:
    return Call(operator, (left, right), "BOOLEAN")


A, B, C = one("a"), one("b"), one("c")
RISES_BEHIND = (compared("<=", (1, "a"), (2, "b")),)
RISES = (compared("<", (0, "a"), (2, "b")),)
PATTERNS: dict[str, tuple[tuple[Component, ...], tuple[Conjunct, ...], Contiguity]] = {
    "negation": ((A, no("n"), B), (), "relaxed"),
    "negation with conditions": (
        (A, no("n"), B),
        (*RISES, compared(">", (1, "n"), (0, "a")), compared("<=", (1, "n"), (2, "b"))),
        "relaxed",
    ),
    "negation behind": ((A, B, no("n")), (compared("=", (0, "a"), (2, "n")),), "relaxed"),
    "one event and none behind": ((A, no("n")), (), "relaxed"),
    "group": ((A, group("g", 1, 3), B), RISES, "relaxed"),
    "optional group between negations": ((A, no("n"), group("g", 0, 2), no("m"), B), (), "relaxed"),
    "groups at both ends": ((group("g", 2, None), A, group("h", 1, 2)), (), "relaxed"),
    "one group": ((group("g", 2, 3),), (), "relaxed"),
    "group before one of four": ((A, group("g", 0, None), B, C), RISES, "relaxed"),
    "strict": ((A, group("g", 1, 4), B), RISES, "strict"),
    "arithmetic beside a negation": (
        (A, no("n"), B),
        (
            said("<", Call("+", (attribute("a"), attribute("b")), "BIGINT"), number(4), (0, 2)),
            said(
                "<",
                Call("-", (attribute("n", "v"), attribute("b", "v")), "DOUBLE"),
                attribute("a", "v"),
                (0, 1, 2),
            ),
        ),
        "relaxed",
    ),
    "a negation before a group that its condition reads": (
        (A, no("n"), group("g", 1, 4), B),
        (said(">", attribute("n"), over("max"), (1, 2)),),
        "relaxed",
    ),
    "a negation behind all that reads a group": (
        (A, group("g", 1, 3), B, no("n")),
        (said("<", attribute("n", "v"), over("avg", "v"), (1, 3)),),
        "relaxed",
    ),
    **{
        f"{function} of {of}": (
            (A, group("g", 0, 4), B),
            (said("<=", over(function, of), Call("+", (attribute("b", of), literal), kind), (1, 2)),),
            "relaxed",
        )
        for function in ("first", "last", "sum", "min", "max")
        for of, kind, literal in (("x", "BIGINT", number(1)), ("v", "DOUBLE", Literal(0.5, "DOUBLE")))
    },
    "a mean": (
        (group("g", 1, 3), B),
        (said("<", over("avg"), Call("cast", (attribute("b"),), "DOUBLE"), (0, 1)),),
        "relaxed",
    ),
    "a mean of doubles": (
        (A, group("g", 1, None)),
        (said(">", over("avg", "v"), attribute("a", "v"), (0, 1)),),
        "relaxed",
    ),
    "how many": (
        (A, group("g", 0, None), B),
        (said("<=", over("count"), attribute("b"), (1, 2)),),
        "relaxed",
    ),
    "strict, with a sum": ((A, group("g", 1, 4), B), (said("<", over("sum"), number(5), (1,)),), "strict"),
    **{
        f"a group so far: {name}": (
            (*before, replace(group("g", least, most), follows=follows, further=further), *behind),
            (),
            contiguity,
        )
        for name, before, (least, most, follows, contiguity), further, behind in (
            ("rises", (A,), (1, None, "relaxed", "relaxed"), asks(">=", own(), over("last")), (B,)),
            ("run", (A,), (1, 3, "strict", "relaxed"), asks("<>", own(), over("first")), (B,)),
            ("strict", (A,), (0, 4, "relaxed", "strict"), asks(">", own(), over("last")), (B,)),
            ("before", (), (1, None, "relaxed", "relaxed"), asks("<=", own(), over("max")), (no("n"), B)),
            (
                "behind",
                (A, no("n")),
                (1, 3, "relaxed", "relaxed"),
                asks(">=", own("v"), over("avg", "v")),
                (),
            ),
            ("mean", (A,), (1, None, "relaxed", "relaxed"), asks(">", number(5), over("sum")), (no("n"), B)),
            ("alone", (), (2, 4, "relaxed", "relaxed"), asks("<", over("count"), number(3)), ()),
        )
    },
    "optional in first place": ((group("g", 0, 2), A, B), RISES_BEHIND, "relaxed"),
    "optional in first place, strict": ((group("g", 0, 1), A, B), (), "strict"),
    "optional in first place, and none between": ((group("g", 0, None), no("n"), B), (), "relaxed"),
    "strict, without a group": ((A, B, C), (compared("<>", (0, "a"), (1, "b")),), "strict"),
}


def stream_of(seed: int, components: int, *, overlapping: bool) -> Stream:
    """Some segments of random events; of those of the first one some were used up before."""
    generator = np.random.default_rng(seed)
    rows = int(generator.integers(5, 60))
    mask = np.uint16(1) << generator.integers(0, components, rows).astype(np.uint16)
    if overlapping:
        mask |= np.uint16(1) << generator.integers(0, components, rows).astype(np.uint16)
    starts = np.unique(np.append(0, generator.integers(0, rows, 2)))
    seq = np.arange(rows) - np.repeat(starts, np.diff(np.append(starts, rows)))
    spent = np.full(rows, UNUSED)
    earlier = np.flatnonzero(generator.random(rows) < 0.1)
    spent[earlier] = USED | (np.minimum(seq[earlier] + 3, seq.max()) << SPENT_BITS)
    columns = {TIME: np.cumsum(generator.integers(0, 3, rows)), SEQ: seq, MASK: mask, SPENT: spent}
    x = pa.array(generator.integers(0, 4, rows), mask=generator.random(rows) < 0.05)
    v = generator.choice([0.25, 0.5, 1.5, -0.0, 0.0, np.nan, np.inf], rows)
    v = pa.array(v, mask=generator.random(rows) < 0.05)
    return Stream(pa.table({**columns, "x": x, "v": v}), starts)


def told(found: Found) -> list[list[int] | None]:
    deciding: Ints | None = found.deciding
    lists = (found.closes, found.selection, found.offsets, found.members, found.roles, deciding)
    return [None if numbers is None else numbers.tolist() for numbers in lists]


@pytest.mark.parametrize(("streams", "least"), STREAMS)
@pytest.mark.parametrize("overlapping", [False, True])
@pytest.mark.parametrize("name", PATTERNS)
def test_compiled_turns_equal_steps(name: str, overlapping: bool, streams: int, least: int) -> None:
    components, where, contiguity = PATTERNS[name]
    matches = 0
    for seed in range(streams):
        within = Within(events=4 + seed % 9) if seed % 2 else Within(time_us=3 + seed % 9)
        context = Context("earliest", "selected")
        pattern = Pattern(components, where, within, context, contiguity=contiguity)
        stream = stream_of(seed, len(components), overlapping=overlapping)
        search = Search(stream, pattern)
        assert search.techniques.unused.compiled
        expected = in_turn_by_columns(search, search.initiators)
        assert told(in_turn(search, search.initiators)) == told(expected), seed
        matches += expected.matches
    assert matches > least


@pytest.mark.parametrize(("streams", "least"), STREAMS)
@pytest.mark.parametrize("overlapping", [False, True])
@pytest.mark.parametrize(
    "where", [(), (compared("<>", (0, "a"), (1, "b")),)], ids=["plain", "with a condition"]
)
@pytest.mark.parametrize("components", [2, 3, 4])
def test_conjunctions_equal_steps(
    components: int, where: tuple[Conjunct, ...], overlapping: bool, streams: int, least: int
) -> None:
    matches = 0
    for seed in range(streams):
        within = Within(events=6 + seed % 9) if seed % 2 else Within(time_us=6 + seed % 9)
        context = Context("earliest", "selected")
        pattern = Pattern((A, B, C, one("d"))[:components], where, within, context, order="conjunction")
        drawn = stream_of(seed, components, overlapping=overlapping)
        stream = Stream(drawn.events.drop_columns([SPENT]), drawn.starts)
        search = search_of(stream, pattern)
        assert search.techniques.unused.compiled
        expected = in_turn_by_columns(search, search.initiators)
        assert told(earliest_selected(stream, pattern, search)) == told(expected), seed
        matches += expected.matches
    assert matches > least
