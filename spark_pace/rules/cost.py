"""How the matches of a rule are searched, and what that costs: counts and how they grow, no times.

`spark_pace.core.match.search.technique` chooses how matches are searched, and `METHODS` describes each
choice; `tests/unit/rules/test_cost.py` compares them with what a run calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from spark_pace.core.expr.canonical_text import canonical_text
from spark_pace.core.match.contexts import context_of
from spark_pace.core.match.contexts.contexts import (
    EACH_SELECTED,
    EACH_ZERO,
    LATEST_ZERO,
    Backwards,
    UsingUp,
    technique_of,
)
from spark_pace.core.match.method import method_of
from spark_pace.core.match.row_patterns.match_programs import tests_of
from spark_pace.core.match.search.comparison import implied, is_comparison, is_equality
from spark_pace.core.match.search.limits import for_one_event
from spark_pace.core.match.search.technique import choose
from spark_pace.core.order import OrderSpec
from spark_pace.core.plan.members import as_stated
from spark_pace.core.plan.plan import build_plan, holistic, panes_of
from spark_pace.core.plan.row_pattern import RowPattern
from spark_pace.core.plan.rule import (
    Conjunct,
    CountSpan,
    GridSpan,
    Pattern,
    PredicateSpan,
    PythonFold,
    Rule,
    SessionSpan,
    StateMachine,
)
from spark_pace.core.plan.shape import alternative, alternatives_of, places_of, shape_of
from spark_pace.core.split.carry.examined_keys import always_looks

Told: TypeAlias = dict[str, Any]  # what is told, in values that JSON has

METHODS = {
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
    "row by row": "the row pattern is tried, from one event to the next",
}
_BY_PLACE = ("nearest", "nearest set", "in order", "queues", "production_sets")


def cost_of(rule: Rule) -> Told:
    """The cost of a rule, under the keys of ``cost`` in docs/rules/explain.md."""
    plan = build_plan((rule,), order=OrderSpec())
    own = plan.levels[-1].plan if rule.reads else plan  # the rules that it reads are below
    search = None
    if rule.pattern is not None:
        search = _search(rule.pattern)
        dominant, growth = _of_pattern(rule.pattern, search)
        growth += _taken_along(rule.pattern)
    elif rule.rows is not None:
        by_python = any(not one.is_program for one in tests_of(rule.rows))
        search = _told("event", "row by row", not by_python)
        dominant, growth = _of_rows(rule.rows)
    else:
        dominant, growth = _of_others(rule)
    return {
        "conditions_per_event": len(own.predicates),
        "carried": _looked_at(rule),
        "search": search,
        "fields_per_match": len(rule.emit),
        "dominant": dominant,
        "growth": growth + _spans_of_an_event(rule),
    }


def _looked_at(rule: Rule) -> str:
    """When a batch reads a carried event, in words."""
    span, within = rule.span, rule.pattern.within if rule.pattern else None
    if rule.fold is not None:
        return "never, for there is none"
    if isinstance(span, SessionSpan) and not always_looks(rule):
        return "where its session ends"
    join = method_of(rule).join
    if join is not None:
        values = f"of its {join}"
        return f"where a batch brings an event that can end a match {values}, or a window {values} ends"
    told = f"where a batch brings an event{' of its key' if rule.partition_by else ''}"
    told += "" if always_looks(rule) else " that can end a match"
    if isinstance(span, GridSpan | PredicateSpan | SessionSpan):
        return f"{told}, or a span ends"
    within_us = rule.rows.within_us if rule.rows else within.time_us if within else None
    return told if within_us is None else f"{told}, or a window ends"


def _spans_of_an_event(rule: Rule) -> str:
    """The number of times that an event is read because spans overlap, in words; empty if once."""
    span = rule.span
    if isinstance(span, PredicateSpan):
        return "; an event is in every span that is open there"
    if span is None or isinstance(span, SessionSpan):
        return ""
    every, size = (span.every, span.size) if isinstance(span, CountSpan) else (span.every_us, span.size_us)
    return f"; an event is in up to {-(-size // every)} of the spans" if size > every else ""


# ---------------------------------------------------------------- how matches are searched


def _search(pattern: Pattern) -> Told:
    """The search for the matches of a pattern; without the steps of a conjunction."""
    way, shape = context_of(pattern).way, shape_of(pattern)
    technique, steps = technique_of(way, choose(pattern)), len(shape.anchors)
    if steps == 1 and shape.simple and not pattern.where:
        return _told("terminator" if isinstance(way, Backwards | UsingUp) else "initiator", "nearest", False)
    told = technique.each, technique.how, technique.compiled
    if pattern.order != "sequence":
        return _told(*told)
    order = [*range(steps)]
    where = [one for one in pattern.where if not _names_negated(pattern, one.components)]
    if technique.each == "terminator" and technique.how in ("walk", "first candidate", "all candidates"):
        backwards, last = pattern.context == LATEST_ZERO.value, steps - 1
        order = order[::-1] if backwards else [last, *order[:-1]]
        if shape.simple and not backwards:  # an equality with the last event may follow from several
            more, places = implied(pattern), places_of(pattern)
            where += [one for one in more if last in one.components and is_equality(one.expr, places)]
    return _told(*told, _steps(pattern, where, order))


def _told(each: str, method: str, compiled: bool, steps: Sequence[Told] = ()) -> Told:
    how = {"each": each, "method": method, "how": METHODS[method], "compiled": compiled}
    return {**how, "steps": [*steps]}


def _steps(pattern: Pattern, where: list[Conjunct], order: list[int]) -> list[Told]:
    """The steps of a search after the first one, if it places the anchors in this order."""
    shape, places = shape_of(pattern), places_of(pattern)
    gaps = {gap.group: {place, place + 1} for place, gap in enumerate(shape.gaps)}
    needed = [
        {at for one in c.components for at in gaps.get(one) or {shape.anchors.index(one)}} for c in where
    ]
    found = []
    for step, own in enumerate(order[1:], 2):
        placed = {*order[:step]}
        exprs = {
            one.expr: canonical_text(as_stated(one))
            for one, anchors in zip(where, needed, strict=True)
            if own in anchors <= placed
        }
        compared = [expr for expr in exprs if is_comparison(expr, places)]
        equality = next((expr for expr in compared if is_equality(expr, places)), None)
        told = {
            "component": pattern.components[shape.anchors[own]].name,
            "found": "by place" if equality is None else "by equality",
            "equality": None if equality is None else exprs[equality],
            "ranked": [exprs[expr] for expr in compared if expr != equality],
            "evaluated": [text for expr, text in exprs.items() if expr not in compared],
            "between": not shape.simple,
        }
        found.append(told)
    return found


def _names_negated(pattern: Pattern, components: tuple[int, ...]) -> bool:
    return any(pattern.components[index].negated for index in components)


# ---------------------------------------------------------------- how it grows


def _of_pattern(pattern: Pattern, search: Told) -> tuple[str, str]:
    """What grows fastest for a pattern, and how it grows, in words.

    Of a disjunction it is what grows fastest for one of its alternatives.
    """
    if pattern.order == "disjunction":
        parts = [alternative(pattern, own) for own in alternatives_of(pattern)]
        found = [_of_pattern(part, _search(part)) for part in parts]
        told = [
            f"{', then '.join(one.name for one in part.components)}: {growth}"
            for part, (_, growth) in zip(parts, found, strict=True)
        ]
        return next((one for one, _ in found if one != "events"), "events"), "; ".join(told)
    method, each, steps = search["method"], search["each"], search["steps"]
    where = _reach(pattern)
    tested, pools = [step for step in steps if _is_tested(step)], [_pool(step, where) for step in steps]
    if pattern.order == "conjunction":
        pools = [f"events of another component {where}"] * (len(pattern.components) - 1)
    if not pools:
        return "events", "their number; each that matches is a match"
    product = " × ".join([f"{each}s", *pools])
    every = pattern.context in (EACH_ZERO.value, EACH_SELECTED.value)
    if every and pattern.close == "window":
        return "candidates", product
    if every and len(pools) > 1:
        return "candidates", f"{product.removesuffix(f' × {pools[-1]}')}: all that end at the closing event"
    if method in _BY_PLACE or (method == "walk" and not tested):
        return "events", f"their number, and that of matches: a binary search for each step of each {each}"
    if method == "walk":
        one_by_one = " + ".join(_pool(step, where) for step in tested)
        return "tests", f"{each}s × ({one_by_one}), at most: until one fits"
    return "candidates", f"{product}, at most"


def _is_tested(step: Told) -> bool:
    """True if not just the next event is taken, nor the next one of an equal value."""
    return bool(step["ranked"] or step["evaluated"] or step["between"])


def _pool(step: Told, where: str) -> str:
    """The events that a step may take, in words."""
    equal = f" with {step['equality']}" if step["equality"] else ""
    return f"events of {step['component']} {where}{equal}"


def _reach(pattern: Pattern) -> str:
    """Where the other events of a match can be, in words."""
    if pattern.within is not None:
        return "in its window"
    return "around it" if pattern.order == "conjunction" else "behind it"


def _taken_along(pattern: Pattern) -> str:
    """How the event is sought that an optional component in last place takes, if conditions say which."""
    if not pattern.taking:
        return ""
    one = for_one_event(pattern)
    where = [each for each in one.where if not _names_negated(one, each.components)]
    step = _steps(one, where, [*range(len(shape_of(one).anchors))])[-1]
    if _is_tested(step):
        return f"; for each match {_pool(step, _reach(pattern))}, at most: until one fits"
    return f"; a binary search for {step['component']} for each match"


def _of_rows(rows: RowPattern) -> tuple[str, str]:
    if any(one.of_match for one in rows.conditions):
        return "tests", f"of ways through the pattern, {rows.most_steps:,} steps from one event at most"
    window = "" if rows.within_us is None else " × events of a window"
    return "tests", f"their number{window} × size of the pattern, at most"


def _of_others(rule: Rule) -> tuple[str, str]:
    """What grows fastest for a fold, for an operator on spans or for aggregates, and how, in words."""
    if isinstance(rule.fold, PythonFold):
        return "calls", "each event: one call; of a function that takes tables one a key and batch"
    if isinstance(rule.fold, StateMachine):
        states, moves = range(len(rule.fold.states)), rule.fold.moves
        most = max(sum(state in move.sources for move in moves) for state in states)
        return "events", f"their number × moves of a state, {most} at most: the first that fits is taken"
    if rule.operator is not None:
        return "calls", "each span: one call with its events"
    if panes_of(rule) is not None:
        return "events", "their number once, then that of panes, and that of spans"
    if holistic(rule):
        return "events", "their number × the spans that each is in, whose values are sorted for each span"
    return "events", "their number, and that of spans: no event is looked at for each of its spans"
