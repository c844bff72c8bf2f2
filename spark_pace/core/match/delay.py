"""How long the matches of a rule can be held back, for the rules that read them.

Sources: semantics, section 5.
"""

from __future__ import annotations

from spark_pace.core.columns import NO_FRONTIER, UNKNOWN_TIME
from spark_pace.core.match.contexts import context_of
from spark_pace.core.match.contexts.context import OneOpen
from spark_pace.core.match.method import method_of
from spark_pace.core.plan.rule import CountSpan, GridSpan, Rule
from spark_pace.core.plan.shape import shape_of


def delay_us(rule: Rule) -> int | None:
    """How far `matched_at` can lie before the position at which the match goes out, in microseconds.

    It is the most that the rule allows, whatever the stream. None: there is no bound, for how long a match
    waits depends on when so many events have come.
    """
    if rule.fold is not None:
        return 0
    if rule.span is not None:
        return _of_span(rule)
    pattern, method = rule.pattern, method_of(rule)
    assert pattern is not None
    is_trailing = bool(shape_of(pattern).trailing)
    # of selections one after the other, none is open when the next one closes
    in_turn = isinstance(method.way, OneOpen) and method.way.inside is not None
    waits = method.waits and not in_turn
    if not waits and not is_trailing:
        return 0
    if pattern.within is None or pattern.within.time_us is None:
        return None
    if not waits:  # the end of the window that decides is the match's time
        return 0
    # the selections before its own were opened before it was; their matches, which may have to come first,
    # are decided a window after their last event
    return pattern.within.time_us * (2 if is_trailing else 1)


def _of_span(rule: Rule) -> int | None:
    span, pattern = rule.span, rule.pattern
    if isinstance(span, CountSpan):
        return 0 if pattern is None else None
    assert span is not None
    length_us = span.size_us if isinstance(span, GridSpan) else span.within_us
    waits = rule.merge == "selection"
    if pattern is None:  # windows of a grid end one after the other
        waits &= not isinstance(span, GridSpan)
    else:
        waits |= context_of(pattern).waits_for_earlier
    return length_us if waits else 0


def matched_before(rule: Rule, frontier_us: int) -> int:
    """The time before which all matches of the rule are out, if the frontier of its events is this one."""
    if frontier_us in (NO_FRONTIER, UNKNOWN_TIME):
        return frontier_us
    most_us = delay_us(rule)
    return NO_FRONTIER if most_us is None else max(NO_FRONTIER, frontier_us - most_us)
