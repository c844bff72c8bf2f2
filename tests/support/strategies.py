"""Hypothesis strategies: rules over a small schema."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from spark_pace.core.expr import Aggregate, Call, Column, Expr, Literal, Previous, conjunction, walk
from spark_pace.core.plan.rule import (
    Component,
    Conjunct,
    Context,
    CountSpan,
    EmitField,
    EventSchema,
    Field,
    GridSpan,
    Merge,
    Pattern,
    PredicateSpan,
    Rule,
    SessionSpan,
    Span,
    Within,
)
from tests.support.draws import built_once, chosen, composite, shuffled, some
from tests.support.streams import SECOND

ATTRIBUTES: dict[str, Any] = {
    "time": "TIMESTAMP",
    "id": "STRING",
    "type": "STRING",
    "x": "BIGINT",
    "y": "BIGINT",
    "k": "STRING",
    "z": "DOUBLE",
}
FIELDS = tuple(Field(name, kind) for name, kind in ATTRIBUTES.items())
CONTEXTS = (
    *(Context(selection, "zero") for selection in ("each", "latest", "next", "earliest")),
    *(Context(selection, "selected") for selection in ("each", "latest", "next", "all", "earliest")),
)
MERGES: tuple[Merge, ...] = ("selection", "detection")
OPERATORS = {
    "tests.support.operators:summary": (
        ("n", "BIGINT"),
        ("first", "STRING"),
        ("last", "STRING"),
        ("total", "BIGINT"),
    ),
    "tests.support.operators:known": (("id", "STRING"), ("x", "BIGINT")),
    "tests.support.operators:bounds": (("opened_by", "STRING"), ("closed_by", "STRING")),
}


# ---------------------------------------------------------------- expressions


def column(attribute: str, component: str | None = None) -> Column:
    return Column(component, attribute, ATTRIBUTES[attribute])


def text(value: str) -> Literal:
    return Literal(value, "STRING")


def number(value: int) -> Literal:
    return Literal(value, "BIGINT")


def computed(function: Any, component: str | None = None) -> Aggregate:
    """An aggregate of what is computed of each event: of texts where distinct ones are counted."""
    if function == "count_distinct":
        of = Call("concat", (column("k"), column("type")), "STRING")
        return Aggregate(function, component, "@(concat(k, type))", "BIGINT", of)
    of = Call("+", (column("x"), column("y")), "BIGINT")
    kind = "BIGINT" if function in ("sum", "min", "last", "count") else "DOUBLE"
    return Aggregate(function, component, "@(x + y)", kind, of)


def condition(function: str, *arguments: Expr) -> Call:
    return Call(function, arguments, "BOOLEAN")


def typed(letters: str) -> Expr:
    """The event's type is one of `letters`."""
    if len(letters) == 1:
        return condition("=", column("type"), text(letters))
    return condition("in", column("type"), *(text(letter) for letter in letters))


@built_once
def predicates() -> st.SearchStrategy[Expr]:
    """Conditions on one event: mostly one type; some overlap with others."""
    narrow = st.sampled_from("abc").map(typed)
    wide = st.sampled_from(["ab", "bc", "acd", "abc"]).map(typed)
    with_value = st.tuples(narrow | wide, st.sampled_from(["=", "<", ">="]), st.integers(0, 2)).map(
        lambda drawn: condition("and", drawn[0], condition(drawn[1], column("x"), number(drawn[2])))
    )
    of_value = st.integers(0, 2).map(
        lambda value: condition(
            "or", condition("=", column("x"), number(value)), condition("is_null", column("y"))
        )
    )
    return st.one_of(narrow, wide, narrow, wide, narrow | wide, narrow | wide, with_value | of_value)


@composite
def conjuncts(draw: st.DrawFn, names: tuple[str, ...]) -> Conjunct:
    """A condition over two or three components: mostly an equality of plain columns."""
    first, second = sorted(some(draw, range(len(names)), 2, 2))
    left, right = (column(chosen(draw, ["x", "y"]), names[index]) for index in (first, second))
    kind = chosen(draw, ["=", "=", "=", "=", "<", "<=", "<>", "sum", "distance", "either", "three"])
    if kind == "sum":
        total = Call("+", (left, right), "BIGINT")
        return Conjunct(condition("<=", total, number(draw(st.integers(0, 3)))), (first, second))
    if kind == "distance":
        distance = Call("abs", (Call("-", (left, right), "BIGINT"),), "BIGINT")
        return Conjunct(condition("<", distance, number(draw(st.integers(1, 2)))), (first, second))
    if kind == "either":
        return Conjunct(
            condition("or", condition("=", left, right), condition("is_null", left)), (first, second)
        )
    if kind == "three" and len(names) > 2:
        third = next(index for index in range(len(names)) if index not in (first, second))
        total = Call("+", (left, right), "BIGINT")
        return Conjunct(
            condition("=", total, column("x", names[third])), tuple(sorted((first, second, third)))
        )
    if draw(st.booleans()):
        left, right = right, left
    return Conjunct(condition(kind if kind != "three" else "=", left, right), (first, second))


# ---------------------------------------------------------------- rules


@built_once
def windows() -> st.SearchStrategy[Within]:
    by_time = st.sampled_from([100, 100, 100, 8, 8, 8, 5, 5, 3, 2, 0]).map(
        lambda seconds: Within(time_us=seconds * SECOND)
    )
    by_count = st.sampled_from([12, 12, 8, 8, 6, 5, 4, 3, 2, 1]).map(lambda events: Within(events=events))
    both = of_both(by_time, by_count)
    return st.one_of(by_time, by_time, by_time, by_time, by_count, by_count, both)


def of_both(
    by_time: st.SearchStrategy[Within], by_count: st.SearchStrategy[Within]
) -> st.SearchStrategy[Within]:
    """Windows with the time of one and the number of events of another one."""
    return st.builds(lambda time, count: Within(time.time_us, count.events), by_time, by_count)


@built_once
def window_or_none() -> st.SearchStrategy[Within | None]:
    return st.none() | windows()


def needs_window(context: Context, where: tuple[Conjunct, ...]) -> bool:
    return bool(where) or context.selection == "all" or context == Context("earliest", "zero")


@composite
def patterns(
    draw: st.DrawFn,
    context: Context,
    *,
    where: bool | None = None,
    in_span: bool = False,
    close_window: bool = False,
) -> Pattern:
    """A sequence of one to four steps in `context`.

    `where` demands conditions over several components, or forbids them. None: by chance.
    """
    many = draw(st.booleans()) if where is None else where
    steps = chosen(draw, [2, 2, 2, 2, 2, 2, 3, 3, 3, 4] if many else [2, 2, 2, 2, 2, 2, 3, 3, 3, 4, 1])
    names = tuple("pqrs"[:steps])
    components = tuple(Component(name, draw(predicates())) for name in names)
    conditions = (
        tuple(draw(conjuncts(names)) for _ in range(chosen(draw, [1, 1, 1, 1, 1, 2]))) if many else ()
    )
    if close_window or (not in_span and needs_window(context, conditions)):
        return Pattern(
            components, conditions, draw(windows()), context, "window" if close_window else "completion"
        )
    return Pattern(components, conditions, draw(window_or_none()), context)


@composite
def joined_patterns(draw: st.DrawFn, context: Context, *, close_window: bool) -> Pattern:
    """A sequence within a time whose components are equal in one attribute, each with one or more others."""
    names = tuple("pqrs"[: chosen(draw, [2, 2, 2, 3, 3, 4])])
    attribute = chosen(draw, ["x", "y", "k", "k"])
    order = shuffled(draw, range(len(names))) if draw(st.booleans()) else range(len(names))
    pairs = [(order[place], order[draw(st.integers(0, place - 1))]) for place in range(1, len(names))]
    chain = [
        Conjunct(
            condition("=", column(attribute, names[left]), column(attribute, names[right])),
            (min(left, right), max(left, right)),
        )
        for left, right in pairs
    ]
    others = [draw(conjuncts(names))] if draw(st.integers(0, 2)) == 2 else []
    where = shuffled(draw, [*chain, *others])
    within = Within(time_us=chosen(draw, [100, 8, 8, 5, 5, 3, 2, 0]) * SECOND)
    components = tuple(Component(name, draw(predicates())) for name in names)
    return Pattern(components, tuple(where), within, context, "window" if close_window else "completion")


@composite
def joined_rules(draw: st.DrawFn, context: Context, *, close_window: bool = False) -> Rule:
    """A rule without keys whose conditions keep a match to one value of an attribute."""
    pattern = draw(joined_patterns(context, close_window=close_window))
    plain = rule(draw(schemas()), pattern, None, None)
    return replace(plain, merge=chosen(draw, MERGES))


def emits(pattern: Pattern) -> tuple[EmitField, ...]:
    """Section from the first and the last component; in `all, selected` by aggregates."""
    first, last = pattern.components[0].name, pattern.components[-1].name
    if pattern.context.selection == "all":
        return (
            EmitField("n", "BIGINT", Aggregate("count", first, None, "BIGINT")),
            EmitField("total", "BIGINT", Aggregate("sum", last, "x", "BIGINT")),
            EmitField("least", "BIGINT", Aggregate("min", first, "y", "BIGINT")),
            EmitField("began", "STRING", Aggregate("first", first, "id", "STRING")),
            EmitField("mean", "DOUBLE", Aggregate("avg", first, "x", "DOUBLE")),
            EmitField("peak", "DOUBLE", Aggregate("max", last, "z", "DOUBLE")),
        )
    total: Expr = Call("+", (column("x", first), column("y", last)), "BIGINT")
    return (EmitField("began", "STRING", column("id", first)), EmitField("total", "BIGINT", total))


@built_once
def spans() -> st.SearchStrategy[Span]:
    return st.one_of(predicate_spans(), grid_spans(), count_spans(), session_spans())


@composite
def predicate_spans(draw: st.DrawFn) -> PredicateSpan:
    equal = [condition("=", column(name), column(name, "open")) for name in ("x", "y")]
    conditions = [*equal, *[condition(">", column("x"), column("y", "open"))] * 2]
    closing = tuple(chosen(draw, conditions) for _ in range(chosen(draw, [0, 1, 1, 2])))
    close = draw(predicates()) if not closing or draw(st.booleans()) else conjunction([])
    return PredicateSpan(draw(predicates()), close, closing, chosen(draw, [100, 5, 5, 3, 1, 0]) * SECOND)


@built_once
def grid_spans() -> st.SearchStrategy[GridSpan]:
    sizes = st.sampled_from([10 * SECOND, 5 * SECOND, 2 * SECOND, 1])
    return st.builds(GridSpan, st.sampled_from([5 * SECOND, 2 * SECOND, SECOND]), sizes)


@built_once
def count_spans() -> st.SearchStrategy[CountSpan]:
    return st.builds(CountSpan, st.integers(1, 4), st.sampled_from([5, 6, 8, 3, 1]))


@built_once
def session_spans() -> st.SearchStrategy[SessionSpan]:
    gaps = st.sampled_from([SECOND, SECOND, 2 * SECOND, 0, 3 * SECOND, 5 * SECOND])
    longest = st.sampled_from([None, None, 5 * SECOND, 3 * SECOND, 2 * SECOND, 1, 0])
    return st.builds(SessionSpan, gaps, longest)


@built_once
def schemas() -> st.SearchStrategy[EventSchema]:
    return st.sampled_from([(), (), ("y",), ("type", "x")]).map(
        lambda ties: EventSchema(FIELDS, "time", ties)
    )


def rule(schema: EventSchema, pattern: Pattern | None, span: Span | None, operator: str | None) -> Rule:
    if pattern is not None:
        fields = emits(pattern)
    else:
        assert operator is not None
        kinds: Any = OPERATORS[operator]
        fields = tuple(EmitField(name, kind, None) for name, kind in kinds)
    return Rule("rule", schema, None, (), pattern, span, operator, "selection", fields)


@composite
def rules(
    draw: st.DrawFn, context: Context, *, where: bool | None = None, close_window: bool = False
) -> Rule:
    """A rule with a pattern in `context`, without a span."""
    pattern = draw(patterns(context, where=where, close_window=close_window))
    return varied(draw, rule(draw(schemas()), pattern, None, None))


def varied(draw: st.DrawFn, plain: Rule) -> Rule:
    """The rule with or without a filter and keys, in either order."""
    filters = [condition("<", column("x"), number(2)), condition("<>", column("type"), text("d"))]
    return replace(
        plain,
        filter=chosen(draw, filters) if draw(st.integers(0, 4)) == 4 else None,
        partition_by=chosen(draw, [(), (), (), (), (), (), (), ("k",), ("k",), ("k", "y")]),
        merge=chosen(draw, MERGES),
    )


@composite
def span_rules(
    draw: st.DrawFn, kinds: st.SearchStrategy[Span], *, operator: bool, context: Context | None = None
) -> Rule:
    """A rule with a span, and in it a Python operator or a pattern in a random context."""
    span = draw(kinds)
    schema = draw(schemas())
    if operator:
        names = (
            sorted(OPERATORS)
            if isinstance(span, PredicateSpan)
            else ["tests.support.operators:known", "tests.support.operators:summary"]
        )
        return varied(draw, rule(schema, None, span, chosen(draw, names)))
    pattern = draw(patterns(context or chosen(draw, CONTEXTS), in_span=True))
    return varied(draw, rule(schema, pattern, span, None))


@st.composite
def forgetful(draw: st.DrawFn, plain: Rule) -> Rule:
    """The rule with keys that are forgotten, and with windows that are short enough for it."""
    seconds = chosen(draw, [0, 1, 2, 2, 3, 3, 5, 5, 8])
    most_us = seconds * SECOND
    pattern, span = plain.pattern, plain.span
    if isinstance(span, PredicateSpan):
        span = replace(span, within_us=min(span.within_us, most_us))
    elif isinstance(span, GridSpan):
        most_us = max(1, most_us)
        span = replace(span, size_us=min(span.size_us, most_us))
    elif isinstance(span, SessionSpan):
        span = replace(span, gap_us=min(span.gap_us, most_us))
    elif span is None and pattern is not None and pattern.within is not None:
        length = pattern.within.time_us
        within = pattern.within if length is None else Within(min(length, most_us), pattern.within.events)
        pattern = replace(pattern, within=within)
    if pattern is not None and pattern.absences:
        shorter = (replace(one, within_us=min(one.within_us or 0, most_us)) for one in pattern.absences)
        pattern = replace(pattern, absences=tuple(shorter))
    keys = chosen(draw, [("k",), ("k",), ("k",), ("k", "y"), ("y", "k")])
    if plain.filter is not None and any(isinstance(node, Previous) for node in walk(plain.filter)):
        plain = replace(plain, filter=None)  # such a filter does not stand beside keys that are forgotten
    return replace(plain, pattern=pattern, span=span, partition_by=keys, forget_key_after_us=most_us)
