"""At most one open selection (`OneOpen`): the splitter decides where selections start and close.

Operators find the matches inside closed selections. Where a match is what closes a selection, the splitter
has found it already, and operators only compute its fields.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from spark_pace.core.columns import Ints
from spark_pace.core.match.chain import Chain, chain
from spark_pace.core.match.contexts.context import OneOpen
from spark_pace.core.match.found import Found, found_of
from spark_pace.core.match.release import must_wait, releases, resolved
from spark_pace.core.match.stream import Positions
from spark_pace.core.split.lane_sizes import lanes_by_rows
from spark_pace.core.split.lanes import Lane, Work, numbered, position_columns
from spark_pace.core.split.task import Split, SplitTask, count_in_segments, from_first


def split_one_open(task: SplitTask, way: OneOpen) -> Split:
    """Decide where selections open and close; lanes hold those that closed in this batch."""
    pattern = task.planned.rule.pattern
    assert pattern is not None
    stream = task.stream
    links = chain(stream, pattern, way.closing, task.horizon)
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
    done = np.flatnonzero(links.closes >= 0)
    opening, close = links.openings[done], links.closes[done]
    columns = {"selection_id": ids[done], "opening": opening, "close": close}
    return selection_lanes(task, "closed", columns, opening, close)


def _matched_lanes(task: SplitTask, links: Chain, ids: Ints) -> list[Lane]:
    rule = task.planned.rule
    assert rule.pattern is not None and links.matches is not None
    done = np.flatnonzero(links.closes >= 0)
    found = found_of(links.openings, links.closes, done, links.matches[done])
    ends = resolved(task.stream, found, rule.pattern.within, task.horizon)
    at = releases(task.stream, found, ends, waits=must_wait(rule))
    return matched_lanes(task, found, ids[done], at)


def matched_lanes(task: SplitTask, found: Found, ids: Ints, release: Positions) -> list[Lane]:
    """Lanes of matches that are found, with one row for each component, and may go out at `release`."""
    steps = len(found.members) // max(1, found.matches)
    matrix = found.members.reshape(found.matches, steps)
    rows = {f"p{k}": matrix[:, k] for k in range(steps)}
    last = np.maximum(found.last, release.code // 2) if found.matches else found.last
    columns = {"selection_id": ids, **rows, "release_code": release.code, "release_us": release.time}
    return selection_lanes(task, "matched", columns, found.first, last)


_ROWS = ("opening", "close", "p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7")


def selection_lanes(
    task: SplitTask, work: Work, columns: dict[str, Ints], first: Ints, last: Ints
) -> list[Lane]:
    """Cut selections (ascending by first row) into lanes, each with the rows from its first to its last."""
    if not len(first):
        return []
    lanes: list[Lane] = []
    for i, j in lanes_by_rows(task.plan, np.maximum(1, last - first + 1)):
        start, stop = int(first[i:j].min()), int(last[i:j].max()) + 1
        own = {
            name: values[i:j] - start if name in _ROWS else values[i:j] for name, values in columns.items()
        }
        if "release_code" in own:
            own |= position_columns("release", Positions(own["release_code"], own["release_us"]), start)
        header = numbered(task.header(work), len(lanes), (0, stop - start))
        lanes.append(Lane(header, task.stream.events.slice(start, stop - start), pa.table(own)))
    return lanes
