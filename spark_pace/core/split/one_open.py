"""At most one open selection (`OneOpen`): the splitter decides where selections start and close.

Operators find the matches inside closed selections. Where a match is what closes a selection, the splitter
has found it already, and operators only compute its fields.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from spark_pace.core.columns import Ints
from spark_pace.core.match.candidates import Search
from spark_pace.core.match.chain import Chain, chain
from spark_pace.core.match.contexts.context import OneOpen
from spark_pace.core.match.found import Found, found_of
from spark_pace.core.match.release import must_wait, releases, resolved
from spark_pace.core.match.stream import Positions
from spark_pace.core.split.lane_sizes import lanes_by_rows
from spark_pace.core.split.lanes import Lane, numbered
from spark_pace.core.split.task import Split, SplitTask, count_in_segments, from_first


def split_one_open(task: SplitTask, way: OneOpen) -> Split:
    """Decide where selections open and close; lanes hold those that closed in this batch."""
    pattern = task.planned.rule.pattern
    assert pattern is not None
    stream = task.stream
    search = Search(stream, pattern)
    if way.inside is not None:  # a candidate of carried events alone would have closed the open selection
        lasts = search.members[-1]
        search = search.among(search.steps - 1, lasts[stream.time[lasts] >= task.passed_us])
    links = chain(search, way.closing, task.horizon, apart=way.inside is None)
    segment = stream.segment[links.openings]
    first = np.searchsorted(segment, np.arange(len(stream.starts)))
    ids = task.next_selection[segment] + np.arange(len(segment)) - first[segment]
    opened = np.bincount(segment[~links.open], minlength=len(stream.starts))
    cut = _closed_lanes if links.matches is None else _matched_lanes
    lanes = cut(task, links, ids)
    keep = from_first(stream, links.openings[links.open])
    over = task.horizon.over_by_itself(stream, links.openings, pattern.within)
    open_ = np.minimum(1, count_in_segments(stream, links.openings[(links.closes < 0) & ~over]))
    return Split(lanes, keep, open_, task.next_selection + opened)


def _closed_lanes(task: SplitTask, links: Chain, ids: Ints) -> list[Lane]:
    stream, done = task.stream, np.flatnonzero(links.closes >= 0)
    opening, close = links.openings[done], links.closes[done]
    lanes: list[Lane] = []
    for i, j in lanes_by_rows(task.plan, np.maximum(1, close - opening + 1)):
        start, stop = int(opening[i]), int(close[j - 1]) + 1
        own = {"selection_id": ids[done[i:j]], "opening": opening[i:j] - start, "close": close[i:j] - start}
        header = numbered(task.header("closed"), len(lanes), (0, stop - start))
        lanes.append(Lane(header, stream.events.slice(start, stop - start), pa.table(own)))
    return lanes


def _matched_lanes(task: SplitTask, links: Chain, ids: Ints) -> list[Lane]:
    rule = task.planned.rule
    assert rule.pattern is not None and links.matches is not None
    done = np.flatnonzero(links.closes >= 0)
    found = found_of(links.openings, links.closes, done, links.matches[done])
    ends = resolved(task.stream, found, rule.pattern.within, task.horizon)
    at = releases(task.stream, found, ends, waits=must_wait(rule))
    return matched_lanes(task, found, ids[done], at)


def matched_lanes(task: SplitTask, found: Found, ids: Ints, release: Positions) -> list[Lane]:
    """Lanes of matches that are found, with one row for each component, and go out at `release`.

    They hold the events of the matches, and those that let them out.
    """
    if not found.matches:
        return []
    steps = len(found.members) // found.matches
    matrix = np.column_stack([found.members.reshape(-1, steps), release.code // 2])
    lanes: list[Lane] = []
    for i, j in lanes_by_rows(task.plan, np.full(found.matches, steps)):
        needed = np.zeros(task.stream.rows, np.bool_)
        needed[matrix[i:j]] = True
        rows = np.flatnonzero(needed)
        at = np.searchsorted(rows, matrix[i:j])
        own = {"selection_id": ids[i:j]} | {f"p{step}": at[:, step] for step in range(steps)}
        code = 2 * at[:, -1] + (release.code[i:j] & 1)
        own |= {"release_code": code, "release_us": release.time[i:j]}
        header = numbered(task.header("matched"), len(lanes), (0, len(rows)))
        events = task.stream.events.take(pa.array(rows)).combine_chunks()
        lanes.append(Lane(header, events, pa.table(own)))
    return lanes
