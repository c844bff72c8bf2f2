"""At most one open selection (`OneOpen`): the splitter decides where selections start and close.

Operators find the matches inside closed selections. Where a match is what closes a selection, the splitter
has found it already, and operators only compute its fields.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from spark_pace.core.columns import Ints, array, numbers
from spark_pace.core.match.candidates import Search
from spark_pace.core.match.chain import Chain, chain
from spark_pace.core.match.contexts.context import OneOpen
from spark_pace.core.match.found import Found
from spark_pace.core.match.release import decisions, must_wait, releases, resolved
from spark_pace.core.match.stream import Positions
from spark_pace.core.match.window import window_ends
from spark_pace.core.split.lane_sizes import lanes_by_rows
from spark_pace.core.split.lanes import Lane, Work, numbered, position_columns
from spark_pace.core.split.task import Split, SplitTask, count_in_segments, from_first


def split_one_open(task: SplitTask, way: OneOpen) -> Split:
    """Decide where selections open and close; lanes hold those that closed in this batch."""
    pattern = task.planned.rule.pattern
    assert pattern is not None
    stream, search = task.stream, Search(task.stream, pattern)
    links = chain(search, way.closing, task.horizon)
    segment = stream.segment[links.openings]
    first = np.searchsorted(segment, np.arange(len(stream.starts)))
    ids = task.next_selection[segment] + np.arange(len(segment)) - first[segment]
    opened = np.bincount(segment[~links.open], minlength=len(stream.starts))
    lanes = _closed_lanes(task, links, ids) if way.inside is not None else _walked(task, search, links, ids)
    keep = from_first(stream, links.openings[links.open])
    over = task.horizon.over_by_itself(stream, links.openings, pattern.within)
    open_ = np.minimum(1, count_in_segments(stream, links.openings[(links.closes < 0) & ~over]))
    return Split(lanes, keep, open_, task.next_selection + opened)


def _closed_lanes(task: SplitTask, links: Chain, ids: Ints) -> list[Lane]:
    done = np.flatnonzero(links.closes >= 0)
    opening, close, last = links.openings[done], links.closes[done], links.closes[done]
    columns = {"selection_id": ids[done], "opening": opening, "close": close}
    if links.deciding is not None:  # what may forbid stands behind the closing event
        pattern = task.planned.rule.pattern
        assert pattern is not None
        at = window_ends(task.stream, links.deciding[done], pattern.within, task.horizon)
        columns |= {"release_code": at.code, "release_us": at.time}
        last = np.maximum(last, at.code // 2)
    return selection_lanes(task, "closed", pa.table(columns), opening, last)


def _walked(task: SplitTask, search: Search, links: Chain, ids: Ints) -> list[Lane]:
    rule, stream = task.planned.rule, task.stream
    found = links.found(search)
    decided = decisions(stream, found, search.pattern.within, task.horizon)
    ends = resolved(stream, found, search.pattern.within, task.horizon)
    at = releases(stream, found, decided, ends, waits=must_wait(rule))
    return matched_lanes(task, found, ids[found.selection], at)


def matched_lanes(task: SplitTask, found: Found, ids: Ints, release: Positions) -> list[Lane]:
    """Lanes of matches that are found, which may go out at `release`: the events of each by row and role."""
    last = np.maximum(found.last, release.code // 2) if found.matches else found.last
    offsets = pa.array(found.offsets, pa.int32())
    selections = {
        "selection_id": ids,
        "release_code": release.code,
        "release_us": release.time,
        "members": pa.ListArray.from_arrays(offsets, pa.array(found.members)),
        "roles": pa.ListArray.from_arrays(offsets, pa.array(found.roles)),
    }
    return selection_lanes(task, "matched", pa.table(selections), found.first, last)


def selection_lanes(task: SplitTask, work: Work, selections: pa.Table, first: Ints, last: Ints) -> list[Lane]:
    """Cut selections (ascending by first row) into lanes, each with the rows from its first to its last."""
    if not len(first):
        return []
    lanes: list[Lane] = []
    for i, j in lanes_by_rows(task.plan, np.maximum(1, last - first + 1)):
        start, stop = int(first[i:j].min()), int(last[i:j].max()) + 1
        own = _counted_from(start, selections.slice(i, j - i))
        header = numbered(task.header(work), len(lanes), (0, stop - start))
        lanes.append(Lane(header, task.stream.events.slice(start, stop - start), own))
    return lanes


def _counted_from(start: int, selections: pa.Table) -> pa.Table:
    """Selections whose rows are counted from `start`."""
    columns: dict[str, Any] = {name: array(selections, name) for name in selections.column_names}
    for name in {"opening", "close"} & columns.keys():
        columns[name] = columns[name].to_numpy() - start
    if "release_code" in columns:
        release = Positions(numbers(selections, "release_code"), numbers(selections, "release_us"))
        columns |= position_columns("release", release, start)
    if "members" in columns:
        members = columns["members"]
        offsets = np.append(0, np.cumsum(members.value_lengths().to_numpy()))
        rows = pa.array(members.flatten().to_numpy() - start)
        columns["members"] = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), rows)
    return pa.table(columns)
