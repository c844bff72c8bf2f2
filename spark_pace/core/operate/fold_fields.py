"""Computes the fields of a fold's matches."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from spark_pace.core.columns import NOTHING_US, Ints
from spark_pace.core.expr import ARROW_TYPES, Aggregate, evaluate
from spark_pace.core.match.release import at_rows
from spark_pace.core.match.stream import Stream
from spark_pace.core.operate.match_table import Labels, event_matches
from spark_pace.core.plan.fold import STATE_AFTER, STATE_BEFORE, STATE_SINCE, StateMachine
from spark_pace.core.plan.plan import Plan, RulePlan
from spark_pace.core.split.folds import ROW, SELECTION
from spark_pace.core.split.lanes import Lane


def fold_matches(plan: Plan, planned: RulePlan, lane: Lane, stream: Stream) -> pa.Table:
    """The matches of a lane whose rule has a fold, as a table."""
    rows, rule = lane.column(ROW), planned.rule
    labels = Labels(lane.column(SELECTION), stream.time[rows], stream.time[rows], at_rows(stream, rows))
    assert lane.selections is not None
    if isinstance(rule.fold, StateMachine):
        columns = MoveColumns(stream, rows, rule.fold, lane)
        found = {field.name: evaluate(field.expr, columns) for field in rule.emit if field.expr is not None}
        fields = pa.table(found)
    else:
        fields = lane.selections.select([field.name for field in rule.emit])
    return event_matches(plan, planned, stream, labels, rows, fields)


@dataclass(frozen=True)
class MoveColumns:
    """The columns that expressions read of moves with matches: attributes of the event, and the states.

    Attributes:
        stream: the lane's stream.
        events: int64[m], the row of each move's event.
        machine: the rule's fold.
        lane: the lane.
    """

    stream: Stream
    events: Ints
    machine: StateMachine
    lane: Lane

    @property
    def rows(self) -> int:
        """The number of moves."""
        return len(self.events)

    def column(self, component: str | None, attribute: str) -> pa.Array:
        """An attribute of each move's event, or a fact about its states."""
        if attribute in (STATE_BEFORE, STATE_AFTER):
            return pa.array(self.machine.states, pa.string()).take(pa.array(self.lane.column(attribute)))
        if attribute == STATE_SINCE:
            since = self.lane.column(attribute)
            return pa.array(since, mask=np.equal(since, NOTHING_US)).cast(ARROW_TYPES["TIMESTAMP"])
        return self.stream.attribute(attribute).take(pa.array(self.events))

    def aggregate(self, one: Aggregate) -> pa.Array:
        """A single event has no groups."""
        raise AssertionError(f"{one} over a single event")
