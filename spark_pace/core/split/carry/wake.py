"""Which keys a batch must look at: those of which it can close a selection or release a match.

A key of which only events came that cannot end a match need not be looked at: its events are added to the
carry as they are. A key must be looked at, whether events of it came or not, when a window of it ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from spark_pace.core.columns import OPEN_BIT, TIME
from spark_pace.core.match.contexts import context_of
from spark_pace.core.match.contexts.context import Backwards, UsingUp
from spark_pace.core.plan.plan import RulePlan
from spark_pace.core.plan.rule import GridSpan, Pattern, PredicateSpan, Rule
from spark_pace.core.plan.shape import shape_of


@dataclass(frozen=True)
class Wake:
    """The events that wake their keys as the frontier moves.

    Attributes:
        bit: the bit of ``@mask`` that these events have; None: any event may wake its key.
        low: the least value that they have in the column.
        high: the first value that is too great.
        column: the name of a column of int64.
        newest: whether only the last event of a key is asked, for no key has events from `high` on.
    """

    bit: int | None
    low: int
    high: int
    column: str = TIME
    newest: bool = False


def wakes(rules: Sequence[RulePlan], passed_us: int, frontier_us: int) -> Iterator[Wake]:
    """Which events wake their keys: those of windows whose end the frontier has passed in this batch.

    For a window that begins with an event this event wakes the key. Of grids the last event of a key does: it
    lies before the ends of all windows that end now, so it is in one of them if any event is.

    Args:
        rules: the rule, or rules that share panes.
        passed_us: the frontier before the batch, which is not `NO_FRONTIER`.
        frontier_us: the frontier now; the input has not ended.
    """
    span, pattern = rules[0].rule.span, rules[0].rule.pattern
    if isinstance(span, GridSpan):
        grids = {planned.rule.span for planned in rules}
        ended = [_ended(grid, passed_us, frontier_us) for grid in grids if isinstance(grid, GridSpan)]
        if held := [(first, end) for first, end in ended if first < end]:
            yield Wake(None, min(first for first, _ in held), max(end for _, end in held), newest=True)
    if isinstance(span, PredicateSpan):
        yield Wake(OPEN_BIT, passed_us - span.within_us, frontier_us - span.within_us)
    length = None if pattern is None or pattern.within is None else pattern.within.time_us
    if pattern is not None and length is not None and (span is None or _window_counts(pattern)):
        yield Wake(opening_bit(pattern), passed_us - length, frontier_us - length)


def _ended(span: GridSpan, passed_us: int, frontier_us: int) -> tuple[int, int]:
    """The start of the first window that has ended in this batch, and the end of the last one; or 0 twice."""
    first = -((span.size_us - 1 - passed_us) // span.every_us)
    last = (frontier_us - span.size_us) // span.every_us
    return (first * span.every_us, last * span.every_us + span.size_us) if first <= last else (0, 0)


def _window_counts(pattern: Pattern) -> bool:
    """Tell whether matches of a pattern in a span may wait for the ends of the pattern's windows.

    They do where a negation in last place decides, or where a match waits for all selections before its own.
    """
    return bool(shape_of(pattern).trailing) or context_of(pattern).waits_for_earlier


def opening_bit(pattern: Pattern) -> int | None:
    """The bit of ``@mask`` that an initiator has; None: any event may be one, as in a conjunction."""
    return None if pattern.order == "conjunction" else 0


def always_looks(rule: Rule) -> bool:
    """Tell whether a batch must look at every key of which an event has come.

    It must for folds and spans; for windows of a number of events, which any event can end; and where,
    without a window, not all events since the oldest open selection are carried.
    """
    if rule.span is not None or rule.pattern is None:
        return True
    if rule.pattern.within is not None:
        return rule.pattern.within.events is not None
    way = context_of(rule.pattern).way
    return isinstance(way, Backwards) or (isinstance(way, UsingUp) and not rule.pattern.where)
