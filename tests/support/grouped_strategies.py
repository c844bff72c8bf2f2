"""Hypothesis strategies: rules with repeated, optional and negated components, or strict contiguity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hypothesis import assume
from hypothesis import strategies as st

from spark_pace.core.expr import Aggregate, Call, Expr, TypeName
from spark_pace.core.plan.rule import (
    Component,
    Conjunct,
    Context,
    EmitField,
    Pattern,
    Rule,
    Span,
    Times,
    Within,
)
from tests.support.draws import built_once, chosen, composite, shuffled, some
from tests.support.strategies import (
    ATTRIBUTES,
    column,
    computed,
    condition,
    number,
    of_both,
    predicates,
    schemas,
    typed,
    varied,
    windows,
)
from tests.support.streams import SECOND

MOST_DRAWN = 8  # components: the oracle takes too long for more, which `test_long_patterns.py` has

Kind = Literal["one", "group", "negated"]
REPEATED = (
    Times(1, None),
    Times(1, None),
    Times(1, 3),
    Times(2, None),
    Times(1, 2),
    Times(2, 3),
    Times(2, 2),
)
OPTIONAL = (Times(0, 1), Times(0, None), Times(0, 2))
COMPARISONS = ("=", "=", "=", "<", "<=", ">", ">=", "<>")
# without negated components; "group" stands where a group may be
SHAPES: tuple[tuple[Kind, ...], ...] = (
    ("group",),
    ("one", "one"),
    ("group", "one"),
    ("one", "group"),
    ("one", "group", "one"),
    ("one", "group", "one"),
    ("group", "one", "group"),
    ("one", "one", "group"),
    ("group", "one", "one"),
    ("one", "one", "one"),
    ("one", "group", "one", "one"),
    ("one", "group", "one", "group"),
)
# of groups that directly follow each other
NEIGHBOURS: tuple[tuple[Kind, ...], ...] = (
    ("one", "group", "group", "one"),
    ("one", "group", "group", "one"),
    ("group", "group", "one"),
    ("group", "group"),
    ("one", "group", "group"),
    ("one", "group", "group", "group"),
    ("group", "group", "group", "one"),
    ("one", "group", "group", "one", "one"),
    ("one", "one", "group", "group", "one"),
    ("group", "group", "one", "group"),
)


@dataclass(frozen=True)
class Named:
    """A component as conditions name it."""

    index: int
    name: str
    kind: Kind


def value(draw: st.DrawFn, of: Named) -> Expr:
    """A number: of one event its column, of a group an aggregate over it."""
    attribute = chosen(draw, ["x", "x", "y"])
    if of.kind != "group":
        return column(attribute, of.name)
    function = chosen(draw, ["count", "count", "sum", "min", "max", "first", "last"])
    return Aggregate(function, of.name, None if function == "count" else attribute, "BIGINT")


def text_of(draw: st.DrawFn, of: Named) -> Expr:
    """The key of one event, or of a group's first, last, least or greatest."""
    if of.kind != "group":
        return column("k", of.name)
    return Aggregate(chosen(draw, ["first", "last", "min", "max"]), of.name, "k", "STRING")


def group_conjuncts(draw: st.DrawFn, group: Named) -> Conjunct:
    """A condition over one group alone."""
    return Conjunct(draw(group_conditions(group.name)), (group.index,))


@built_once
def group_conditions(name: str) -> st.SearchStrategy[Expr]:
    count = Aggregate("count", name, None, "BIGINT")
    first, last = (Aggregate(function, name, "x", "BIGINT") for function in ("first", "last"))
    mean = Aggregate("avg", name, "x", "DOUBLE")
    totals = st.sampled_from(["x", "y"]).map(lambda attribute: Aggregate("sum", name, attribute, "BIGINT"))
    peaks = st.sampled_from(["min", "max"]).map(lambda function: Aggregate(function, name, "z", "DOUBLE"))
    compared = st.sampled_from(["=", "<=", ">=", ">=", ">"])
    return st.one_of(
        st.builds(lambda function, n: condition(function, count, number(n)), compared, st.integers(0, 3)),
        st.builds(
            lambda total, function, n: condition(function, total, number(n)),
            *(totals, compared, st.integers(0, 2)),
        ),
        st.sampled_from(["<", "<=", "="]).map(lambda function: condition(function, first, last)),
        st.just(condition("or", condition("is_null", first), condition(">=", first, number(1)))),
        st.just(condition("<=", mean, Call("cast", (number(1),), "DOUBLE"))),
        st.sampled_from(of_all_values(name)).map(
            lambda of_all: condition(">=", of_all, Call("cast", (number(1),), of_all.type))
        ),
        st.builds(
            lambda peak, n: condition(">=", peak, Call("cast", (number(n),), "DOUBLE")),
            *(peaks, st.integers(0, 3)),
        ),
    )


def shared_conjuncts(draw: st.DrawFn, named: tuple[Named, ...]) -> Conjunct:
    """A condition over two or three components, one of which may be negated."""
    ordered = tuple(sorted(named, key=lambda one: one.index))
    indices = tuple(one.index for one in ordered)
    if len(ordered) == 2 and draw(st.integers(0, 2)) == 0:
        return Conjunct(condition("=", *(text_of(draw, one) for one in ordered)), indices)
    values = [value(draw, one) for one in shuffled(draw, ordered)]
    left = values[0] if len(values) == 2 else Call("+", (values[0], values[1]), "BIGINT")
    compared = condition(chosen(draw, COMPARISONS), left, values[-1])
    if draw(st.integers(0, 5)) == 0:
        compared = condition("or", compared, condition("is_null", values[-1]))
    return Conjunct(compared, indices)


def wheres(draw: st.DrawFn, named: tuple[Named, ...]) -> tuple[Conjunct, ...]:
    """Up to three conditions; at most one component of each is negated."""
    positive = [one for one in named if one.kind != "negated"]
    groups = [one for one in named if one.kind == "group"]
    found: list[Conjunct] = []
    for one in named:
        if one.kind == "negated" and draw(st.booleans()):
            others = some(draw, positive, 1, min(2, len(positive)))
            found.append(shared_conjuncts(draw, (one, *others)))
    if groups and draw(st.integers(0, 4)) == 4:
        found.append(group_conjuncts(draw, chosen(draw, groups)))
    if len(positive) > 1 and draw(st.integers(0, 4)) == 4:
        found.append(shared_conjuncts(draw, tuple(some(draw, positive, 2, min(3, len(positive))))))
    return tuple(shuffled(draw, found))


@composite
def kinds_of(
    draw: st.DrawFn,
    negation: bool,
    repetition: bool,
    trailing: bool,
    shapes: tuple[tuple[Kind, ...], ...],
) -> tuple[tuple[Kind, ...], bool]:
    """The kinds of a pattern's components, and whether it is strict."""
    shape = list(chosen(draw, [shape for shape in shapes if repetition or "group" not in shape]))
    if not negation:
        return tuple(shape), "group" not in shape or draw(st.integers(0, 3)) == 3
    kinds: list[Kind] = [shape[0]]
    for kind in shape[1:]:
        kinds += ["negated"] * chosen(draw, [0, 0, 0, 1, 1, 2])
        kinds.append(kind)
    if trailing or "negated" not in kinds:
        kinds += ["negated"] * chosen(draw, [1, 1, 1, 1, 2])
    assume(len(kinds) <= MOST_DRAWN)
    return tuple(kinds), False


def tests_of(kinds: tuple[Kind, ...], apart: bool) -> list[st.SearchStrategy[Expr]]:
    """For each component a strategy of its predicate.

    `apart`: a type for each, so that few events match several.
    """
    if not apart:
        return [predicates() if kind != "negated" else rare() for kind in kinds]
    letters = iter("abcabc")
    return [rare() if kind == "negated" else of_type(next(letters)) for kind in kinds]


@built_once
def of_type(letter: str) -> st.SearchStrategy[Expr]:
    return st.just(typed(letter))


@built_once
def rare() -> st.SearchStrategy[Expr]:
    """What few events are, so that not all candidates are forbidden."""
    valued = st.builds(
        lambda letter, n: condition("and", typed(letter), condition("=", column("x"), number(n))),
        st.sampled_from("abc"),
        st.integers(0, 2),
    )
    return st.one_of(valued, valued, st.sampled_from("abcd").map(typed))


@composite
def grouped_patterns(
    draw: st.DrawFn, context: Context, *, in_span: bool = False, close_window: bool = False,
    neighbours: bool = False,
) -> Pattern:  # fmt: skip
    """A sequence with at least one group or negated component, or a strict one.

    `neighbours`: with groups that directly follow each other.
    """
    negation = close_window or draw(st.booleans())
    repetition = neighbours or (not close_window and draw(st.integers(0, 3)) > 0)
    kinds, strict = draw(
        kinds_of(negation, repetition, draw(st.booleans()), NEIGHBOURS if neighbours else SHAPES)
    )
    names = tuple("pqrstuvwxyz"[: len(kinds)])
    inner = [kind for kind in kinds if kind != "negated"]
    components, place = [], 0
    near = not strict and draw(st.integers(0, 3)) == 0
    for name, kind, test in zip(names, kinds, tests_of(kinds, draw(st.integers(0, 2)) > 0), strict=True):
        follows = near and kind == "one" and bool(components) and not components[-1].negated
        optional = 0 < place < len(inner) - 1
        times = (*REPEATED, *OPTIONAL, *OPTIONAL) if optional else REPEATED
        place += kind != "negated"
        components.append(
            Component(
                name,
                draw(test),
                chosen(draw, times) if kind == "group" else None,
                kind == "negated",
                "strict" if follows and draw(st.integers(0, 3)) else "relaxed",
            )
        )
    named = tuple(
        Named(index, name, kind) for index, (name, kind) in enumerate(zip(names, kinds, strict=True))
    )
    within = window_of(draw, components, strict=strict, in_span=in_span and not close_window)
    close = "window" if close_window else "completion"
    return Pattern(
        tuple(components), wheres(draw, named), within, context, close, "strict" if strict else "relaxed"
    )


def window_of(draw: st.DrawFn, components: list[Component], *, strict: bool, in_span: bool) -> Within | None:
    """A window; none by chance in a span, or the one that strict contiguity implies."""
    most = [1 if component.times is None else component.times.most for component in components]
    if in_span and draw(st.booleans()):
        return None
    if strict and None not in most and draw(st.booleans()):
        return Within(events=sum(count or 0 for count in most))
    return draw(short_windows())


@built_once
def short_windows() -> st.SearchStrategy[Within]:
    by_time = st.sampled_from([9, 7, 5, 4, 3, 12]).map(lambda seconds: Within(time_us=seconds * SECOND))
    by_count = st.sampled_from([9, 7, 6, 5, 4, 3]).map(lambda events: Within(events=events))
    return st.one_of(by_time, by_time, by_time, by_count, of_both(by_time, by_count), windows())


def of_all_values(name: str) -> list[Aggregate]:
    """Aggregates of a group that compiled code does not know, and of what is computed of each event."""
    return [
        Aggregate("count", name, "y", "BIGINT"),
        Aggregate("stddev", name, "x", "DOUBLE"),
        Aggregate("count_distinct", name, "k", "BIGINT"),
        Aggregate("median", name, "y", "DOUBLE"),
        Aggregate("percentile", name, "x", "DOUBLE", None, 0.75),
        Aggregate("mode", name, "y", "BIGINT"),
        computed("sum", name),
        computed("count_distinct", name),
    ]


def grouped_emits(pattern: Pattern) -> tuple[EmitField, ...]:
    """Of every component something: columns of one event, aggregates of a group; no negated components."""
    found = []
    for component in pattern.components:
        name = component.name
        if component.negated:
            continue
        if component.times is None and pattern.context.selection != "all":
            found.append(EmitField(f"{name}_id", "STRING", column("id", name)))
            continue
        found.append(EmitField(f"{name}_n", "BIGINT", Aggregate("count", name, None, "BIGINT")))
        kinds: list[tuple[str, str, TypeName]] = [
            ("sum", "x", "BIGINT"),
            ("avg", "x", "DOUBLE"),
            ("min", "y", "BIGINT"),
            ("max", "z", "DOUBLE"),
            ("max", "k", "STRING"),
            ("first", "y", ATTRIBUTES["y"]),
            ("last", "id", "STRING"),
        ]
        found += [
            EmitField(f"{name}_{function}_{attribute}", kind, Aggregate(function, name, attribute, kind))  # type: ignore[arg-type]
            for function, attribute, kind in kinds
        ]
        collected = Aggregate("collect_list", name, "y", "ARRAY<BIGINT>", None, 2)
        found += [
            EmitField(f"{name}_of_all_{number}", of_all.type, of_all)
            for number, of_all in enumerate([*of_all_values(name), collected])
        ]
    return tuple(found)


@composite
def grouped_rules(
    draw: st.DrawFn,
    context: Context,
    *,
    close_window: bool = False,
    spans: st.SearchStrategy[Span] | None = None,
) -> Rule:
    """A rule with groups, negated components or strict contiguity in `context`, in one of `spans` if given.

    `close_window`: with ``close: window``, so without groups.
    """
    pattern = draw(grouped_patterns(context, in_span=spans is not None, close_window=close_window))
    span = None if spans is None else draw(spans)
    plain = Rule("rule", draw(schemas()), None, (), pattern, span, None, "selection", grouped_emits(pattern))
    return varied(draw, plain)
