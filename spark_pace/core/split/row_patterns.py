"""Row patterns (``match_recognize``): the splitter finds the matches of each key, one after the other.

It also computes their fields, which cost less than to send all rows that these read to operators. The carry
has the rows from the first one on at which it is not known yet whether a match begins, and those before it
that are read; and of each key the number of that row.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from spark_pace.core.expr import ARROW_TYPES
from spark_pace.core.match.row_patterns.result import Frames
from spark_pace.core.match.row_patterns.streams import Decided, decided
from spark_pace.core.match.stream import Positions, Stream, rows_before
from spark_pace.core.plan.row_pattern import RowPattern
from spark_pace.core.plan.rule import Rule
from spark_pace.core.split.folds import NEXT, SELECTION
from spark_pace.core.split.lane_sizes import lanes_by_rows
from spark_pace.core.split.task import Lane, Split, SplitTask, numbered
from spark_pace.core.tables import Ints

# columns of matches in a lane, beside their fields; members and roles are lists, rows are rows of the lane
FIRST, LAST, MEMBERS, ROLES = "@first", "@last", "@members", "@roles"
CODE, RELEASE, MATCHED = "@code", "@release", "@matched"


def split_rows(task: SplitTask) -> Split:
    """Find the matches that are decided; the lanes hold them with their rows and fields."""
    rule, stream = task.planned.rule, task.stream
    assert rule.rows is not None
    known = task.last_values[NEXT].fill_null(0).to_numpy()
    ahead = np.maximum(known - stream.seq[stream.starts], 0)
    new = decided(rule.rows, stream, stream.starts + ahead, task.next_selection, task.horizon)
    following, found = new.found.next, new.found
    of_match = stream.segment[found.first]
    counts = np.bincount(of_match, minlength=len(stream.starts))
    place = np.arange(len(of_match)) - (np.cumsum(counts) - counts)[of_match]
    lanes = _lanes(task, new, task.next_selection[of_match] + place)
    ends = np.append(stream.starts[1:], stream.rows)
    first = following - rule.rows.before
    if task.horizon.complete is not None:
        first = np.where(task.horizon.complete, ends, first)
    keep = np.arange(stream.rows) >= first[stream.segment]
    left_off = pa.array(stream.seq[stream.starts] + following - stream.starts)
    open_ = (following < ends).astype(np.int64)
    return Split(lanes, keep, open_, [task.next_selection + counts], last_values={NEXT: left_off})


def fields_of(rule: Rule, plan: RowPattern, new: Decided) -> pa.Table:
    """The fields of the matches."""
    ends = np.cumsum(new.found.length)
    frames = Frames(plan, new.rows, new.found, np.arange(len(ends)), ends - new.found.length, ends, ends)
    values = [frames.measure(one) for one in plan.measures]
    columns = zip(rule.emit, values, strict=True)
    return pa.table({field.name: value.cast(ARROW_TYPES[field.type]) for field, value in columns})


def members_of(new: Decided) -> tuple[Ints, Ints, Ints]:
    """int64[m + 1], where the rows of each match begin; these rows, and their variables.

    Rows that the pattern excludes are left out.
    """
    found = new.found
    begin = np.cumsum(found.length) - found.length
    owner = np.repeat(np.arange(len(begin)), found.length)
    shown = np.flatnonzero(found.labels & 1 == 0)
    rows = found.first[owner[shown]] + shown - begin[owner[shown]]
    offsets = np.searchsorted(owner[shown], np.arange(len(begin) + 1))
    return offsets, rows, found.labels[shown].astype(np.int64) >> 1


def _lanes(task: SplitTask, new: Decided, ids: Ints) -> list[Lane]:
    found, rule = new.found, task.planned.rule
    if not len(found.first):
        return []
    assert rule.rows is not None
    last = found.first + np.maximum(found.length, 1) - 1
    offsets, rows, roles = members_of(new)
    named = {SELECTION: ids, FIRST: found.first, LAST: last, MATCHED: new.matched_us, RELEASE: new.at.time}
    fields = fields_of(rule, rule.rows, new)
    lanes: list[Lane] = []
    for piece in lanes_by_rows(task, np.maximum(found.length, 1)):
        i, j = piece.first, piece.last
        inside = slice(offsets[i], offsets[j])
        held, places = _held(task.stream, [rows[inside], found.first[i:j], last[i:j], new.at.code[i:j] // 2])
        own = {name: pa.array(column[i:j]) for name, column in named.items()}
        own |= {FIRST: pa.array(places[1]), LAST: pa.array(places[2])}
        own[CODE] = pa.array(2 * places[3] + (new.at.code[i:j] & 1))
        lists = pa.array(offsets[i : j + 1] - offsets[i], pa.int32())
        own[MEMBERS] = pa.ListArray.from_arrays(lists, pa.array(places[0]))
        own[ROLES] = pa.ListArray.from_arrays(lists, pa.array(roles[inside]))
        own |= {name: fields[name].slice(i, j - i).combine_chunks() for name in fields.column_names}
        header = numbered(task.header("rows"), len(lanes), (0, len(held)), piece)
        lanes.append(
            Lane(header, task.stream.events.take(pa.array(held)).combine_chunks(), pa.table(own), held)
        )
    return lanes


def _held(stream: Stream, needed: list[Ints]) -> tuple[Ints, list[Ints]]:
    """The rows that a lane holds, and the places of some rows among them."""
    there = np.zeros(stream.rows, np.bool_)
    for rows in needed:
        there[rows] = True
    held = np.flatnonzero(there)
    return held, [rows_before(held, rows, stream.rows) for rows in needed]


def positions_of(lane: Lane) -> Positions:
    """The positions where the matches of a lane are decided."""
    return Positions(lane.column(CODE), lane.column(RELEASE))
