"""Contexts with at most one open selection (`OneOpen`): the splitter decides where selections open and close.

Operators find the matches inside closed selections. If a selection is closed by a match, the splitter has
already found the match, and operators only compute its fields.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from spark_pace.core.columns import Ints
from spark_pace.core.match.chain import Chain, chain, if_no_more_come
from spark_pace.core.match.contexts.context import OneOpen
from spark_pace.core.match.delay import is_awaited
from spark_pace.core.match.found_matches import Found
from spark_pace.core.match.release import at_rows, decisions, match_times, releases, resolved
from spark_pace.core.match.search.any_order import search_of
from spark_pace.core.match.search.search import Search
from spark_pace.core.match.stream import Positions, Stream, rows_before
from spark_pace.core.match.waiting import NOTHING_WAITS, Waiting
from spark_pace.core.match.window import Horizon, window_ends
from spark_pace.core.split.lane_sizes import lanes_by_rows
from spark_pace.core.split.lanes import Lane, numbered, position_columns
from spark_pace.core.split.task import Split, SplitTask, count_in_segments, from_first


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
        header = numbered(task.header("closed"), len(lanes), (0, stop - start), piece)
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
    return matched_lanes(task, found, ids[found.selection], at)


def matched_lanes(task: SplitTask, found: Found, ids: Ints, release: Positions) -> list[Lane]:
    """Cut lanes of found matches, with the rows and components of their events.

    The lanes hold the events of the matches, and the events at whose positions matches are released.

    Args:
        task: the task.
        found: the matches.
        ids: int64[m], the `selection_id` of each match.
        release: the position at which each match is released.
    """
    pattern = task.planned.rule.pattern
    assert pattern is not None
    if not found.matches:
        return []
    lanes: list[Lane] = []
    matched_us = match_times(task.stream, found.last, found.deciding, pattern.within)
    for piece in lanes_by_rows(task, np.diff(found.offsets)):
        i, j = piece.first, piece.last
        members = found.members[found.offsets[i] : found.offsets[j]]
        last = release.code[i:j] // 2
        needed = np.zeros(task.stream.rows, np.bool_)
        needed[members] = needed[last] = True
        rows = np.flatnonzero(needed)
        places = rows_before(rows, np.append(members, last), task.stream.rows)
        offsets = pa.array(found.offsets[i : j + 1] - found.offsets[i], pa.int32())
        roles = found.roles[found.offsets[i] : found.offsets[j]]
        own = {
            "selection_id": ids[i:j],
            "members": pa.ListArray.from_arrays(offsets, pa.array(places[: len(members)])),
            "roles": pa.ListArray.from_arrays(offsets, pa.array(roles)),
            "matched_us": matched_us[i:j],
            "release_code": 2 * places[len(members) :] + (release.code[i:j] & 1),
            "release_us": release.time[i:j],
        }
        header = numbered(task.header("matched"), len(lanes), (0, len(rows)), piece)
        events = task.stream.events.take(pa.array(rows)).combine_chunks()
        lanes.append(Lane(header, events, pa.table(own), rows))
    return lanes
