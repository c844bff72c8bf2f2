"""Finds the matches of a pattern in explicit spans, each span taken as a whole bounded stream.

Spans may overlap and share events. They are worked on in pieces of about `PIECE_ROWS` events, in which an
event occurs once for each span that holds it. So memory is bounded by a piece, or by the longest span.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from spark_pace import ways
from spark_pace.core.expr import Aggregate, Expr, Previous, conjunction, evaluate_mask
from spark_pace.core.match.absences import inside_spans
from spark_pace.core.match.chain import if_no_more_come
from spark_pace.core.match.contexts import context_of
from spark_pace.core.match.contexts.contexts import OneOpen, match_bounded
from spark_pace.core.match.release import Waiting, decided_at, decisions, match_times, releases, resolved
from spark_pace.core.match.search.any_order import search_of
from spark_pace.core.match.search.groups import in_roles
from spark_pace.core.match.stream import Found, Horizon, Positions, Stream
from spark_pace.core.operate.match_table import Labels
from spark_pace.core.plan.conditions import (
    OPENING_EVENT,
    earlier_columns,
    of_other_events,
    opening_attributes,
    opening_column,
    with_opening_columns,
)
from spark_pace.core.plan.earlier_tests import AbsenceTests, absence_tests
from spark_pace.core.plan.meaning import columns_of, previous_of
from spark_pace.core.plan.members import conditions_by_bit
from spark_pace.core.plan.rule import CountSpan, GridSpan, Pattern, PredicateSpan, Rule
from spark_pace.core.plan.shape import shape_of
from spark_pace.core.ranks import even_ranges, expand, segments_of
from spark_pace.core.split.task import Lane
from spark_pace.core.tables import MASK, SEQ, TIME, UNKNOWN_TIME, Ints, has_bit, with_column


def in_spans(rule: Rule, lane: Lane, stream: Stream) -> tuple[Found, Labels]:
    """The matches in the spans of a lane, and their labels."""
    start, end = lane.column("start"), lane.column("end")
    inside = Inside.of(rule, stream)
    ranges = even_ranges(end - start, len(start), ways.PIECE_ROWS)
    pieces = [_matches_of(rule, lane, inside, np.arange(i, j)) for i, j in ranges]
    selection = np.concatenate([piece.selection for piece, _, _ in pieces])
    sizes = np.concatenate([np.diff(piece.offsets) for piece, _, _ in pieces])
    members = np.concatenate([piece.members for piece, _, _ in pieces])
    roles = np.concatenate([piece.roles for piece, _, _ in pieces])
    found = Found(start, lane.column("close"), selection, np.append(0, np.cumsum(sizes)), members, roles)
    code = np.concatenate([at.code for _, at, _ in pieces])
    release = Positions(code, np.concatenate([at.time for _, at, _ in pieces]))
    matched_us = np.concatenate([matched for _, _, matched in pieces])
    if isinstance(rule.span, CountSpan) or _waits_for_its_end(rule):  # only full spans of a number count
        release = release.later(lane.positions("resolved").take(selection))
    if rule.merge == "selection":
        release = release.later(lane.positions("base").take(selection))
    ids, opened_us = lane.column("selection_id")[selection], lane.column("opened_us")[selection]
    return found, Labels(ids, opened_us, matched_us, release)


def _waits_for_its_end(rule: Rule) -> bool:
    """True if it takes the end of a span to know which matches it has, in their order.

    They are in the order of their last events. Behind such an event another may forbid its match, where a
    negated component stands last, or become the last one, where an optional component does.
    """
    pattern = rule.pattern
    return pattern is not None and rule.merge == "selection" and bool(shape_of(pattern).trailing)


def of_whole_spans(rule: Rule, lane: Lane, spans: Ints) -> Labels:
    """The labels of matches that are decided where their spans, int64[m], are resolved."""
    release = lane.positions("resolved").take(spans)
    # a grid window's end is the first time after it
    matched_us = release.time + isinstance(rule.span, GridSpan)
    if rule.merge == "selection":
        release = release.later(lane.positions("base").take(spans))
    return Labels(lane.column("selection_id")[spans], lane.column("opened_us")[spans], matched_us, release)


def _matches_of(rule: Rule, lane: Lane, inside: Inside, index: Ints) -> tuple[Found, Positions, Ints]:
    """The matches of the spans at the indices `index`, the positions where they are decided, their times."""
    start, end = lane.column("start")[index], lane.column("end")[index]
    owner, rows = expand(start, end)
    stream = inside.take(rows, start[owner], np.cumsum(end - start) - (end - start))
    spans_end = lane.positions("resolved").take(index)
    horizon = Horizon(lane.header.frontier_us, spans_end.time < lane.header.frontier_us)
    pattern = inside.pattern
    context = context_of(pattern)
    found = in_roles(match_bounded(context.way, stream, pattern, horizon), stream, pattern)
    of_span = stream.segment[found.openings]
    spans_end = _ends(stream, found.openings, spans_end)
    ends = resolved(stream, found, pattern.within, horizon).earlier(spans_end)
    decided = decisions(stream, found, pattern.within, horizon).earlier(spans_end.take(found.selection))
    at = releases(stream, found, decided, ends, waits=context.waits_for_earlier)
    code = 2 * rows[at.code // 2] + (at.code & 1) if found.matches else at.code
    span = index[of_span[found.selection]]
    matched_us = match_times(stream, found.last, found.deciding, pattern.within)
    if found.deciding is not None:
        ends = decisions(stream, found, pattern.within, horizon)
        matched_us = _within_span(rule, matched_us, ends, spans_end.take(found.selection))
    found = Found(start, start, span, found.offsets, rows[found.members], found.roles)
    return found, Positions(code, at.time), matched_us


def _ends(stream: Stream, rows: Ints, spans_end: Positions) -> Positions:
    """Where the span of each of `rows` ends: at its last event, or behind it."""
    last, end = stream.segment_end[rows] - 1, spans_end.take(stream.segment[rows])
    return Positions(2 * last + (end.code & 1), end.time)


def _within_span(rule: Rule, matched_us: Ints, window_ends: Positions, spans_end: Positions) -> Ints:
    """The times of matches that a window's end decides: that of the span where the span ends first.

    A window that is not over yet may end with the span, of which the end may not be known either.
    """
    known = spans_end.time < UNKNOWN_TIME
    span_us = np.where(known, spans_end.time + (known & isinstance(rule.span, GridSpan)), UNKNOWN_TIME)
    by_the_span = (window_ends.time > spans_end.time) | (window_ends.time == UNKNOWN_TIME)
    return np.where(by_the_span, span_us, matched_us)


def waiting_in_spans(rule: Rule, lane: Lane, stream: Stream) -> Waiting:
    """How the matches have changed that wait, or may be none, where the pattern's context waits."""
    inside, header = Inside.of(rule, stream), lane.header
    before, now = (_waiting_at(rule, lane, inside, at) for at in (header.passed_us, header.frontier_us))
    return Waiting.change(now, before)


def _waiting_at(rule: Rule, lane: Lane, inside: Inside, frontier_us: int) -> Ints:
    """The times of such matches in the spans of a lane, as they are at a frontier."""
    start, end = lane.column("start"), lane.column("end")
    pattern, way, pieces = inside.pattern, context_of(inside.pattern).way, [np.zeros(0, np.int64)]
    assert isinstance(way, OneOpen)
    for first, last in even_ranges(end - start, len(start), ways.PIECE_ROWS):
        owner, rows = expand(start[first:last], end[first:last])
        early = inside.stream.time[rows] < frontier_us
        owner, rows = owner[early] + first, rows[early]
        starts = segments_of(owner)
        if not len(starts):
            continue
        stream, spans = inside.take(rows, start[owner], starts), owner[starts]
        spans_end = lane.positions("resolved").take(spans)
        horizon = Horizon(frontier_us, spans_end.time < frontier_us)
        search = search_of(stream, pattern)
        closes, deciding, waiting = if_no_more_come(search, way.closing, horizon)
        matched_us = stream.time[closes]
        if search.trailing:
            ends = decided_at(stream, closes, deciding, pattern.within, horizon)
            matched_us = match_times(stream, closes, deciding, pattern.within)
            matched_us = _within_span(rule, matched_us, ends, spans_end.take(stream.segment[closes]))
        if rule.merge == "selection":
            of_spans = lane.column("base_us")[spans]
            of_spans = np.maximum(of_spans, spans_end.time) if _waits_for_its_end(rule) else of_spans
            waiting |= of_spans[stream.segment[closes]] >= frontier_us
        pieces.append(matched_us[waiting & (matched_us < frontier_us)])
    return np.concatenate(pieces)


@dataclass(frozen=True)
class Inside:
    """The arguments of matching inside the spans of a lane.

    Attributes:
        stream: the lane's stream.
        pattern: the pattern, with the opening event's attributes as columns of every event.
        opening: the attributes of the opening event that become such columns.
        previous: the attributes of earlier events that become columns, by their names.
        conditions: (bit, condition) for each component's predicate, as far as it reads other events of a
            span; its bit in ``@mask`` is set where the event alone satisfies the predicate.
        absent: the tests of negated components in first place; None if there are none.
    """

    stream: Stream
    pattern: Pattern
    opening: tuple[str, ...]
    previous: Mapping[str, Previous]
    conditions: tuple[tuple[int, Expr], ...]
    absent: AbsenceTests | None

    @staticmethod
    def of(rule: Rule, stream: Stream) -> Inside:
        """Make it for a rule and a lane's stream."""
        assert rule.pattern is not None
        parts = [(bit, of_other_events(condition)) for bit, condition in conditions_by_bit(rule)]
        conditions = tuple((bit, conjunction(exprs)) for bit, exprs in parts if exprs)
        previous = previous_of(rule.pattern.over_several)
        absent = absence_tests(rule, others_count=True)
        if not isinstance(rule.span, PredicateSpan):  # a component may have the name "open"
            return Inside(stream, rule.pattern, (), previous, conditions, absent)
        opening, inside = tuple(sorted(opening_attributes(rule.pattern))), with_opening_columns(rule.pattern)
        return Inside(stream, inside, opening, previous, conditions, absent)

    def take(self, rows: Ints, first: Ints, starts: Ints) -> Stream:
        """The stream of these rows, with a segment for each span.

        Args:
            rows: int64[n], rows of the lane.
            first: int64[n], the first row of each row's span.
            starts: int64[s], where each span begins in `rows`.
        """
        names = {TIME, SEQ, MASK, *columns_of(self.pattern.over_several)}
        names |= {*(() if self.absent is None else self.absent.columns)}
        names &= {*self.stream.events.column_names}
        events = self.stream.events.select(sorted(names)).take(pa.array(rows))
        for name in self.opening:
            values = self.stream.attribute(name).take(pa.array(first))
            events = with_column(events, opening_column(name), values)
        columns = SpanColumns(self.stream, self.previous, rows, first)
        for name in self.previous:
            events = with_column(events, name, columns.column(None, name))
        if self.conditions:
            mask = self.stream.mask[rows]
            for bit, condition in self.conditions:
                here = np.flatnonzero(has_bit(mask, bit))
                columns = SpanColumns(self.stream, earlier_columns([condition]), rows[here], first[here])
                mask[here[~evaluate_mask(condition, columns)]] &= np.uint16(0xFFFF ^ 1 << bit)
            events = with_column(events, MASK, mask)
        if self.absent is not None:
            spans = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(rows))))
            events = inside_spans(self.absent, events, spans)
        return Stream(events, starts)


@dataclass(frozen=True)
class SpanColumns:
    """The columns that a condition reads of an event of a span, and of the span's other events.

    Attributes:
        stream: the lane's stream.
        previous: the attributes of earlier events, by the names of their columns.
        at: int64[n], the rows of the events.
        first: int64[n], the first row of each event's span.
    """

    stream: Stream
    previous: Mapping[str, Previous]
    at: Ints
    first: Ints

    @property
    def rows(self) -> int:
        """The number of events."""
        return len(self.at)

    def column(self, component: str | None, attribute: str) -> pa.Array:
        """An attribute of each event, of its span's opening event, or of an earlier event (null if none)."""
        if component == OPENING_EVENT:
            return self.stream.attribute(attribute).take(pa.array(self.first))
        if attribute in self.previous:
            node = self.previous[attribute]
            before = self.at - node.back
            index = pa.array(np.maximum(before, 0), mask=before < self.first)
            return self.stream.attribute(node.attribute).take(index)
        return self.stream.attribute(attribute).take(pa.array(self.at))

    def aggregate(self, one: Aggregate) -> pa.Array:
        """A single event has no groups."""
        raise AssertionError(f"{one} over a single event")
