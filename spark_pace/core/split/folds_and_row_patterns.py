"""Folds and row patterns (``match_recognize``), which the splitter matches itself, event by event of a key.

In a fold one event after the other changes the state of its key, and some events give matches. The carry has
the last state of each key, and no events.

The matches of a row pattern are found one after the other. Their fields are computed here too, which costs
less than to send all rows that these read to operators. The carry has the rows from the first one on at which
it is not known yet whether a match begins, and those before it that are read; and of each key the number of
that row.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.expr import ARROW_TYPES
from spark_pace.core.match.compiled.state_machine import Moves, Walk, walk_states
from spark_pace.core.match.release import at_rows
from spark_pace.core.match.row_patterns.result import Frames
from spark_pace.core.match.row_patterns.streams import Decided, decided
from spark_pace.core.match.stream import Found, Stream
from spark_pace.core.plan.row_pattern import RowPattern
from spark_pace.core.plan.rule import STATE_AFTER, STATE_BEFORE, STATE_SINCE, Rule, StateMachine
from spark_pace.core.plan.structs import nested
from spark_pace.core.python_functions import Runs
from spark_pace.core.split.lanes import matched_lanes
from spark_pace.core.split.task import Split, SplitTask
from spark_pace.core.tables import NOTHING_US, Ints, array

STATE = "@state"  # large_string, of a key: the name of its state, or the state of a Python function as JSON
NEXT = "@next"  # int64, of a key of a row pattern: the number of the row from which matches are sought

Folding: TypeAlias = tuple[Ints, dict[str, pa.Array], dict[str, pa.Array]]


def columns_of_states(rule: Rule) -> pa.Schema:
    """The schema of what a fold or a row pattern keeps of each key; empty for other rules."""
    if rule.rows is not None:
        return pa.schema([(NEXT, pa.int64())])
    if rule.fold is None:
        return pa.schema([])
    kept = [(STATE, pa.large_string())]
    return pa.schema([*kept, (STATE_SINCE, pa.int64())] if isinstance(rule.fold, StateMachine) else kept)


def split_fold(task: SplitTask) -> Split:
    """Run the fold over all keys; the lanes hold the events that give matches."""
    fold, stream = task.planned.rule.fold, task.stream
    if isinstance(fold, StateMachine):
        rows, fields, states = _walked(task, fold)
    else:
        rows, fields, states = _by_python(task)
    (ids, following), number = _numbered(task, rows), np.arange(len(rows))
    found = Found(rows, rows, number, np.append(number, len(rows)), rows, np.zeros(len(rows), np.int8))
    lanes = matched_lanes(task, found, ids, at_rows(stream, rows), stream.time[rows], fields=fields)
    none = np.zeros(len(stream.starts), np.int64)
    return Split(lanes, np.zeros(stream.rows, np.bool_), none, [following], last_values=states)


def _numbered(task: SplitTask, rows: Ints) -> tuple[Ints, Ints]:
    """The `selection_id` of each match, by a row of it, in order; and the next one of each segment."""
    segment = task.stream.segment[rows]
    counts = np.bincount(segment, minlength=len(task.stream.starts))
    place = np.arange(len(rows)) - (np.cumsum(counts) - counts)[segment]
    return task.next_selection[segment] + place, task.next_selection + counts


def walk(stream: Stream, machine: StateMachine, last_values: Mapping[str, pa.Array]) -> Walk:
    """Run a state machine over all segments of a stream.

    Args:
        stream: the stream.
        machine: the states and moves.
        last_values: the values that each segment's key has kept (`columns_of_states`).
    """
    names = pa.array(machine.states, pa.large_string())
    known = pc.fill_null(pc.index_in(last_values[STATE], value_set=names), 0)
    since = pc.fill_null(last_values[STATE_SINCE], NOTHING_US)
    before, before_since, taken = (np.empty(stream.rows, np.int64) for _ in range(3))
    state, entered = (np.array(column.to_numpy(), np.int64) for column in (known, since))
    walked = Walk(state, entered, before, before_since, taken)
    bounds, mask = np.append(stream.starts, stream.rows), stream.mask.astype(np.int64)
    walk_states(Moves(*_moves(machine)), bounds, mask, np.ascontiguousarray(stream.time), walked)
    return walked


def _walked(task: SplitTask, machine: StateMachine) -> Folding:
    """The rows that give matches, the states around each of them as columns, and the keys' new states."""
    walked = walk(task.stream, machine, task.last_values)
    emits = np.array([*(move.emits for move in machine.moves), False])
    rows = np.flatnonzero(emits[walked.taken])
    targets = np.array([move.target for move in machine.moves], np.int64)
    fields = {
        STATE_BEFORE: pa.array(walked.before[rows]),
        STATE_AFTER: pa.array(targets[walked.taken[rows]]),
        STATE_SINCE: pa.array(walked.before_since[rows]),
    }
    states = pa.array(machine.states, pa.large_string()).take(pa.array(walked.state))
    return rows, fields, {STATE: states, STATE_SINCE: pa.array(walked.since, mask=walked.since == NOTHING_US)}


def _by_python(task: SplitTask) -> Folding:
    """Like `_walked`, by the rule's Python function; the columns are the fields of ``emit``."""
    stream, planned = task.stream, task.planned
    keys = None
    if planned.key_column is not None:
        texts = stream.attribute(planned.key_column).take(pa.array(stream.starts)).cast(pa.string())
        keys = texts.to_pylist()
    schema = planned.rule.schema
    names = [field.name for field in schema.fields if not field.name.startswith("@")]  # others are the plan's
    attributes = nested(stream.events.select(names), schema)
    bounds = np.append(stream.starts, stream.rows)
    states = task.last_values[STATE].to_pylist()
    folded = task.fold(Runs(planned.rule, attributes, stream.seq, bounds, keys, states))
    fields = {name: array(folded.fields, name) for name in folded.fields.column_names}
    return folded.rows, fields, {STATE: pa.array(folded.states, pa.large_string())}


def _moves(machine: StateMachine) -> tuple[Ints, Ints, Ints, Ints]:
    """The columns of `Moves`, from the moves of a machine."""
    of_states = [
        [
            (-1 if move.condition is None else move.condition, move.target, number)
            for number, move in enumerate(machine.moves)
            if state in move.sources
        ]
        for state in range(len(machine.states))
    ]
    begins = np.cumsum([0, *map(len, of_states)])
    columns = np.array([row for rows in of_states for row in rows], np.int64).reshape(-1, 3).T
    bits, targets, numbers = (np.ascontiguousarray(column) for column in columns)
    return begins, bits, targets, numbers


def split_rows(task: SplitTask) -> Split:
    """Find the matches that are decided; the lanes hold them with their rows and fields."""
    rule, stream = task.planned.rule, task.stream
    assert rule.rows is not None
    known = task.last_values[NEXT].fill_null(0).to_numpy()
    ahead = np.maximum(known - stream.seq[stream.starts], 0)
    new = decided(rule.rows, stream, stream.starts + ahead, task.next_selection, task.horizon)
    following, found = new.found.next, new.found
    last = found.first + np.maximum(found.length, 1) - 1
    matches, fields = _matches(new, last), _fields(rule, rule.rows, new) if len(last) else {}
    ids, next_ids = _numbered(task, found.first)
    lanes = matched_lanes(task, matches, ids, new.at, new.matched_us, ends=(found.first, last), fields=fields)
    ends = np.append(stream.starts[1:], stream.rows)
    first = following - rule.rows.before
    if task.horizon.complete is not None:
        first = np.where(task.horizon.complete, ends, first)
    keep = np.arange(stream.rows) >= first[stream.segment]
    left_off = pa.array(stream.seq[stream.starts] + following - stream.starts)
    open_ = (following < ends).astype(np.int64)
    return Split(lanes, keep, open_, [next_ids], last_values={NEXT: left_off})


def _fields(rule: Rule, plan: RowPattern, new: Decided) -> dict[str, pa.Array]:
    """The fields of the matches."""
    ends = np.cumsum(new.found.length)
    frames = Frames(plan, new.rows, new.found, np.arange(len(ends)), ends - new.found.length, ends, ends)
    values = [frames.measure(one) for one in plan.measures]
    columns = zip(rule.emit, values, strict=True)
    return {field.name: value.cast(ARROW_TYPES[field.type]) for field, value in columns}


def _matches(new: Decided, last: Ints) -> Found:
    """The matches with the rows that they show; those that the pattern excludes are left out."""
    found = new.found
    begin = np.cumsum(found.length) - found.length
    owner = np.repeat(np.arange(len(begin)), found.length)
    shown = np.flatnonzero(found.labels & 1 == 0)
    rows = found.first[owner[shown]] + shown - begin[owner[shown]]
    offsets = np.searchsorted(owner[shown], np.arange(len(begin) + 1))
    roles = (found.labels[shown] >> 1).astype(np.int8)
    return Found(found.first, last, np.arange(len(begin)), offsets, rows, roles)
