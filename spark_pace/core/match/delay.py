"""How long the matches of a rule are held back, for the rules that read them.

Sources: semantics, section 5.
"""

from __future__ import annotations

from spark_pace.core.match.contexts import context_of
from spark_pace.core.match.contexts.contexts import OneOpen
from spark_pace.core.match.method import method_of
from spark_pace.core.match.release import Waiting
from spark_pace.core.match.spans import next_end
from spark_pace.core.plan.plan import RulePlan
from spark_pace.core.plan.rule import CountSpan, GridSpan, Rule, SessionSpan
from spark_pace.core.plan.shape import shape_of
from spark_pace.core.tables import NO_FRONTIER, UNKNOWN_TIME


def delay_us(rule: Rule) -> int | None:
    """How far `matched_at` can lie before the position at which the match goes out, in microseconds.

    It is the most that the rule allows, whatever the stream. None: there is no bound, for how long a match
    waits depends on when so many events have come.
    """
    if rule.fold is not None or rule.rows is not None:
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
    if isinstance(span, SessionSpan):
        return _of_session(rule, span)
    assert span is not None
    length_us = span.size_us if isinstance(span, GridSpan) else span.within_us
    waits = rule.merge == "selection"
    if pattern is None:  # windows of a grid end one after the other
        waits &= not isinstance(span, GridSpan)
    else:
        waits |= context_of(pattern).waits_for_earlier
    return length_us if waits else 0


def _of_session(rule: Rule, span: SessionSpan) -> int | None:
    """Earlier sessions of the key are over; what waits inside waits for a window there, or for the end."""
    pattern = rule.pattern
    if pattern is None:
        return 0
    is_trailing = bool(shape_of(pattern).trailing)
    to_its_end = is_trailing and rule.merge == "selection"
    if not context_of(pattern).waits_for_earlier and not to_its_end:
        return 0
    lengths_us = [] if span.within_us is None else [span.within_us]
    if not to_its_end and pattern.within is not None and pattern.within.time_us is not None:
        lengths_us.append(pattern.within.time_us * (2 if is_trailing else 1))
    return min(lengths_us, default=None)


def is_awaited(planned: RulePlan) -> bool:
    """Tell whether rules read this one whose matches may wait: they must know of those that do."""
    return planned.is_read and delay_us(planned.rule) != 0


def waits_for_sure(rule: Rule) -> bool:
    """Tell whether what waits are matches, which go out as they are: then each is known from its time on.

    In *next, selected* it depends on the selection that is open whether those behind it have any. What a
    Python operator makes of a span is known only when the operator is called.
    """
    if rule.pattern is None:
        return rule.operator is None
    return not context_of(rule.pattern).waits_for_earlier


def out_before(rule: Rule, frontier_us: int, waiting: Waiting, known_us: int) -> int:
    """The time before which all matches of a rule are out.

    Args:
        rule: the rule.
        frontier_us: the frontier of its events.
        waiting: its matches that wait.
        known_us: the time from which on these are known; of earlier ones only the most is that they may wait.
    """
    if frontier_us in (NO_FRONTIER, UNKNOWN_TIME):
        return frontier_us
    if rule.pattern is None and isinstance(rule.span, GridSpan):  # a match has the time of a window's end
        return next_end(rule.span, frontier_us)
    surely_us = surely_out_before(rule, frontier_us)
    return min(frontier_us, waiting.first_us, surely_us if surely_us < known_us else frontier_us)


def surely_out_before(rule: Rule, frontier_us: int) -> int:
    """The same, as far as the rule alone says it."""
    most_us = delay_us(rule)
    return NO_FRONTIER if most_us is None else max(NO_FRONTIER, frontier_us - most_us)
