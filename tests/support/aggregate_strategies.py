"""Hypothesis strategies: spans that aggregate."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from spark_pace.core.expr import Aggregate, Call, Expr
from spark_pace.core.plan.rule import EmitField, PredicateSpan, Rule, Span
from tests.support.draws import built_once, chosen, composite, some
from tests.support.form_strategies import opening
from tests.support.strategies import column, computed, condition, number, schemas, spans, text, varied

COUNT = Aggregate("count", None, None, "BIGINT")
# field, its type, function, attribute
FIELDS: tuple[tuple[str, Any, Any, str], ...] = (
    ("known", "BIGINT", "count", "x"),
    ("total", "BIGINT", "sum", "x"),
    ("mean", "DOUBLE", "avg", "x"),
    ("least", "BIGINT", "min", "y"),
    ("greatest", "STRING", "max", "k"),
    ("first_y", "BIGINT", "first", "y"),
    ("last", "STRING", "last", "id"),
    ("last_key", "STRING", "last", "k"),
    ("began_at", "TIMESTAMP", "first", "time"),
    ("spread", "DOUBLE", "stddev", "x"),
    ("flow", "DOUBLE", "sum", "z"),
    ("level", "DOUBLE", "avg", "z"),
    ("noise", "DOUBLE", "stddev", "z"),
    ("peak", "DOUBLE", "max", "z"),
)
# what needs all values of a span, so that its events are carried
HOLISTIC: tuple[tuple[str, Any, Any, str], ...] = (
    ("kinds", "BIGINT", "count_distinct", "k"),
    ("levels", "BIGINT", "count_distinct", "z"),
    ("middle", "DOUBLE", "median", "x"),
    ("high", "DOUBLE", "percentile", "z"),
    ("usual", "STRING", "mode", "k"),
    ("usual_z", "DOUBLE", "mode", "z"),
    ("first_keys", "ARRAY<STRING>", "collect_list", "k"),
)
AT = {"percentile": 0.9, "collect_list": 3}


def over(function: Any, attribute: str, kind: Any = "BIGINT", of: Expr | None = None) -> Aggregate:
    return Aggregate(function, None, attribute, kind, of, AT.get(function))


COMPUTED = ("sum", "avg", "min", "last", "count", "stddev")


@composite
def conditions(draw: st.DrawFn) -> Expr:
    """A condition over aggregates of a span, false or null for some spans."""
    compared = chosen(draw, ["=", "<", ">=", ">", "<>"])
    one = chosen(
        draw,
        [
            condition(">=", COUNT, number(draw(st.integers(1, 4)))),
            condition(compared, over("sum", "x"), number(draw(st.integers(0, 4)))),
            condition("<", over("min", "x"), over("max", "y")),
            condition(compared, over("first", "x"), over("last", "x")),
            condition(compared, over("count", "x"), over("count", "y")),
            condition("<>", over("max", "type", "STRING"), text("c")),
            condition("<", over("avg", "z", "DOUBLE"), over("stddev", "z", "DOUBLE")),
            condition("is_null", over("stddev", "y", "DOUBLE")),
        ],
    )
    joined = chosen(draw, ["", "", "", "and", "or", "not"])
    if joined == "not":
        return condition("not", one)
    return condition(joined, one, draw(conditions())) if joined else one


@built_once
def condition_or_none() -> st.SearchStrategy[Expr | None]:
    return st.none() | conditions() | conditions()


def bare(rule: Rule) -> list[Expr]:
    """What may stand outside of aggregates: a column of the key, one of the opening event."""
    of_key: list[Expr] = [column("k")] if "k" in rule.partition_by else []
    return [*of_key, opening("k")] if isinstance(rule.span, PredicateSpan) else of_key


@composite
def aggregate_rules(draw: st.DrawFn, kinds: st.SearchStrategy[Span] | None = None) -> Rule:
    """A rule that aggregates the events of spans, some of which may not match its condition."""
    plain = Rule(
        "rule",
        draw(schemas()),
        None,
        (),
        None,
        draw(spans() if kinds is None else kinds),
        None,
        "selection",
        (),
    )
    rule = varied(draw, plain)
    fields = [EmitField("n", "BIGINT", COUNT)] if draw(st.booleans()) else []
    among = FIELDS + HOLISTIC if draw(st.integers(0, 3)) == 0 else FIELDS
    for name, kind, function, attribute in some(draw, among, 1, 5):
        fields.append(EmitField(name, kind, over(function, attribute, kind)))
    for function in some(draw, COMPUTED, 0, 2):
        of_events = computed(function)
        fields.append(EmitField(f"computed_{function}", of_events.type, of_events))
    if among is not FIELDS and draw(st.booleans()):
        fields.append(EmitField("pairs", "BIGINT", computed("count_distinct")))
    having = draw(condition_or_none())
    if bare(rule) and draw(st.booleans()):
        outside = chosen(draw, bare(rule))
        fields.append(EmitField("outside", "STRING", outside))
        if draw(st.booleans()):
            equal = condition("=", outside, over("first", "k", "STRING"))
            having = equal if having is None else condition("or", having, equal)
    if isinstance(rule.span, PredicateSpan) and draw(st.booleans()):
        more = Call("-", (over("sum", "x"), opening("x")), "BIGINT")
        fields.append(EmitField("more", "BIGINT", more))
    return replace(rule, emit=tuple(fields), having=having)
