"""Which rules are drawn, and of which forms one is: a rule counts for each form that it has."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from hypothesis import strategies as st

from spark_pace.core.expr import Call, Expr, Literal, Previous, walk
from spark_pace.core.plan.conditions import mentions_open
from spark_pace.core.plan.members import as_stated, asked
from spark_pace.core.plan.rule import (
    Component,
    Conjunct,
    Context,
    CountSpan,
    GridSpan,
    Pattern,
    PredicateSpan,
    Rule,
    SessionSpan,
    Within,
)
from spark_pace.core.plan.shape import optional_last_of, shape_of
from tests.support.absence_strategies import absent_rules, with_absences
from tests.support.aggregate_strategies import aggregate_rules
from tests.support.alternative_strategies import alternative_rules
from tests.support.disjunction_strategies import disjunctive_rules
from tests.support.draws import chosen, composite
from tests.support.ending_strategies import ending_rules
from tests.support.fold_strategies import fold_rules, function_rules, machine_rules
from tests.support.form_strategies import (
    changed_components,
    conjunctive_rules,
    open_rules,
    previous_conditions,
    previous_rules,
)
from tests.support.further_strategies import further_rules
from tests.support.grouped_strategies import grouped_rules
from tests.support.neighbour_strategies import neighbouring_rules
from tests.support.optional_strategies import WITH_OPTIONAL_LAST, optional_first_rules, optional_last_rules
from tests.support.previous_strategies import filtered_back, previous_values_rules, valued_back
from tests.support.strategies import (
    CONTEXTS,
    column,
    condition,
    count_spans,
    forgetful,
    grid_spans,
    joined_rules,
    number,
    predicate_spans,
    rules,
    session_spans,
    span_rules,
    spans,
)
from tests.support.streams import SECOND

Rules = st.SearchStrategy[Rule]
FREE = [context for context in CONTEXTS if context.consumption == "zero"]
KINDS = (predicate_spans, grid_spans, count_spans, session_spans)


def with_sum(rule: Rule) -> Rule:
    """The rule with one condition more, over the sum of two components."""
    pattern = rule.pattern
    if pattern is None or len(pattern.components) < 2:
        return rule
    first, second = (component.name for component in pattern.components[:2])
    total = Call("+", (column("x", first), column("y", second)), "BIGINT")
    more = Conjunct(condition("<=", total, number(3)), (0, 1))
    return replace(rule, pattern=replace(pattern, where=(*pattern.where, more)))


def with_coalesce(rule: Rule) -> Rule:
    """The rule with a condition more of which compiled code has no operation: columns test it."""
    pattern, span = rule.pattern, rule.span
    if isinstance(span, PredicateSpan) and span.close_where and pattern is None:
        told = Call("coalesce", (span.close_where[-1], Literal(False, "BOOLEAN")), "BOOLEAN")
        return replace(rule, span=replace(span, close_where=(*span.close_where, told)))
    if pattern is None or pattern.strategy is not None or (pattern.within is None and rule.span is None):
        return rule
    places = [k for k, one in enumerate(pattern.components) if not one.negated and one.times is None]
    if pattern.conditions:
        known, places = as_stated(pattern.conditions[-1]), [*pattern.conditions[-1].components]
    elif len(places) > 1:
        places = places[:2]
        first, second = (pattern.components[k].name for k in places)
        known = condition("<=", column("x", first), column("y", second))
    else:
        return rule
    told = Call("coalesce", (known, Literal(not pattern.conditions, "BOOLEAN")), "BOOLEAN")
    more = replace(asked(told, pattern.components), components=tuple(places))
    return replace(rule, pattern=replace(pattern, where=(*pattern.where, more)))


def in_part_by_columns(rules: Rules) -> Rules:
    """The rules, of which one in three has a condition that columns test."""
    by_columns = st.sampled_from([False, False, True])
    return st.builds(lambda rule, more: with_coalesce(rule) if more else rule, rules, by_columns)


def with_values(rule: Rule) -> Rule:
    """The rule with a condition more, the same one on what opens and on what closes its spans."""
    assert isinstance(rule.span, PredicateSpan)
    known = condition(">=", column("x"), number(0))
    both = (condition("and", one, known) for one in (rule.span.open, rule.span.close))
    return replace(rule, span=replace(rule.span, **dict(zip(("open", "close"), both, strict=True))))


@composite
def carrying_rules(draw: st.DrawFn, context: Context, *, close_window: bool = False) -> Rule:
    """A simple rule without keys, within a time, of which much may be carried; by chance with ``prev``."""
    plain = draw(rules(context, where=chosen(draw, [True, True, False]), close_window=close_window))
    assert plain.pattern is not None
    pattern = replace(plain.pattern, within=Within(time_us=chosen(draw, [100, 8, 5]) * SECOND))
    if draw(st.booleans()):
        pattern = changed_components(draw, pattern, previous_conditions)
    rule = replace(plain, partition_by=(), pattern=pattern)
    return with_sum(rule) if draw(st.booleans()) else rule


def drawn_rules() -> list[Rules]:
    """Rules of each form in each context; each is drawn from in turn."""
    found: list[Rules] = []
    for context in CONTEXTS:
        found += [rules(context, where=False), rules(context, where=True), grouped_rules(context)]
        found += [span_rules(spans(), operator=False, context=context), grouped_rules(context, spans=spans())]
        found += [previous_rules((context,)), grouped_rules(context), absent_rules((context,))]
        if context.selection != "next":
            found += [conjunctive_rules((context,)), conjunctive_rules((context,), spans())]
    found += [conjunctive_rules(CONTEXTS[:1])] * 2
    for kind in KINDS:
        found += [span_rules(kind(), operator=True), aggregate_rules(kind()), aggregate_rules(kind())]
        found += [span_rules(kind(), operator=False, context=CONTEXTS[-1]).map(with_sum)]
        found += [conjunctive_rules(CONTEXTS, kind())]
    found += [grouped_rules(context, spans=predicate_spans()) for context in FREE]
    found += [rules(CONTEXTS[-1], where=True).map(with_sum).flatmap(forgetful)]
    found += [open_rules(predicate_spans()), open_rules(predicate_spans(), conjunction=True, earlier=True)]
    found += [previous_rules(conjunction=True), previous_rules(CONTEXTS, spans())]
    found += [absent_rules(CONTEXTS, kind()) for kind in KINDS]
    found += [each.flatmap(forgetful) for each in found[::4]]
    for context in FREE:
        joined = joined_rules(context)
        found += [joined, joined.map(with_sum), carrying_rules(context), carrying_rules(context)]
    joined = joined_rules(CONTEXTS[0], close_window=True)
    found += [joined, joined.map(with_sum), grouped_rules(CONTEXTS[0], close_window=True)]
    found += [rules(CONTEXTS[0], where=where, close_window=True) for where in (False, True)]
    found += [carrying_rules(CONTEXTS[0], close_window=True)]
    found += [aggregate_rules(predicate_spans()).map(with_values)]
    found += [span_rules(predicate_spans(), operator=True).map(with_values)]
    found += [aggregate_rules(grid_spans()).flatmap(forgetful)]
    found += [rules(CONTEXTS[-1], where=True).map(with_coalesce)]
    found += [previous_rules((CONTEXTS[-1],)).map(with_coalesce)]
    found += [span_rules(predicate_spans(), operator=True).map(with_coalesce)]
    found += [machine_rules(), function_rules(), fold_rules().flatmap(forgetful)]
    return [in_part_by_columns(each) for each in [*found, *_late_rules(found)]]


def _late_rules(others: list[Rules]) -> list[Rules]:
    """Rules of the forms that came last, behind `others`, whose draws they leave as they are."""
    found: list[Rules] = []
    for context in CONTEXTS:
        found += [disjunctive_rules((context,)), disjunctive_rules((context,))]
        found += [previous_values_rules((context,))]
    found += [disjunctive_rules(spans=spans()), disjunctive_rules(conjunction=True)]
    found += [disjunctive_rules(earlier=True), disjunctive_rules(spans=spans(), earlier=True)]
    found += [disjunctive_rules(spans=predicate_spans(), opened=True)]
    found += [disjunctive_rules().flatmap(forgetful), previous_values_rules().flatmap(forgetful)]
    found += [previous_values_rules(spans=spans()), previous_values_rules(conjunction=True, either=True)]
    found += [rules(CONTEXTS[-1], where=True).flatmap(valued_back)] * 2
    found += [aggregate_rules(predicate_spans()).map(with_values)] * 3
    for context in FREE:
        carrying = carrying_rules(context)
        found += [carrying.flatmap(valued_back), carrying.flatmap(filtered_back)]
    absent = [previous_rules(), disjunctive_rules(), previous_values_rules()]
    absent += [rules(CONTEXTS[0], where=True, close_window=True)]
    found += [each.flatmap(with_absences) for each in absent for _ in range(3)]
    found += [each.flatmap(filtered_back) for each in others[1::9]]
    found += [carrying_rules(CONTEXTS[0]).flatmap(with_absences) for _ in range(6)]
    for context in CONTEXTS:
        found += [ending_rules((context,)), ending_rules((context,), spans())]
    found += [ending_rules(either=True), ending_rules(spans=predicate_spans(), opened=True)]
    found += [ending_rules().flatmap(forgetful), ending_rules().flatmap(with_absences)]
    for context in CONTEXTS:
        found += [further_rules((context,)), optional_first_rules((context,))]
    found += [further_rules(spans=spans()), further_rules(spans=predicate_spans(), opened=True)]
    found += [optional_first_rules(spans=spans()), optional_first_rules().flatmap(forgetful)]
    found += [further_rules().flatmap(with_absences) for _ in range(3)]
    for context in WITH_OPTIONAL_LAST:
        found += [optional_last_rules((context,)), optional_last_rules((context,), spans())]
    found += [optional_last_rules().flatmap(forgetful), optional_last_rules().flatmap(with_absences)]
    found += [further_rules().flatmap(forgetful)]
    return [*found, optional_last_rules(spans=predicate_spans(), opened=True), *_latest_rules()]


def _latest_rules() -> list[Rules]:
    """Rules with groups that directly follow each other, and disjunctions of sequences."""
    found = [neighbouring_rules((context,), inside) for context in CONTEXTS for inside in (None, spans())]
    found += [neighbouring_rules(spans=predicate_spans(), opened=True)]
    found += [neighbouring_rules().flatmap(forgetful)]
    for context in CONTEXTS:
        found += [alternative_rules((context,), inside) for inside in (None, None, spans())]
    found += [alternative_rules(spans=predicate_spans(), opened=True), alternative_rules(earlier=True)]
    found += [alternative_rules().flatmap(forgetful), open_rules(predicate_spans(), conjunction=True)]
    return found


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
