"""Which keys a batch must look at: those that it can close a selection of, or release a match of.

A key of which only events came that cannot end a match need not be looked at: its events are added to the
carry as they are. A key of which no event came must be looked at when one of its windows ends.
"""

from __future__ import annotations

from spark_pace.core.columns import NO_FRONTIER, OPEN_BIT, UNKNOWN_TIME
from spark_pace.core.match.contexts import context_of
from spark_pace.core.match.contexts.context import Backwards, UsingUp
from spark_pace.core.plan.rule import GridSpan, PredicateSpan, Rule
from spark_pace.core.split.carry.chunk import ALL_WAKE


def wake_bit(rule: Rule) -> int | None:
    """Which events wake their key when the window that starts at them is over, see `Carry`."""
    if isinstance(rule.span, PredicateSpan):
        return OPEN_BIT
    if isinstance(rule.span, GridSpan):
        return ALL_WAKE
    return None if window_us(rule) is None else 0


def window_us(rule: Rule) -> int | None:
    """How long the window is that starts at an event; None where no such window ends by time alone."""
    if isinstance(rule.span, PredicateSpan):
        return rule.span.within_us
    if rule.span is not None or rule.pattern is None or rule.pattern.within is None:
        return None
    return rule.pattern.within.time_us


def woken_times(rule: Rule, passed_us: int, frontier_us: int) -> tuple[int, int]:
    """The range of event times of which events wake their keys when the frontier moves.

    Args:
        rule: the rule.
        passed_us: the frontier before.
        frontier_us: the frontier now; the input has not ended.
    """
    if passed_us == NO_FRONTIER or frontier_us == UNKNOWN_TIME:
        return NO_FRONTIER, NO_FRONTIER
    if isinstance(rule.span, GridSpan):
        size, every = rule.span.size_us, rule.span.every_us
        first, last = -((size - 1 - passed_us) // every), (frontier_us - size) // every
        return (first * every, last * every + size) if first <= last else (NO_FRONTIER, NO_FRONTIER)
    length = window_us(rule)
    return (NO_FRONTIER, NO_FRONTIER) if length is None else (passed_us - length, frontier_us - length)


def always_looks(rule: Rule) -> bool:
    """Whether every event of a key makes a look at its carry needful.

    It is so for spans; for windows of a number of events, which any event can end; and where, without a
    window, not all events since the oldest open selection are carried.
    """
    if rule.span is not None or rule.pattern is None:
        return True
    if rule.pattern.within is not None:
        return rule.pattern.within.events is not None
    way = context_of(rule.pattern).way
    return isinstance(way, Backwards) or (isinstance(way, UsingUp) and not rule.pattern.where)
