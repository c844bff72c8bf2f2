"""Which rules are drawn, and of which forms one is: a rule counts for each form that it has."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import strategies as st

from spark_pace.core.expr import Call, Expr, Previous, walk
from spark_pace.core.plan.conditions import mentions_open
from spark_pace.core.plan.rule import (
    Component,
    Context,
    CountSpan,
    GridSpan,
    Pattern,
    PredicateSpan,
    Rule,
    SessionSpan,
)
from spark_pace.core.plan.shape import optional_last_of, shape_of
from tests.support.drawn_rules import rules, suiting
from tests.support.loaded_rules import CONTEXTS

FREE = [context for context in CONTEXTS if context.consumption == "zero"]
# forms of rules, as `tests.support.drawn_rules` names them: those that are drawn in each context that has
# them, and with keys that are forgotten in any; those drawn in each that uses nothing up; and the others
IN_EACH_CONTEXT = (
    *("plain, no where", "plain, where", "plain, span", "grouped", "grouped", "grouped, span", "prev"),
    *(
        "conjunction",
        "conjunction, span",
        "negated first",
        "disjunction",
        "disjunction",
        "prev of components",
    ),
    *("until", "until, span", "further | further, until", "optional first", "optional last"),
    *("optional last, span", "neighbours", "neighbours, span", "neighbours, until | neighbours, further"),
    *("alternatives", "alternatives", "alternatives, span"),
)
IN_FREE = (
    *("join", "join, sum", "carried", "carried, where", "carried, prev", "carried, where, sum"),
    *("carried, prev of components", "carried, prev in filter", "grouped, opened span"),
)
SPANS = ("opened span", "grid span", "count span", "session span")
OF_SPANS = (
    *("operator", "aggregates", "aggregates", "plain, where, sum", "conjunction", "negated first"),
    "negated first, forgotten keys",
)
OTHERS = (
    *("conjunction", "conjunction", "conjunction, inner sequence", "plain, where, sum, forgotten keys"),
    *("open, opened span", "conjunction, open, prev, opened span", "conjunction, open, opened span"),
    *("conjunction, prev", "prev, span", "join, close window", "join, sum, close window"),
    *("grouped, close window", "plain, where, close window", "plain, no where, close window"),
    *("carried, close window", *["aggregates, opened span of values"] * 4, "moves", "function"),
    *("operator, opened span of values", *["operator, opened span by columns"] * 2),
    *["aggregates, opened span by columns"] * 2,
    *("aggregates, grid span, forgotten keys", "moves, forgotten keys", "function, forgotten keys"),
    *("disjunction, span", "conjunction, disjunction", "disjunction, prev", "disjunction, prev, span"),
    *("disjunction, open, opened span", "prev of components, span", "until, disjunction"),
    *("conjunction, prev of components, disjunction", "plain, where, prev of components"),
    *(f"negated first, {one}" for one in ("prev", "disjunction", "prev of components", "until", "further")),
    *(f"negated first, {one}" for one in ("optional last", "plain, where, close window", "alternatives")),
    *("negated first, neighbours", *["negated first, prev in filter"] * 2, *["carried, negated first"] * 6),
    *(f"{one}, prev in filter" for one in ("plain", "grouped", "span", "grouped, span", "conjunction, span")),
    *(
        f"{one}, prev in filter"
        for one in ("aggregates, span", "operator, span", "moves", "function", "join")
    ),
    *(
        f"{one}, prev in filter"
        for one in ("until", "further", "optional last", "alternatives", "disjunction")
    ),
    *(f"{one}, open, opened span" for one in ("until", "further", "optional last", "alternatives")),
    *("neighbours, until, open, opened span", "alternatives, prev", "optional first, span", "further, span"),
    *("optional first, disjunction", "optional last, optional first", "optional last, until"),
    *("optional last, further", "optional last, disjunction", "further, disjunction"),
)


def drawn_rules() -> list[st.SearchStrategy[Rule]]:
    """Rules of each form in each context; each is drawn from in turn."""
    found = [(forms, (context,)) for forms in IN_EACH_CONTEXT for context in suiting(forms, CONTEXTS)]
    found += [(forms, (context,)) for forms in IN_FREE for context in FREE]
    found += [("open, opened span", (Context("earliest", "selected"),))]
    several = [f"{forms}, {span}" for forms in OF_SPANS for span in SPANS]
    several += [f"{forms}, forgotten keys" for forms in IN_EACH_CONTEXT]
    found += [(forms, CONTEXTS) for forms in (*several, *OTHERS)]
    return [rules(in_part_by_columns(forms), contexts) for forms, contexts in found]


def in_part_by_columns(forms: str) -> str:
    """The forms, of which one in three has a condition that columns test."""
    return f"{forms} | {forms} | {' | '.join(f'{one}, by columns' for one in forms.split(' | '))}"


KINDS_OF_RULES = (
    "sequence",
    "conjunction",
    "inner sequence",
    "disjunction",
    "alternatives",
    "where",
    "arithmetic",
    "join",
    "by columns",
    "repeated",
    "groups beside groups",
    "optional",
    "until",
    "run",
    "further events",
    "optional first",
    "optional last",
    "negated",
    "negated last",
    "negated first",
    "strict",
    "follows strict",
    "prev",
    "prev of components",
    "prev in filter",
    "open",
    "close window",
    "opened span",
    "grid span",
    "count span",
    "session span",
    "aggregates",
    "operator",
    "moves",
    "function",
    "keys",
    "forgotten keys",
)
FORMS = (
    *KINDS_OF_RULES,
    "within time",
    "within events",
    "within both",
    "no window",
    "merge selection",
    "merge detection",
    *map(str, CONTEXTS),
)


def forms_of(rule: Rule) -> set[str]:
    """The forms of the table that a rule has."""
    found = {f"merge {rule.merge}"}
    kinds = {
        PredicateSpan: "opened span",
        GridSpan: "grid span",
        CountSpan: "count span",
        SessionSpan: "session span",
    }
    if rule.span is not None:
        found.add(kinds[type(rule.span)])
    if rule.filter is not None and any(isinstance(node, Previous) for node in walk(rule.filter)):
        found.add("prev in filter")
    if rule.pattern is None:
        found.add(_form_without_pattern(rule))
    if rule.partition_by:
        found.add("keys")
    if rule.forget_key_after_us is not None:
        found.add("forgotten keys")
    return found if rule.pattern is None else {*found, *_forms_of_pattern(rule.pattern)}


def _form_without_pattern(rule: Rule) -> str:
    if rule.fold is not None:
        return "function" if rule.function else "moves"
    return "operator" if rule.operator else "aggregates"


def _forms_of_pattern(pattern: Pattern) -> Iterator[str]:
    yield str(pattern.context)
    yield "alternatives" if pattern.order == "disjunction" else pattern.order
    if pattern.within is None:
        yield "no window"
    else:
        time, events = pattern.within.time_us is not None, pattern.within.events is not None
        yield "within both" if time and events else "within time" if time else "within events"
    if pattern.where:
        yield "where"
    if any(map(mentions_open, (*pattern.predicates, *(one.expr for one in pattern.every_condition)))):
        yield "open"
    if pattern.order == "conjunction" and any(one.is_order for one in pattern.where):
        yield "inner sequence"
    for one in pattern.where:
        if any(isinstance(node, Previous) for node in walk(one.expr)):
            yield "prev of components"
        if any(_is_arithmetic(node) for node in walk(one.expr)):
            yield "arithmetic"
        if isinstance(one.expr, Call) and one.expr.function in ("=", "coalesce"):
            yield "join" if one.expr.function == "=" else "by columns"
    if pattern.components[0].times is not None and not pattern.components[0].times.least:
        yield "optional first"
    if optional_last_of(pattern) is not None:
        yield "optional last"
    if any(gap.handed for gap in shape_of(pattern).gaps):
        yield "groups beside groups"
    for component in pattern.components:
        yield from _forms_of_component(component)
    if any(component.negated for component in pattern.components):
        yield "negated last" if pattern.components[-1].negated else "negated"
    if pattern.absences:
        yield "negated first"
    if pattern.contiguity == "strict":
        yield "strict"
    if any(component.follows == "strict" for component in pattern.components):
        yield "follows strict"
    if pattern.close == "window":
        yield "close window"


def _forms_of_component(component: Component) -> Iterator[str]:
    if component.times is not None:
        yield "repeated" if component.times.least else "optional"
    if component.until is not None:
        yield "until"
    if component.runs:
        yield "run"
    if component.further is not None:
        yield "further events"
    if component.members:
        yield "disjunction"
    if any(isinstance(node, Previous) for node in walk(component.predicate)):
        yield "prev"


def _is_arithmetic(node: Expr) -> bool:
    return isinstance(node, Call) and node.function in ("+", "-", "*", "/", "%")
