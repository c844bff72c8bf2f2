"""Explains what a fold with states and moves does at an event."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from spark_pace.core.columns import NOTHING_US
from spark_pace.core.plan.fold import StateMachine
from spark_pace.core.plan.rule import Rule
from spark_pace.core.split.folds import columns_of_states, walk
from spark_pace.reasons.answer import Why
from spark_pace.reasons.answer_parts import FoldStep
from spark_pace.reasons.condition_tests import move_names, tests_beside
from spark_pace.reasons.rule_stream import OfKey
from spark_pace.reasons.wording import iso


def folded(rule: Rule, machine: StateMachine, own: OfKey, why: Why) -> Why:
    """Add the state before the event, the tests of the moves that leave it, and the move that is taken."""
    begin = {column.name: pa.nulls(1, column.type) for column in columns_of_states(rule)}
    walked = walk(own.stream, machine, begin)
    state, since = int(walked.before[own.row]), int(walked.before_since[own.row])
    number = int(walked.taken[own.row])
    taken = None if number < 0 else machine.moves[number]
    step = FoldStep(
        before=machine.states[state],
        since=None if since == NOTHING_US else iso(since),
        after=machine.states[state if taken is None else taken.target],
        move=None if taken is None else number + 1,
    )
    known = tests_beside(rule, own.stream, own.row, 0)
    moves = zip(move_names(machine), machine.moves, strict=True)
    leaving = {name for name, move in moves if state in move.sources}
    told = tuple(known.get(one.component, one) for one in why.components if one.component in leaving)
    return replace(why, fold=step, components=told)
