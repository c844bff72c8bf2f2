"""Folds: one event after the other changes the state of its key, and some events give matches.

The splitter keeps the states and finds the matches; operators only compute their fields. The carry has the
last state of each key, and no events.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.match.compiled.state_machine import Moves, Walk, walk_states
from spark_pace.core.match.stream import Stream
from spark_pace.core.plan.rule import STATE_AFTER, STATE_BEFORE, STATE_SINCE, Rule, StateMachine
from spark_pace.core.plan.structs import nested
from spark_pace.core.python_functions import Runs
from spark_pace.core.split.lane_sizes import lanes_by_rows
from spark_pace.core.split.task import Lane, Split, SplitTask, numbered
from spark_pace.core.tables import NOTHING_US, Ints, array

STATE = "@state"  # large_string, of a key: the name of its state, or the state of a Python function as JSON
NEXT = "@next"  # int64, of a key of a row pattern: the number of the row from which matches are sought
# columns of matches in a lane: row of the event, number of the selection
ROW, SELECTION = "@row", "@selection"


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
        rows, table, states = _walked(task, fold)
    else:
        rows, table, states = _by_python(task)
    of_segments = np.bincount(stream.segment[rows], minlength=len(stream.starts))
    place = np.arange(len(rows)) - np.repeat(np.cumsum(of_segments) - of_segments, of_segments)
    numbers = task.next_selection[stream.segment[rows]] + place
    columns = {name: array(table, name) for name in table.column_names}
    table = pa.table(columns | {SELECTION: numbers})
    none = np.zeros(len(stream.starts), np.int64)
    keep, following = np.zeros(stream.rows, np.bool_), task.next_selection + of_segments
    return Split(_lanes(task, rows, table), keep, none, [following], last_values=states)


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


def _walked(task: SplitTask, machine: StateMachine) -> tuple[Ints, pa.Table, dict[str, pa.Array]]:
    """The rows that give matches, a table with the states around each of them, and the keys' new states."""
    walked = walk(task.stream, machine, task.last_values)
    emits = np.array([*(move.emits for move in machine.moves), False])
    rows = np.flatnonzero(emits[walked.taken])
    targets = np.array([move.target for move in machine.moves], np.int64)
    table = pa.table({
        STATE_BEFORE: walked.before[rows],
        STATE_AFTER: targets[walked.taken[rows]],
        STATE_SINCE: walked.before_since[rows],
    })  # fmt: skip
    states = pa.array(machine.states, pa.large_string()).take(pa.array(walked.state))
    return rows, table, {STATE: states, STATE_SINCE: pa.array(walked.since, mask=walked.since == NOTHING_US)}


def _by_python(task: SplitTask) -> tuple[Ints, pa.Table, dict[str, pa.Array]]:
    """Like `_walked`, by the rule's Python function; the table has the fields of ``emit``."""
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
    return folded.rows, folded.fields, {STATE: pa.array(folded.states, pa.large_string())}


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


def _lanes(task: SplitTask, rows: Ints, table: pa.Table) -> list[Lane]:
    """Cut lanes that hold only the events of matches."""
    if not len(rows):
        return []
    lanes: list[Lane] = []
    for piece in lanes_by_rows(task, np.ones(len(rows), np.int64)):
        own, count = rows[piece.first : piece.last], piece.last - piece.first
        found = table.slice(piece.first, count).append_column(ROW, pa.array(np.arange(count)))
        header = numbered(task.header("folded"), len(lanes), (0, count), piece)
        lanes.append(Lane(header, task.stream.events.take(pa.array(own)).combine_chunks(), found, own))
    return lanes
