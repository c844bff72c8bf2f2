"""Takes the selections of a stretch, or the spans of a stream, from the engine."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from spark_pace.core.columns import NO_FRONTIER, OPENING, Bools, Ints
from spark_pace.core.match.contexts import context_of
from spark_pace.core.match.contexts.context import match_bounded
from spark_pace.core.match.spans import session_ends_us, spans_of
from spark_pace.core.match.stream import Stream
from spark_pace.core.match.window import Horizon, end_times, window_end
from spark_pace.core.operate.match_table import matched_us
from spark_pace.core.plan.rule import GridSpan, PredicateSpan, Rule, SessionSpan
from spark_pace.core.tables import numbers
from spark_pace.reasons.answer_parts import Selection
from spark_pace.reasons.stretch import Stretch, ref
from spark_pace.reasons.wording import iso, iso_or_none

MOST_SPANS = 5  # spans for which the answer says what failed


@dataclass(frozen=True)
class Opened:
    """Selections, in the order of their ids, by rows of a stream.

    Attributes:
        ids: int64[s].
        openings: int64[s], the first row of each.
        closes: int64[s], the row that closed each; -1 if none did.
        ends: int64[s], the row after the last one of its window.
        over: bool[s], True if its window was over before the input ended.
        opened_us: int64[s].
        window_us: int64[s], when its window ends; beyond all times if no time ends it.
        by_event: True if events open the selections.
    """

    ids: Ints
    openings: Ints
    closes: Ints
    ends: Ints
    over: Bools
    opened_us: Ints
    window_us: Ints
    by_event: bool

    def last_row(self) -> Ints:
        """int64[s], the last row at which each is open."""
        return np.where(self.closes >= 0, self.closes, self.ends - 1)

    def at(self, row: int) -> Ints:
        """int64[n], the indices of the selections that are open at a row."""
        return np.flatnonzero((self.openings <= row) & (self.last_row() >= row))

    def before(self, row: int) -> Ints:
        """int64[0 or 1], the index of the last selection that was over before a row."""
        return np.flatnonzero(self.last_row() < row)[-1:]

    def waits(self, index: int) -> bool:
        """True if a selection was still open when the input ended."""
        return bool(self.closes[index] < 0 and not self.over[index])

    def told(self, stream: Stream, index: int, *, there: bool) -> Selection:
        """One selection as the answer has it, without components."""
        close = int(self.closes[index])
        state = "closed" if close >= 0 else "open" if self.waits(index) else "ended"
        return Selection(
            int(self.ids[index]),
            state,
            there,
            iso(self.opened_us[index]),
            ref(stream, int(self.openings[index])) if self.by_event else None,
            iso_or_none(self.window_us[index]),
            ref(stream, close) if close >= 0 else None,
        )


def selections_of(stretch: Stretch) -> Opened:
    """The selections that the pattern's context opens."""
    stream, pattern = stretch.stream, stretch.search.pattern
    way, within = context_of(pattern).way, pattern.within
    found = match_bounded(way, stream, pattern, stretch.horizon)
    openings = found.openings
    ids = np.arange(len(openings))
    if way.every_initiator_opens and OPENING in stream.events.column_names:
        ids = numbers(stream.events, OPENING)[openings]
    window_us = stretch.horizon.segment_ends(stream, openings)
    over = stretch.horizon.over_by_itself(stream, openings, within)
    ends = window_end(stream, openings, within)
    if within is not None and within.time_us is not None:
        window_us = np.minimum(window_us, end_times(stream, openings, ends, within, window_us))
    return Opened(ids, openings, found.closes, ends, over, stream.time[openings], window_us, True)


def with_decisions(told: Iterable[Selection], matches: pa.Table, newest_us: int) -> tuple[Selection, ...]:
    """Add to closed selections when the end of a window of time, or of the input, decided their matches.

    Args:
        told: selections of the stream of a key.
        matches: those of the key.
        newest_us: the time of the newest record of the input.
    """
    events = matches["events"].combine_chunks()
    times = events.values.field("event_time").cast(pa.int64()).to_numpy()
    us = matched_us(matches)
    later = us > times[events.offsets.to_numpy()[1:] - 1]  # than the match's last event
    decided: dict[int, int] = {}
    for number, one in zip(
        matches["selection_id"].to_numpy()[later].tolist(), us[later].tolist(), strict=True
    ):
        decided[number] = max(one, decided.get(number, one))
    return tuple(_decided(one, decided.get(one.selection_id), newest_us) for one in told)


def _decided(one: Selection, us: int | None, newest_us: int) -> Selection:
    if us is None or one.closed_by is None or one.window_ends is None:  # no time ends it
        return one
    return replace(one, decided_at=iso(us), decided_by="input" if us > newest_us else "window")


def spans_in(rule: Rule, stream: Stream, horizon: Horizon) -> Opened:
    """The spans of a rule over the stream of a key."""
    spans = spans_of(stream, rule, horizon, NO_FRONTIER, np.zeros(1, np.int64))
    assert horizon.seen_us is not None
    over = spans.resolved_at.time <= horizon.seen_us
    window_us = np.full(len(spans.start), np.iinfo(np.int64).max)
    if isinstance(rule.span, GridSpan):
        window_us = spans.opened_us + rule.span.size_us
    elif isinstance(rule.span, PredicateSpan):
        window_us = spans.opened_us + rule.span.within_us
    elif isinstance(rule.span, SessionSpan):
        window_us = session_ends_us(rule.span, spans.opened_us, stream.time[spans.end - 1])
    grid = isinstance(rule.span, GridSpan)
    return Opened(
        spans.selection_id, spans.start, spans.close, spans.end, over, spans.opened_us, window_us, not grid
    )
