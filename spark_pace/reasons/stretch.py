"""A stretch of a rule's stream in which a pattern is searched, and the selections in it.

A stretch is the stream of a key, or a span of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from spark_pace.core.columns import NO_FRONTIER, OFFSET, OPENING, SOURCE, Bools, Ints, has_bit
from spark_pace.core.expr import Aggregate, Call, Columns, Expr, Previous, evaluate, walk
from spark_pace.core.expr.canonical_text import canonical_text
from spark_pace.core.expr.nodes import Column
from spark_pace.core.match.contexts import context_of
from spark_pace.core.match.contexts.context import match_bounded
from spark_pace.core.match.found_matches import Found
from spark_pace.core.match.search.alternatives import Alternatives
from spark_pace.core.match.search.members import with_members
from spark_pace.core.match.spans import session_ends_us, spans_of
from spark_pace.core.match.stream import Stream
from spark_pace.core.match.window import Horizon, end_times, window_end
from spark_pace.core.operate.emit_fields import MatchColumns
from spark_pace.core.operate.match_table import matched_us
from spark_pace.core.plan.conditions import with_opening_columns
from spark_pace.core.plan.rule import GridSpan, Pattern, PredicateSpan, Rule, SessionSpan
from spark_pace.core.plan.shape import alternative
from spark_pace.core.tables import numbers
from spark_pace.reasons.answer import EventRef, Member, Selection, iso, iso_or_none, plain, shown

_COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")


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
        each_opens: True if every initiator opens one.
        found: the matches in them; None for spans.
    """

    ids: Ints
    openings: Ints
    closes: Ints
    ends: Ints
    over: Bools
    opened_us: Ints
    window_us: Ints
    by_event: bool
    each_opens: bool = False
    found: Found | None = None

    def last_row(self) -> Ints:
        """int64[s], the last row at which each is open."""
        return np.where(self.closes >= 0, self.closes, self.ends - 1)

    def at(self, row: int) -> Ints:
        """int64[n], the indices of the selections that are open at a row."""
        return np.flatnonzero((self.openings <= row) & (self.last_row() >= row))

    def of(self, row: int) -> int | None:
        """The index of the selection that a row opened; if not every initiator opens one, that was open."""
        found = np.flatnonzero(self.openings == row) if self.each_opens else self.at(row)
        return int(found[-1]) if len(found) else None

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


@dataclass(frozen=True)
class OfSpan:
    """The span that a stretch is.

    Attributes:
        selection_id: its number.
        waits: True if it was still open when the input ended.
        delivered: True if what is found in it is a match.
        opened: True if an event opened it: its attributes are columns of every event.
    """

    selection_id: int
    waits: bool
    delivered: bool
    opened: bool


@dataclass(frozen=True)
class Stretch:
    """One segment of a rule's stream, the pattern, and the engine's selections and matches in it.

    Attributes:
        stream: one segment.
        pattern: the pattern as in the rule, or an alternative of it.
        span: the span that the stretch is; None if it is the stream of a key.
        selections: those of the rule's pattern.
    """

    stream: Stream
    pattern: Pattern
    span: OfSpan | None
    selections: Opened

    @staticmethod
    def of(stream: Stream, pattern: Pattern, horizon: Horizon, span: OfSpan | None) -> Stretch:
        """Let the engine find the selections that the pattern's context opens, and the matches."""
        stream = with_members(stream, pattern)
        searched = with_opening_columns(pattern) if span is not None and span.opened else pattern
        way, within = context_of(pattern).way, pattern.within
        found = match_bounded(way, stream, searched, horizon)
        openings = found.openings
        ids = np.arange(len(openings))
        if way.every_initiator_opens and OPENING in stream.events.column_names:
            ids = numbers(stream.events, OPENING)[openings]
        window_us = horizon.segment_ends(stream, openings)
        over = horizon.over_by_itself(stream, openings, within)
        ends = window_end(stream, openings, within)
        if within is not None and within.time_us is not None:
            window_us = np.minimum(window_us, end_times(stream, openings, ends, within, window_us))
        opened = (ids, openings, found.closes, ends, over, stream.time[openings], window_us)
        selections = Opened(*opened, True, way.every_initiator_opens, found)
        return Stretch(stream, pattern, span, selections)

    @property
    def alternatives(self) -> list[tuple[Stretch, Sequence[int]]]:
        """The stretch for each alternative of a disjunction of sequences, with the components of that.

        For other patterns it is the stretch itself.
        """
        if self.pattern.order != "disjunction":
            return [(self, range(len(self.pattern.components)))]
        search = Alternatives(self.stream, self.inside(self.pattern))
        parts = zip(search.components, search.parts, strict=True)
        return [
            (replace(self, stream=part.stream, pattern=alternative(self.pattern, own)), own)
            for own, part in parts
        ]

    def inside(self, pattern: Pattern) -> Pattern:
        """A pattern as it is searched here."""
        return with_opening_columns(pattern) if self.span is not None and self.span.opened else pattern

    def member(self, row: int, component: str = "") -> Member:
        """The event of a row with the name of its component; of a disjunction, with that of its member."""
        members = (one.members for one in self.pattern.components if one.name == component)
        for member in next(members, ()):
            if has_bit(self.stream.mask[row : row + 1], member.bit)[0]:
                component = member.name
        return Member(component, ref(self.stream, row))

    def selection_of(self, row: int) -> int | None:
        """The number of the selection that a row opened, or in which it stands."""
        at = self.selections.of(row)
        return (
            self.span.selection_id
            if self.span is not None
            else None
            if at is None
            else int(self.selections.ids[at])
        )


def ref(stream: Stream, row: int) -> EventRef:
    """The reference to the event of a row of a stream."""
    source, offset = stream.events[SOURCE][row].as_py(), stream.events[OFFSET][row].as_py()
    return EventRef(int(stream.seq[row]), iso(stream.time[row]), source, offset)


def in_values(columns: Columns, expr: Expr, stated: Expr | None = None) -> tuple[str, dict[str, object]]:
    """Describe a false condition: ``b.card = a.card: 'B' = 'A' is false``; and return the values in it.

    Args:
        columns: one row of what the condition reads.
        expr: the condition.
        stated: the same condition as in the rule, where columns may have other names.
    """

    def value(node: Expr) -> object:
        return plain(evaluate(node, columns)[0].as_py())

    told, whole = stated or expr, "null" if value(expr) is None else "false"
    if isinstance(expr, Call) and isinstance(told, Call) and expr.function in _COMPARISONS:
        both = list(zip(expr.arguments, told.arguments, strict=True))
        left, right = (shown(value(side)) for side, _ in both)
        text = f"{canonical_text(told)}: {left} {expr.function} {right} is {whole}"
        return text, {canonical_text(name): value(side) for side, name in both}
    nodes = zip(walk(expr), walk(told), strict=True)
    kinds = Column | Previous | Aggregate
    read = {canonical_text(name): value(node) for node, name in nodes if isinstance(node, kinds)}
    listed = ", ".join(f"{name} = {shown(one)}" for name, one in read.items())
    return f"{canonical_text(told)} is {whole} with {listed}", read


def columns_of(
    stream: Stream, names: Mapping[str | None, tuple[int, ...]], rows: Ints, roles: Ints
) -> MatchColumns:
    """What conditions read of candidates, by the names of roles; `rows` and `roles` are int64[m, n]."""
    none, offsets = np.zeros(len(rows), np.int64), np.arange(len(rows) + 1) * rows.shape[1]
    of = Found(none[:1], none[:1] - 1, none, offsets, rows.ravel(), roles.ravel().astype(np.int8))
    return MatchColumns(stream, of, names, {})


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
