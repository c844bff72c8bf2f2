"""Explicit spans: which events open a selection, and where it ends.

Sources: the general form of PACE (Mayer, Tariq, Rothermel 2017; Siddam 2015, section 3.3);
semantics, section 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from spark_pace.core.expr import Literal
from spark_pace.core.match.candidates import Ranges
from spark_pace.core.match.first import walk
from spark_pace.core.match.release import earlier_resolved
from spark_pace.core.match.search.search import Search
from spark_pace.core.match.stream import Horizon, Positions, Stream, window_end, window_ends
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
from spark_pace.core.ranks import expand, reached
from spark_pace.core.tables import (
    CLOSE_BIT,
    NO_FRONTIER,
    OPEN_BIT,
    OPENING,
    UNKNOWN_CODE,
    UNKNOWN_TIME,
    Bools,
    Ints,
    numbers,
)


@dataclass(frozen=True)
class SpanRows:
    """Explicit spans by rows of a stream, in ascending order of their selections.

    Attributes:
        start: int64[s], the first row.
        end: int64[s], the row after the last one known.
        selection_id: int64[s].
        opened_us: int64[s], event time of the first event; of a grid span, the window's start.
        close: int64[s], the row of the event that closed it; -1 where no event has.
        resolved_at: where each span ends; unknown while it is open.
        base: where the last of the spans before it in its segment is resolved.
    """

    start: Ints
    end: Ints
    selection_id: Ints
    opened_us: Ints
    close: Ints
    resolved_at: Positions
    base: Positions

    def take(self, index: Ints) -> SpanRows:
        """The spans at these indices."""
        start, end, close = self.start[index], self.end[index], self.close[index]
        ids, opened_us = self.selection_id[index], self.opened_us[index]
        return SpanRows(
            start, end, ids, opened_us, close, self.resolved_at.take(index), self.base.take(index)
        )

    @property
    def unresolved(self) -> Bools:
        """bool[s], which spans are still open."""
        return self.resolved_at.time == UNKNOWN_TIME  # type: ignore[no-any-return]


def joined(parts: Sequence[SpanRows]) -> SpanRows:
    """The spans of all parts, one part after the other."""
    if len(parts) == 1:
        return parts[0]
    start, end, ids, opened_us, close = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("start", "end", "selection_id", "opened_us", "close")
    )
    resolved_at, base = (
        Positions(np.concatenate([at.code for at in many]), np.concatenate([at.time for at in many]))
        for many in ([part.resolved_at for part in parts], [part.base for part in parts])
    )
    return SpanRows(start, end, ids, opened_us, close, resolved_at, base)


def spans_of(stream: Stream, rule: Rule, horizon: Horizon, passed_us: int, next_ids: Ints) -> SpanRows:
    """Every span that opens in a stream.

    Args:
        stream: the events from the start of the first span that was open before.
        rule: a rule with a span.
        horizon: what is known of the future.
        passed_us: the frontier before; grid windows that had ended then are left out.
        next_ids: int64[segments], of windows on a grid and sessions, the id of the first one that was open.
    """
    if isinstance(rule.span, PredicateSpan):
        return _predicate_spans(stream, rule.span, horizon)
    if isinstance(rule.span, GridSpan):
        return Windows.of(stream, rule.span, passed_us).spans(horizon, next_ids)
    if isinstance(rule.span, SessionSpan):
        return _sessions(stream, rule.span, horizon, next_ids)
    assert isinstance(rule.span, CountSpan)
    return _count_spans(stream, rule.span)


def _with_base(stream: Stream, spans: SpanRows) -> SpanRows:
    """The spans with their `base`."""
    segment = stream.segment[spans.start]
    return replace(spans, base=earlier_resolved(spans.resolved_at, segment, stream.starts[segment]))


def _predicate_spans(stream: Stream, span: PredicateSpan, horizon: Horizon) -> SpanRows:
    """An event that satisfies P_s opens; the first later event that satisfies P_c closes."""
    start = stream.matching(OPEN_BIT)
    within = Within(time_us=span.within_us)
    end = window_end(stream, start, within)
    close = np.full(len(start), -1, np.int64)
    index, matrix = walk(_opening_to_closing(stream, span), Ranges(start, start, end))
    close[index] = matrix[:, 1]
    closed = close >= 0
    ends = window_ends(stream, start, within, horizon)
    at = np.where(closed, close, 0)
    time = stream.time[at] if stream.rows else at
    resolved_at = Positions(np.where(closed, 2 * at, ends.code), np.where(closed, time, ends.time))
    ids = numbers(stream.events, OPENING)[start]
    end = np.where(closed, close + 1, end)
    return _with_base(stream, SpanRows(start, end, ids, stream.time[start], close, resolved_at, resolved_at))


def _opening_to_closing(stream: Stream, span: PredicateSpan) -> Search:
    """The opening and the closing event as a sequence of two components; the closing one has no name."""
    true = Literal(True, "BOOLEAN")
    where = tuple(Conjunct(expr, (0, 1)) for expr in span.close_where)
    # columns without a component are the closing event's
    components = (Component("open", true), Component(None, true))  # type: ignore[arg-type]
    pattern = Pattern(components, where, None, Context("next", "zero"))
    return Search(stream, pattern, [stream.matching(OPEN_BIT), stream.matching(CLOSE_BIT)])


@dataclass(frozen=True)
class Windows:
    """The windows [k * every, k * every + size) of a grid that hold an event, by the row that is their first.

    Attributes:
        stream: the stream.
        span: the grid.
        first: int64[n], the first k of the windows that each row is the first one of; windows that had ended
            before are left out.
        last: int64[n], the last one, which may be less: there is none.
    """

    stream: Stream
    span: GridSpan
    first: Ints
    last: Ints

    @staticmethod
    def of(stream: Stream, span: GridSpan, passed_us: int) -> Windows:
        """The windows of a stream that had not ended at the frontier `passed_us`."""
        size, every = span.size_us, span.every_us
        high = stream.time // every
        # the first window that holds the event
        low = (high - size // every if size % every == 0 else (stream.time - size) // every) + 1
        if passed_us > NO_FRONTIER:
            low = np.maximum(low, last_ended(span, passed_us) + 1)
        before = np.roll(high, 1)  # the last window that holds the event before, which has counted it
        before[stream.starts] = low[stream.starts] - 1
        return Windows(stream, span, np.maximum(low, before + 1), high)

    def ended(self, frontier_us: int) -> Windows:
        """Those that the frontier has passed."""
        return replace(self, last=np.minimum(self.last, last_ended(self.span, frontier_us)))

    def counted_open(self, frontier_us: int) -> Ints:
        """int64[segments], how many windows the frontier has not passed."""
        first = np.maximum(self.first, last_ended(self.span, frontier_us) + 1)
        return np.add.reduceat(np.maximum(self.last - first + 1, 0), self.stream.starts)

    def in_open(self, frontier_us: int) -> Bools:
        """bool[n], which rows are in a window that the frontier has not passed."""
        held: Bools = self.last > last_ended(self.span, frontier_us)
        return held

    def spans(self, horizon: Horizon, next_ids: Ints) -> SpanRows:
        """The windows as spans; see `spans_of`."""
        stream, every = self.stream, self.span.every_us
        start = np.flatnonzero(self.first <= self.last)
        index, k = expand(self.first[start], self.last[start] + 1)
        start = start[index]
        end = stream.before_time(start, k * every + self.span.size_us)
        last_us = k * every + self.span.size_us - 1
        over = last_us < horizon.frontier_us
        code, time = np.where(over, 2 * end - 1, UNKNOWN_CODE), np.where(over, last_us, UNKNOWN_TIME)
        resolved_at, segment = Positions(code, time), stream.segment[start]
        ids = _numbered(segment, next_ids)
        none = np.full(len(start), -1, np.int64)
        return _with_base(stream, SpanRows(start, end, ids, k * every, none, resolved_at, resolved_at))


def next_end(span: GridSpan, frontier_us: int) -> int:
    """The end of the first window that has not ended at a frontier."""
    return (last_ended(span, frontier_us) + 1) * span.every_us + span.size_us


def last_ended(span: GridSpan, frontier_us: int) -> int:
    """The number of the last window whose last microsecond is below the frontier."""
    return (frontier_us - span.size_us) // span.every_us


def _count_spans(stream: Stream, span: CountSpan) -> SpanRows:
    """A span of `size` events opens at seq 0, at `every`, at 2 * `every`, and so on."""
    start = np.flatnonzero(stream.seq % span.every == 0)
    end = np.minimum(start + span.size, stream.segment_end[start])
    last = start + span.size - 1
    full = last < stream.segment_end[start]
    at = np.where(full, last, 0)
    time = stream.time[at] if stream.rows else at
    resolved_at = Positions(np.where(full, 2 * at, UNKNOWN_CODE), np.where(full, time, UNKNOWN_TIME))
    ids = stream.seq[start] // span.every
    close = np.where(full, last, -1)
    return _with_base(stream, SpanRows(start, end, ids, stream.time[start], close, resolved_at, resolved_at))


def _sessions(stream: Stream, span: SessionSpan, horizon: Horizon, next_ids: Ints) -> SpanRows:
    """Runs of events; each segment begins with the first event of a session."""
    start = _session_starts(stream, span)
    segment, end = stream.segment[start], np.append(start[1:], stream.rows)
    end_us = session_ends_us(span, stream.time[start], stream.time[end - 1])
    over = end_us < horizon.frontier_us
    code, time = np.where(over, 2 * end - 1, UNKNOWN_CODE), np.where(over, end_us, UNKNOWN_TIME)
    resolved_at, none = Positions(code, time), np.full(len(start), -1, np.int64)
    ids = _numbered(segment, next_ids)
    return _with_base(stream, SpanRows(start, end, ids, stream.time[start], none, resolved_at, resolved_at))


def session_ends_us(span: SessionSpan, first_us: Ints, last_us: Ints) -> Ints:
    """int64[s], the last event times at which events would still belong to sessions with these events."""
    end_us = last_us + span.gap_us
    return end_us if span.within_us is None else np.minimum(end_us, first_us + span.within_us)


def _session_starts(stream: Stream, span: SessionSpan) -> Ints:
    """int64[s], the first row of each session: behind a gap, or where the session before is too long."""
    begins = np.diff(stream.time, prepend=0) > span.gap_us
    begins[stream.starts] = True
    if span.within_us is None:
        return np.flatnonzero(begins)
    starts, rows = np.append(np.flatnonzero(begins), stream.rows), np.arange(stream.rows)
    # the row that opens the next session if a row opens one
    following = window_end(stream, rows, Within(time_us=span.within_us))
    following = np.minimum(following, starts[np.searchsorted(starts, rows, "right")])
    return reached(following, begins)


def _numbered(segment: Ints, next_ids: Ints) -> Ints:
    """int64[s], the ids of spans of these segments, which ascend; each segment goes on from `next_ids`."""
    first = np.searchsorted(segment, np.arange(len(next_ids)))
    ids: Ints = next_ids[segment] + np.arange(len(segment)) - first[segment]
    return ids
