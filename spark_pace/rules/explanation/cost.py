"""Says what a rule costs, in counts and how they grow, not in times.

`spark_pace.core.match.search.technique` chooses how matches are searched, and `METHODS` describes each
choice; `tests/unit/rules/explanation/test_cost.py` compares them with what a run calls.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from spark_pace.core.columns import MASK, SEQ, TIME
from spark_pace.core.expr import ARROW_TYPES
from spark_pace.core.expr.canonical_text import canonical_text
from spark_pace.core.match.contexts import context_of
from spark_pace.core.match.contexts.context import Backwards, UsingUp, technique_of
from spark_pace.core.match.contexts.each_selected import EACH_SELECTED
from spark_pace.core.match.contexts.each_zero import EACH_ZERO
from spark_pace.core.match.contexts.latest_zero import LATEST_ZERO
from spark_pace.core.match.method import method_of
from spark_pace.core.match.search.any_order import search_of
from spark_pace.core.match.search.comparison import is_comparison, is_equality
from spark_pace.core.match.search.optional_last import for_one_event
from spark_pace.core.match.search.row_tables import names_of
from spark_pace.core.match.search.search import Search
from spark_pace.core.match.search.technique import Begin, How
from spark_pace.core.match.stream import Stream
from spark_pace.core.order.order import OrderSpec
from spark_pace.core.plan.fold import Fold, PythonFold
from spark_pace.core.plan.members import as_stated
from spark_pace.core.plan.panes import holistic, panes_of
from spark_pace.core.plan.plan import build_plan
from spark_pace.core.plan.rule import (
    Conjunct,
    CountSpan,
    GridSpan,
    Pattern,
    PredicateSpan,
    Rule,
    SessionSpan,
)
from spark_pace.core.plan.shape import alternative, alternatives_of
from spark_pace.core.split.carry.wake_conditions import always_looks
from spark_pace.rules.explanation.facts import Cost, SearchCost, StepCost
from spark_pace.rules.explanation.row_pattern_facts import growth_of_rows

METHODS: dict[How, str] = {
    "nearest": "each step takes the nearest event",
    "walk": "each step takes the first event that fits, and keeps it",
    "first candidate": "depth first, with second thoughts, up to the first candidate",
    "all candidates": "all candidates are made, step by step, and compared",
    "nearest set": "the nearest events that stand for all components",
    "any order": "components in any order, depth first, with second thoughts",
    "alternatives": "each alternative by itself, as a sequence is",
    "in order": "each step takes the earliest event that is not used up",
    "in turn": "terminators one after the other, each among the events that are not used up",
    "queues": "each event serves the partial candidate that has waited longest, by columns",
    "production_sets": "each event joins the earliest partial candidate that waits for it",
    "merger_filter": "candidates are made in order; one that needs a used event is dropped",
}


def cost_of(rule: Rule) -> Cost:
    """The cost of a rule."""
    plan = build_plan((rule,), order=OrderSpec())
    own = plan.levels[-1].plan if rule.reads else plan  # the rules that it reads are below
    predicates = len(own.predicates)
    if rule.pattern is None:
        if rule.rows is not None:
            dominant, growth = growth_of_rows(rule.rows)
        else:
            dominant, growth = _of_whole_spans(rule) if rule.fold is None else _of_fold(rule.fold)
        growth += _spans_of_an_event(rule)
        return Cost(predicates, _looked_at(rule), None, len(rule.emit), dominant, growth)
    search = _search_cost(rule, rule.pattern)
    dominant, growth = _growth_of(rule, rule.pattern, search)
    growth += _taken_along(rule, rule.pattern) + _spans_of_an_event(rule)
    return Cost(predicates, _looked_at(rule), search, len(rule.emit), dominant, growth)


def _growth_of(rule: Rule, pattern: Pattern, search: SearchCost) -> tuple[str, str]:
    """What grows fastest for a pattern, and how it grows, in words: `Cost.dominant` and `Cost.growth`.

    Of a disjunction it is what grows fastest for one of its alternatives.
    """
    if pattern.order != "disjunction":
        return (_growth_of_conjunction if pattern.order == "conjunction" else _growth)(pattern, search)
    found = []
    for own in alternatives_of(pattern):
        part = alternative(pattern, own)
        dominant, growth = _growth(part, _search_cost(rule, part))
        found.append((dominant, f"{', then '.join(one.name for one in part.components)}: {growth}"))
    dominant = next((one for one, _ in found if one != "events"), "events")
    return dominant, "; ".join(growth for _, growth in found)


def _growth_of_conjunction(pattern: Pattern, search: SearchCost) -> tuple[str, str]:
    """What grows fastest for a conjunction, and how it grows, in words: `Cost.dominant` and `Cost.growth`."""
    others = len(pattern.components) - 1
    every = pattern.context in (EACH_ZERO.value, EACH_SELECTED.value)
    if not others:
        return "events", "their number; each that matches is a match"
    if search.method == "nearest set" and not (every and (others > 1 or pattern.close == "window")):
        searches = f"a binary search for each other component of each {search.each}"
        return "events", f"their number, and that of matches: {searches}"
    if search.method == "in order":
        return "events", "their number, and that of matches, if no event matches two components"
    where = "around it" if pattern.within is None else "in its window"
    of = "the other component" if others == 1 else f"each of the {others} other components"
    return "candidates", f"{search.each}s × events of {of} {where}, at most"


def _of_fold(fold: Fold) -> tuple[str, str]:
    """What grows fastest for a fold, and how it grows, in words."""
    if isinstance(fold, PythonFold):
        return "calls", "each event: one call; of a function that takes tables one a key and batch"
    most = max(sum(state in move.sources for move in fold.moves) for state in range(len(fold.states)))
    return "events", f"their number × moves of a state, {most} at most: the first that fits is taken"


def _of_whole_spans(rule: Rule) -> tuple[str, str]:
    """What grows fastest for an operator on spans or for aggregates, and how it grows, in words."""
    if rule.operator is not None:
        return "calls", "each span: one call with its events"
    if panes_of(rule) is not None:
        return "events", "their number once, then that of panes, and that of spans"
    if holistic(rule):
        return "events", "their number × the spans that each is in, whose values are sorted for each span"
    return "events", "their number, and that of spans: no event is looked at for each of its spans"


def _looked_at(rule: Rule) -> str:
    """When a batch reads a carried event, in words."""
    if rule.fold is not None:
        return "never, for there is none"
    if isinstance(rule.span, SessionSpan) and not always_looks(rule):
        return "where its session ends"
    join = method_of(rule).join
    if join is not None:
        values = f"of its {join}"
        return f"where a batch brings an event that can end a match {values}, or a window {values} ends"
    whose = " of its key" if rule.partition_by else ""
    ends = "" if always_looks(rule) else " that can end a match"
    return f"where a batch brings an event{whose}{ends}{_or_ends(rule)}"


def _or_ends(rule: Rule) -> str:
    span, within = rule.span, rule.pattern.within if rule.pattern else None
    if rule.rows is not None:
        return ", or a window ends" if rule.rows.within_us is not None else ""
    if isinstance(span, GridSpan | PredicateSpan | SessionSpan):
        return ", or a span ends"
    return ", or a window ends" if within is not None and within.time_us is not None else ""


def _spans_of_an_event(rule: Rule) -> str:
    """The number of times that an event is read because spans overlap, in words; empty if once."""
    if isinstance(rule.span, PredicateSpan):
        return "; an event is in every span that is open there"
    if rule.span is None or isinstance(rule.span, SessionSpan):
        return ""
    sizes = (rule.span.size, rule.span.every) if isinstance(rule.span, CountSpan) else None
    size, every = sizes or (rule.span.size_us, rule.span.every_us)  # type: ignore[union-attr]
    return f"; an event is in up to {-(-size // every)} of the spans" if size > every else ""


def _search_cost(rule: Rule, pattern: Pattern) -> SearchCost:
    """The search for matches; without the steps of a conjunction."""
    way, search = context_of(pattern).way, search_of(_no_events(rule), pattern)
    technique = technique_of(way, search.techniques)
    if search.steps == 1 and search.plain:
        each: Begin = "terminator" if isinstance(way, Backwards | UsingUp) else "initiator"
        return SearchCost(each, "nearest", False, ())
    if pattern.order != "sequence":
        return SearchCost(technique.each, technique.how, technique.compiled, ())
    order, last, latest = [*range(search.steps)], search.steps - 1, pattern.context == LATEST_ZERO.value
    if technique.each == "terminator" and technique.how in ("walk", "first candidate", "all candidates"):
        if not search.simple:
            order = order[::-1] if latest else [last, *order[:-1]]
        else:
            search = search.mirrored() if latest else search.rotated()
    return SearchCost(technique.each, technique.how, technique.compiled, _steps(search, order))


def _steps(search: Search, order: list[int]) -> tuple[StepCost, ...]:
    """The steps of a search after the first one, if it places the anchors in this order."""
    negated = {k for k, component in enumerate(search.pattern.components) if component.negated}
    asked = [one for one in search.pattern.where if negated.isdisjoint(one.components)]
    found, placed = [], 1 << order[0]
    for own in order[1:]:
        placed |= 1 << own
        names = [(one, names_of(search, one.components)) for one in asked]
        decided = [one for one, mask in names if mask >> own & 1 and not mask & ~placed]
        found.append(_step(search, own, decided))
    return tuple(found)


def _step(search: Search, own: int, conjuncts: list[Conjunct]) -> StepCost:
    """The step that places an anchor, at which these conditions are tested."""
    exprs = [one.expr for one in conjuncts]
    stated = {one.expr: canonical_text(as_stated(one)) for one in conjuncts}
    compared = [expr for expr in exprs if is_comparison(expr, search.places)]
    equality = next((expr for expr in compared if is_equality(expr, search.places)), None)
    return StepCost(
        component=search.pattern.components[search.between.shape.anchors[own]].name,
        found="by place" if equality is None else "by equality",
        equality=None if equality is None else stated[equality],
        ranked=tuple(stated[expr] for expr in compared if expr != equality),
        evaluated=tuple(stated[expr] for expr in exprs if expr not in compared),
        between=not search.simple,
    )


def _no_events(rule: Rule) -> Stream:
    columns = {TIME: pa.array([], pa.int64()), SEQ: pa.array([], pa.int64()), MASK: pa.array([], pa.uint16())}
    columns |= {field.name: pa.array([], ARROW_TYPES[field.type]) for field in rule.schema.fields}
    return Stream(pa.table(columns), np.zeros(0, np.int64))


def _growth(pattern: Pattern, search: SearchCost) -> tuple[str, str]:
    """What grows fastest for a sequence, and how it grows, in words."""
    if not search.steps:
        return "events", "their number; each that matches is a match"
    every = f"{search.each}s"
    where = "behind it" if pattern.within is None else "in its window"
    tested = [step for step in search.steps if step.ranked or step.evaluated or step.between]
    pools = [_pool(step, where) for step in search.steps]
    one_by_one = [_pool(step, where) for step in tested]
    every_one = pattern.context in (EACH_ZERO.value, EACH_SELECTED.value)
    if every_one and pattern.close == "window":
        return "candidates", " × ".join([every, *pools])
    if every_one and len(pools) > 1:
        return "candidates", f"{' × '.join([every, *pools[:-1]])}: all that end at the closing event"
    if search.method in ("nearest", "in order", "queues", "production_sets") or (
        search.method == "walk" and not tested
    ):
        return (
            "events",
            f"their number, and that of matches: a binary search for a step of each {search.each}",
        )
    if search.method == "walk":
        return "tests", f"{every} × ({' + '.join(one_by_one)}), at most: until one fits"
    return "candidates", f"{' × '.join([every, *pools])}, at most"


def _taken_along(rule: Rule, pattern: Pattern) -> str:
    """How the event is sought that an optional component in last place takes, if conditions say which."""
    if not pattern.taking:
        return ""
    follower = search_of(_no_events(rule), for_one_event(pattern))
    step = _steps(follower, [*range(follower.steps)])[-1]
    if not (step.ranked or step.evaluated or step.between):
        return f"; a binary search for {step.component} for each match"
    return f"; for each match {_pool(step, 'in its window')}, at most: until one fits"


def _pool(step: StepCost, where: str) -> str:
    """The events that a step may take, in words."""
    equal = f" with {step.equality}" if step.equality else ""
    return f"events of {step.component} {where}{equal}"
