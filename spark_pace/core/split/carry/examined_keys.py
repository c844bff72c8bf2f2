"""Which keys a batch must examine, and which it forgets.

It examines those in which it can close a selection or release a match, and forgets those without events for
longer than the rule's `forget_key_after`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from spark_pace.core.match.contexts import context_of
from spark_pace.core.match.contexts.contexts import Backwards, UsingUp
from spark_pace.core.plan.plan import RulePlan
from spark_pace.core.plan.rule import GridSpan, Pattern, PredicateSpan, Rule, SessionSpan
from spark_pace.core.plan.shape import initiator_bits, shape_of
from spark_pace.core.tables import NO_FRONTIER, NOTHING_US, OPEN_BIT, TIME, UNKNOWN_TIME, Bools, Ints


@dataclass(frozen=True)
class Wake:
    """A condition on carried events: one that satisfies it wakes its key, because a window has ended.

    Attributes:
        bit: the bit of ``@mask`` that the event must have; None: any event will do.
        low: the least value in the column.
        high: the end of the range of values; it is not in it.
        column: the name of a column of int64.
        newest: True to test only the last event of a key, because an earlier one ends nothing.
    """

    bit: int | None
    low: int
    high: int
    column: str = TIME
    newest: bool = False


def wakes(rules: Sequence[RulePlan], passed_us: int, frontier_us: int) -> Iterator[Wake]:
    """Find the events that wake their keys: those of windows whose end the frontier passes in this batch.

    If a window begins with an event, that event wakes the key. On grids the last event of a key does: it is
    before the ends of all windows that end now, so it is in one of them if any event is. It also wakes the
    key where the gap behind it ends a session, and so does the first event of a session that is too long.

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
    rows = rules[0].rule.rows
    if rows is not None and rows.within_us is not None:
        yield Wake(None, passed_us - rows.within_us + 1, frontier_us - rows.within_us + 1)
    if isinstance(span, PredicateSpan):
        yield Wake(OPEN_BIT, passed_us - span.within_us, frontier_us - span.within_us)
    if isinstance(span, SessionSpan):
        yield Wake(None, passed_us - span.gap_us, frontier_us - span.gap_us, newest=True)
        if span.within_us is not None:  # the carried events of a key begin with the first of its session
            yield Wake(None, passed_us - span.within_us, frontier_us - span.within_us)
    length = None if pattern is None or pattern.within is None else pattern.within.time_us
    if pattern is not None and length is not None and (span is None or _window_counts(pattern)):
        yield Wake(opening_bit(pattern), passed_us - length, frontier_us - length)


def _ended(span: GridSpan, passed_us: int, frontier_us: int) -> tuple[int, int]:
    """The start of the first window that ends in this batch, and the end of the last one; (0, 0) if none."""
    first = -((span.size_us - 1 - passed_us) // span.every_us)
    last = (frontier_us - span.size_us) // span.every_us
    return (first * span.every_us, last * span.every_us + span.size_us) if first <= last else (0, 0)


def _window_counts(pattern: Pattern) -> bool:
    """True if matches of a pattern in a span may wait for the ends of the pattern's windows.

    They do if the pattern ends with a negated or an optional component, or if a match waits for all earlier
    selections.
    """
    return bool(shape_of(pattern).trailing) or context_of(pattern).waits_for_earlier


def opening_bit(pattern: Pattern) -> int | None:
    """The bit of ``@mask`` that initiators have; None where any of several makes an event one."""
    return 0 if initiator_bits(pattern) == 1 else None


def always_looks(rule: Rule) -> bool:
    """True if a batch must examine every key with new events.

    It must for folds, row patterns and spans, and for windows of a number of events, which any event can end.
    Without a window it must if not all events since the oldest open selection are carried. It need not for
    sessions with nothing to find in them before they end: new events belong to the open session of a key that
    no time wakes, and do not end it.
    """
    if isinstance(rule.span, SessionSpan):
        return rule.pattern is not None
    if rule.span is not None or rule.pattern is None:
        return True
    if rule.pattern.within is not None:
        return rule.pattern.within.events is not None
    way = context_of(rule.pattern).way
    return isinstance(way, Backwards) or (isinstance(way, UsingUp) and not rule.pattern.where)


@dataclass(frozen=True)
class Forgetting:
    """Tells when keys of a rule are forgotten.

    Attributes:
        after_us: the longest gap between two events of a stream.
        passed_us: the frontier before the batch.
        frontier_us: the frontier now.
    """

    after_us: int
    passed_us: int
    frontier_us: int

    def before(self, last_us: Ints) -> Bools:
        """bool[k], which streams with these last event times had ended before the batch."""
        return last_us < self._bound(self.passed_us)

    def by_now(self, last_us: Ints) -> Bools:
        """bool[k], which streams have ended by now."""
        return last_us < self._bound(self.frontier_us)

    def for_good(self, last_us: Ints) -> Bools:
        """bool[k], which streams have ended and are not read again in this batch.

        At the end of the input every stream ends, but the keys are processed one part after the other.
        """
        return self.before(last_us) if self.frontier_us == UNKNOWN_TIME else self.by_now(last_us)

    def bounds(self) -> tuple[int, int]:
        """(low, high): a stream ends in this batch if its last event time is in [low, high)."""
        return self._bound(self.passed_us), self._bound(self.frontier_us)

    def _bound(self, frontier_us: int) -> int:
        return NOTHING_US if frontier_us == NO_FRONTIER else frontier_us - self.after_us
