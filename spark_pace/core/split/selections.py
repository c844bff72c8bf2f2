"""Contexts whose selections the splitter decides or cuts, for operators that match inside them.

Of contexts with at most one open selection (`OneOpen`) the splitter decides where selections open and close.
If a selection is closed by a match, the splitter has already found the match, and operators only compute its
fields.

Other contexts have selections that operators match in parallel. The splitter cuts the stream into stretches
of initiators (`Forwards`) or terminators (`Backwards`). A lane holds all events that the matches of its
stretch can include.

Of explicit spans each is a selection; the lanes hold the spans that may have a match to send now.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from spark_pace.core.match.chain import Chain, chain, if_no_more_come
from spark_pace.core.match.contexts.contexts import Backwards, Forwards, OneOpen
from spark_pace.core.match.delay import is_awaited
from spark_pace.core.match.release import (
    NOTHING_WAITS,
    Resolution,
    Waiting,
    at_rows,
    decisions,
    match_times,
    releases,
    resolved,
)
from spark_pace.core.match.search.any_order import Alternatives, search_of
from spark_pace.core.match.search.search import Search
from spark_pace.core.match.spans import SpanRows, Windows, joined, spans_of
from spark_pace.core.match.stream import (
    Horizon,
    Stream,
    window_end,
    window_ends,
    window_start,
)
from spark_pace.core.plan.rule import GridSpan, Pattern, SessionSpan
from spark_pace.core.plan.shape import terminator_bits, without_members
from spark_pace.core.split.lanes import lanes_by_rows, matched_lanes
from spark_pace.core.split.task import (
    Lane,
    Piece,
    Split,
    SplitTask,
    count_in_segments,
    from_first,
    position_columns,
)
from spark_pace.core.tables import OPENING, UNKNOWN_TIME, Bools, Ints, numbers


def split_one_open(task: SplitTask, way: OneOpen) -> Split:
    """Decide where selections open and close; the lanes hold those that close in this batch."""
    pattern = task.planned.rule.pattern
    assert pattern is not None
    stream, search = task.stream, search_of(task.stream, pattern)
    if way.inside is not None and not search.trailing:
        # a candidate of carried events alone would have closed the open selection
        lasts = search.terminators
        search = search.ending(lasts[stream.time[lasts] >= task.passed_us])
    links = chain(search, way.closing, task.horizon, apart=way.inside is None)
    segment = stream.segment[links.openings]
    first = np.searchsorted(segment, np.arange(len(stream.starts)))
    ids = task.next_selection[segment] + np.arange(len(segment)) - first[segment]
    opened = np.bincount(segment[~links.open], minlength=len(stream.starts))
    lanes = _closed_lanes(task, links, ids) if way.inside is not None else _walked(task, search, links, ids)
    waiting = _waiting(task, way) if is_awaited(task.planned) else NOTHING_WAITS
    keep = from_first(stream, links.openings[links.open])
    over = task.horizon.over_by_itself(stream, links.openings, pattern.within)
    open_ = np.minimum(1, count_in_segments(stream, links.openings[(links.closes < 0) & ~over]))
    return Split(lanes, keep, open_, [task.next_selection + opened], waiting=waiting)


def _waiting(task: SplitTask, way: OneOpen) -> Waiting:
    """How the matches that there may be behind open selections have changed."""
    before = _behind_open(task.stream.before(task.passed_us), task, way, Horizon(task.passed_us))
    return Waiting.change(_behind_open(task.stream, task, way, task.horizon), before)


def _behind_open(stream: Stream, task: SplitTask, way: OneOpen, horizon: Horizon) -> Ints:
    """The times before the frontier of the matches that there may be behind open selections."""
    assert task.pattern is not None
    search = search_of(stream, task.pattern)
    last, deciding, behind = if_no_more_come(search, way.closing, horizon)
    behind &= deciding < 0  # other windows end behind that of the open one
    return stream.time[last[behind]]


def _closed_lanes(task: SplitTask, links: Chain, ids: Ints) -> list[Lane]:
    """Cut lanes of closed selections with all of their events; `ids` are the numbers of all selections."""
    stream, done = task.stream, np.flatnonzero(links.closes >= 0)
    opening, close, last = links.openings[done], links.closes[done], links.closes[done]
    release, pattern = at_rows(stream, close), task.planned.rule.pattern
    assert pattern is not None
    deciding = None if links.deciding is None else links.deciding[done]
    if deciding is not None:  # an event that forbids the match may follow the closing event
        release = window_ends(stream, deciding, pattern.within, task.horizon)
        last = np.maximum(last, release.code // 2)
    matched_us = match_times(stream, close, deciding, pattern.within)
    lanes: list[Lane] = []
    for piece in lanes_by_rows(task, np.maximum(1, last - opening + 1)):
        i, j = piece.first, piece.last
        start, stop = int(opening[i]), int(last[i:j].max()) + 1
        own = {"selection_id": ids[done[i:j]], "matched_us": matched_us[i:j]}
        own |= {"opening": opening[i:j] - start, "close": close[i:j] - start}
        own |= position_columns("release", release.take(np.arange(i, j)), start)
        header = task.header("closed", (0, stop - start), piece)
        events = stream.events.slice(start, stop - start)
        lanes.append(Lane(header, events, pa.table(own), slice(start, stop)))
    return lanes


def _walked(task: SplitTask, search: Search, links: Chain, ids: Ints) -> list[Lane]:
    """Cut lanes of the matches that have closed selections."""
    stream = task.stream
    found = links.found(search)
    decided = decisions(stream, found, search.pattern.within, task.horizon)
    ends = resolved(stream, found, search.pattern.within, task.horizon)
    at = releases(stream, found, decided, ends, waits=task.method.waits)
    matched_us = match_times(stream, found.last, found.deciding, search.pattern.within)
    return matched_lanes(task, found, ids[found.selection], at, matched_us)


def split_parallel(task: SplitTask, way: Forwards | Backwards) -> Split:
    """Cut lanes, and decide which events open selections still need."""
    pattern = task.pattern
    assert pattern is not None
    search = search_of(task.stream, pattern)
    initiators = search.initiators
    closes, ends = _closings(task, pattern, search, way)
    closed = closes >= 0
    if task.resolution is not None:
        task = replace(task, resolution=_resolution(task, task.resolution, initiators, closes))
        closed[:] = False  # their initiators are kept, because matches may wait
    over = task.horizon.over(task.stream, initiators, pattern.within)
    first_open = initiators[~over & ~closed]
    if isinstance(way, Forwards):
        lanes = _forward_lanes(*_fruitful(task, search, initiators, closes, ends))
        keep = from_first(task.stream, first_open)
    else:
        lanes = _backward_lanes(task, pattern, search, way)
        keep = backward_keep(task, pattern, search, way, first_open)
    over = task.horizon.over_by_itself(task.stream, initiators, pattern.within)
    open_ = initiators[~over & ~closed]
    if isinstance(way, Backwards) and pattern.within is None:  # no window ends these; some are out of reach
        assert way.tail is not None
        open_ = np.intersect1d(open_, way.tail(task.stream, search, task.stream.rows))
    keep = without_enders(task, keep)
    return Split(lanes, keep, count_in_segments(task.stream, open_), resolution=task.resolution)


def without_enders(task: SplitTask, keep: Bools) -> Bools:
    """Drop new events that can only end a match from `keep`, if the method allows it (`Method.ends_go`).

    Carried ones stay: to drop them, the other carried events would have to be stored anew.
    """
    pattern = task.pattern
    if pattern is None or not task.method.ends_go:
        return keep
    other = np.uint16(without_members(pattern) & ~terminator_bits(pattern))
    new = task.stream.time >= task.passed_us
    kept: Bools = keep & ~(new & (task.stream.mask & other == 0))
    return kept


def _closings(
    task: SplitTask, pattern: Pattern, search: Search, way: Forwards | Backwards
) -> tuple[Ints, Ints]:
    """For each initiator the row that closes its selection, and the row behind all its matches.

    The closing row is -1 if nothing closes the selection, or if only operators can find it.
    """
    stream, initiators = task.stream, search.initiators
    ends = window_end(stream, initiators, pattern.within)
    rule = task.planned.rule.pattern
    known = task.resolution is not None or (rule is not None and not rule.where and not search.trailing)
    if known and isinstance(way, Forwards) and pattern.close == "completion":
        last = way.closings(search, initiators, ends)
        return last, np.where(last < 0, ends, last + 1)
    return np.full(len(initiators), -1, np.int64), ends


def _numbers(task: SplitTask, initiators: Ints) -> Ints:
    """The numbers of the initiators' selections."""
    return numbers(task.stream.events, OPENING)[initiators]


def _resolution(task: SplitTask, resolution: Resolution, initiators: Ints, closes: Ints) -> Resolution:
    """The resolution of the rule's whole stream after this batch."""
    assert task.pattern is not None
    stream, within = task.stream, task.pattern.within
    ids, closed = _numbers(task, initiators), closes >= 0
    return resolution.after(ids[task.horizon.over(stream, initiators, within)], ids[closed])


def _fruitful(
    task: SplitTask, search: Search, initiators: Ints, closes: Ints, ends: Ints
) -> tuple[SplitTask, Ints, Ints, Ints]:
    """The task and the arrays without partition keys that lack a component, and so have no match."""
    stream = task.stream
    parts = search.parts if isinstance(search, Alternatives) else [search]
    counts = [[count_in_segments(stream, members) for members in part.members] for part in parts]
    fruitful = np.any([np.min(own, axis=0) > 0 for own in counts], axis=0)
    if task.planned.key_column is None or fruitful.all():
        return task, initiators, closes, ends
    kept = fruitful[stream.segment]
    row = np.cumsum(kept) - 1
    starts = row[stream.starts[fruitful]]
    here = kept[initiators]
    initiators, closes, ends = initiators[here], closes[here], ends[here]
    horizon = task.horizon.of_segments(fruitful)
    task = replace(task, stream=Stream(stream.events.filter(pa.array(kept)), starts), horizon=horizon)
    return task, row[initiators], np.where(closes < 0, closes, row[closes]), row[ends - 1] + 1


def _forward_lanes(task: SplitTask, initiators: Ints, closes: Ints, ends: Ints) -> list[Lane]:
    """Cut a lane for each stretch of rows with an initiator whose selection may release a match now.

    A lane holds its stretch, and the rows behind it up to the last of `ends`. Without keys, if
    `task.resolution` is None, only the first lane is `exact`: matches of the others may wait for selections
    of earlier lanes, which the merger decides.

    Args:
        task: the task.
        initiators: int64[i], rows, ascending.
        closes: int64[i], the row that closes the selection of each initiator; -1 if none does.
        ends: int64[i], the row behind all events of its matches.
    """
    stream, idle = task.stream, _idle(task, initiators, closes)
    if not len(initiators):
        return []
    lanes: list[Lane] = []
    for lo, hi, piece in _stretches(task):
        i, j = np.searchsorted(initiators, (lo, hi))
        if i < j and not idle[i:j].all():
            end = max(int(ends[i:j].max()), hi)
            exact = not lanes or task.planned.key_column is not None or task.resolution is not None
            header = task.header("free", (0, hi - lo), piece, exact=exact)
            events = stream.events.slice(lo, end - lo)
            lanes.append(Lane(header, events, _stream_ends(task, lo, hi), slice(lo, end)))
    return lanes


def _stream_ends(task: SplitTask, lo: int, hi: int) -> pa.Table | None:
    """When the streams in the rows from `lo` to `hi` end, as a column; None if they end with the input."""
    if task.horizon.ends_us is None:
        return None
    i, j = np.searchsorted(task.stream.starts, (lo, hi))
    return pa.table({"ends_us": task.horizon.ends_us[i:j]})


def _idle(task: SplitTask, initiators: Ints, closes: Ints) -> Bools:
    """bool[i], which initiators' selections certainly release no match now.

    If other rules read the matches, a new match that waits must be found too.
    """
    resolution, pattern = task.resolution, task.pattern
    if resolution is None or pattern is None or pattern.close == "window":
        return np.zeros(len(initiators), np.bool_)
    closed = closes >= 0
    new = task.stream.time[closes] >= task.passed_us
    out = resolution.lets_out(_numbers(task, initiators), new)
    return ~(closed & (out | new) if is_awaited(task.planned) else closed & out)


def _stretches(task: SplitTask) -> list[tuple[int, int, Piece]]:
    """Cut the rows into ranges for lanes; with `partition_by` a range has whole keys."""
    rows = task.stream.rows
    if task.planned.key_column is None:
        return [(piece.first, piece.last, piece) for piece in lanes_by_rows(task, np.ones(rows, np.int64))]
    bounds = np.append(task.stream.starts, rows)
    pieces = lanes_by_rows(task, np.diff(bounds))
    return [(int(bounds[piece.first]), int(bounds[piece.last]), piece) for piece in pieces]


def _backward_lanes(task: SplitTask, pattern: Pattern, search: Search, way: Backwards) -> list[Lane]:
    """Cut lanes of terminators, with all events that their matches can reach back to."""
    stream = task.stream
    lanes: list[Lane] = []
    # where events behind decide, a match may wait for others of its key that are decided later
    whole = search.trailing and task.planned.key_column is None
    stretches = _stretches(replace(task, plan=replace(task.plan, lanes=1)) if whole else task)
    for lo, hi, piece in stretches:
        if not np.diff(np.searchsorted(search.terminators, (lo, hi)))[0]:
            continue
        if task.planned.key_column is not None:
            held: slice | Ints = slice(lo, hi)
        elif pattern.within is not None:
            before = int(window_start(stream, np.array([lo]), pattern.within)[0])
            # matches wait for the ends of earlier windows; windows of N events may end behind the stretch
            behind = (pattern.within.events or 0) if task.method.waits else 0
            held = slice(before, hi + behind)
        else:
            assert way.tail is not None
            held = np.append(way.tail(stream, search, lo), np.arange(lo, hi))
        if isinstance(held, slice):
            before, events = held.start, stream.events.slice(held.start, held.stop - held.start)
        else:
            before, events = hi - len(held), stream.events.take(pa.array(held))
        header = task.header("free", (lo - before, hi - before), piece)
        lanes.append(Lane(header, events, _stream_ends(task, lo, hi), held))
    return lanes


def backward_keep(
    task: SplitTask, pattern: Pattern, search: Search, way: Backwards, first_open: Ints
) -> Bools:
    """bool[n], the events that matches of later terminators can still include."""
    stream = task.stream
    if pattern.within is None:
        keep = np.zeros(stream.rows, np.bool_)
        if task.horizon.seen_us is None:
            assert way.tail is not None
            keep[way.tail(stream, search, stream.rows)] = True
        return keep
    if not task.method.waits and not search.trailing:
        return from_first(stream, first_open)
    # a match that waits is found again from its terminator back: its whole window must be there
    kept = window_start(stream, first_open, pattern.within)
    if search.trailing and task.method.waits:  # its window may end before what it waits for is open
        kept = window_start(stream, kept, pattern.within)
    return from_first(stream, kept)


def split_spans(task: SplitTask) -> Split:
    """Decide where spans start and close, and which of them go to operators now."""
    rule = task.planned.rule
    if isinstance(rule.span, GridSpan) and rule.pattern is None:
        due, _, split = ended_windows(task, [rule.span])
        return replace(split, lanes=_lanes(task, due))
    spans = spans_of(task.stream, rule, task.horizon, task.passed_us, task.next_selection)
    lanes = _lanes(task, spans.take(np.flatnonzero(_due(task, spans))))
    unresolved = spans.unresolved
    keep = from_first(task.stream, spans.start[unresolved])
    next_ids: list[Ints] = []
    if isinstance(rule.span, GridSpan | SessionSpan):
        segment = task.stream.segment[spans.start[~unresolved]]
        next_ids = [task.next_selection + np.bincount(segment, minlength=len(task.stream.starts))]
    seen_us = task.horizon.seen_us
    open_ = unresolved if seen_us is None else spans.resolved_at.time > seen_us
    counted = count_in_segments(task.stream, spans.start[open_])
    by_python = rule.operator is not None and is_awaited(task.planned)
    return Split(
        lanes, keep, counted, next_ids, waiting=_uncalled(task, spans) if by_python else NOTHING_WAITS
    )


def _uncalled(task: SplitTask, spans: SpanRows) -> Waiting:
    """How the spans have changed that are closed and wait: an operator may make a match of each."""
    closed_us, out_us = spans.resolved_at.time, np.maximum(spans.resolved_at.time, spans.base.time)
    come = (closed_us >= task.passed_us) & (closed_us < task.horizon.frontier_us)
    come &= out_us >= task.horizon.frontier_us
    gone = (closed_us < task.passed_us) & (out_us >= task.passed_us) & (out_us < task.horizon.frontier_us)
    return Waiting.change(closed_us[come], closed_us[gone])


def ended_windows(task: SplitTask, grids: Sequence[GridSpan]) -> tuple[SpanRows, Ints, Split]:
    """Find the windows of grids that end now.

    Returns:
        The windows that may have a match to send, by grid; int64[n], the place of each one's grid; and the
            other decisions.
    """
    stream, horizon, frontier_us = task.stream, task.horizon, task.horizon.frontier_us
    # windows that only the end of the input has ended count as open
    open_until_us = frontier_us if horizon.seen_us is None else horizon.seen_us + 1
    keep, open_ = np.zeros(stream.rows, np.bool_), np.zeros(len(stream.starts), np.int64)
    due, following = [], list(task.next_selections)
    rules_of = Counter(planned.rule.span for planned in task.share.rules)
    used = [place for place, grid in enumerate(grids) if grid in rules_of]
    for place in used:
        windows = Windows.of(stream, grids[place], task.passed_us)
        spans = windows.ended(frontier_us).spans(horizon, following[place])
        due.append(spans.take(np.flatnonzero(_due(task, spans))))
        following[place] = following[place] + count_in_segments(stream, spans.start)
        open_ += windows.counted_open(open_until_us) * rules_of[grids[place]]
        keep |= windows.in_open(frontier_us)
    numbers = np.repeat(used, [len(spans.start) for spans in due])
    return joined(due), numbers, Split([], keep, open_, following)


def lanes_of_windows(task: SplitTask, rows: pa.Table, windows: SpanRows, grids: Ints) -> list[Lane]:
    """The lanes of windows that have a row each; `grids` are the places of their grids, ascending."""
    rules, lanes = task.share.rules, list[Lane]()
    sharing = zip((planned.index for planned in rules), task.share.places, strict=True)
    sharers = tuple(sharing) if len(rules) > 1 else ()
    for piece in lanes_by_rows(task, np.ones(len(windows.start), np.int64)):
        own, place = slice(piece.first, piece.last), np.arange(piece.last - piece.first)
        of_rows = replace(windows.take(piece.first + place), start=place, end=place + 1)
        table = _table(of_rows, 0)
        table = table.append_column("grid", pa.array(grids[own]))
        header = replace(task.header("spans", (0, len(place)), piece), sharers=sharers)
        lanes.append(Lane(header, rows.slice(piece.first, len(place)), table, own))
    return lanes


def _due(task: SplitTask, spans: SpanRows) -> Bools:
    """bool[n], the spans that may have a match to send: released from `passed_us` on, below the frontier.

    If other rules read the matches, also the spans that may have a new match that waits.
    """
    rule, frontier_us, ends_us = task.planned.rule, task.horizon.frontier_us, spans.resolved_at.time
    waits = rule.merge == "selection"
    latest = np.maximum(ends_us, spans.base.time) if waits else ends_us
    due = latest >= task.passed_us
    new = ends_us >= task.passed_us
    if not is_awaited(task.planned) or rule.operator is not None:
        new[:] = False
    if rule.pattern is None:  # the match of a whole span is known at its end
        return due & ((latest < frontier_us) | new & (ends_us < frontier_us))
    return due & ((spans.base.time < frontier_us) | new) if waits else due


def _lanes(task: SplitTask, spans: SpanRows) -> list[Lane]:
    """Cut lanes of spans."""
    if not len(spans.start):
        return []
    by_calls = task.planned.rule.operator is not None
    lanes = list[Lane]()
    for piece in lanes_by_rows(task, spans.end - spans.start, by_calls=by_calls):
        own = spans.take(np.arange(piece.first, piece.last))
        start = int(own.start.min())
        stop = min(task.stream.rows, max(int(own.end.max()), _last_code(own) // 2 + 1))
        table, events = _table(own, start), task.stream.events.slice(start, stop - start)
        header = task.header("spans", (0, stop - start), piece)
        lanes.append(Lane(header, events, table, slice(start, stop)))
    return lanes


def _last_code(spans: SpanRows) -> int:
    """The greatest known code of the positions where matches of these spans may be released."""
    known = spans.base.time != UNKNOWN_TIME
    return int(spans.base.code[known].max(initial=0))


def _table(spans: SpanRows, start: int) -> pa.Table:
    return pa.table({
        "start": spans.start - start,
        "end": spans.end - start,
        "selection_id": spans.selection_id,
        "opened_us": spans.opened_us,
        "close": np.where(spans.close < 0, -1, spans.close - start),
        **position_columns("resolved", spans.resolved_at, start),
        **position_columns("base", spans.base, start),
    })  # fmt: skip
