"""The splitter of a slot: order the stream, decide per rule where selections start and close, cut lanes.

It works on whole batches; its state between two batches is one value of bytes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import pyarrow as pa

from spark_pace.core.columns import HOME, OFFSET, SOURCE, TIME, UNKNOWN_TIME, array, numbers
from spark_pace.core.match_table import UTC_TIME
from spark_pace.core.order import Order, Progress
from spark_pace.core.plan import Plan
from spark_pace.core.snapshot import load, save
from spark_pace.core.unit import Batch, UnitState, advance_unit, new_unit

LATE_SCHEMA = pa.schema([
    ("event_time", UTC_TIME), ("lateness_us", pa.int64()), ("source", pa.string()), ("offset", pa.int64()),
    ("event", pa.string()),
])  # fmt: skip


@dataclass(frozen=True)
class StepOutput:
    """What a step gives.

    Attributes:
        lanes: work for the operators, each as bytes.
        late: events below the frontier that held when the batch began (`LATE_SCHEMA`); None where there are none.
        stats: events (taken in for the first time among the slots), late, pending, carry (rows), open (selections),
            frontier_us.
    """

    lanes: list[bytes]
    late: pa.Table | None
    stats: dict[str, int] = field(default_factory=dict)


class SlotSplitter:
    """The splitters of one slot, for all its rules and key buckets."""

    def __init__(self, plan: Plan, slot: int, snapshot: bytes | None = None) -> None:
        """Begin, or go on from a snapshot.

        Raises:
            StateError: the snapshot is damaged, of another format version or of other rules.
        """
        self._plan = plan
        self._slot = slot
        self._units = plan.units[slot]
        if snapshot is None:
            self._order = Order()
            self._states = [new_unit(plan.rules[unit.rule]) for unit in self._units]
        else:
            self._order, self._states = load(plan, slot, snapshot)

    def snapshot(self) -> bytes:
        """All of the state."""
        return save(self._plan, self._slot, self._order, self._states)

    def step(self, frames: list[pa.Table], progress: Progress) -> StepOutput:
        """Take a batch in.

        Args:
            frames: this slot's tables of `spark_pace.core.intake.pack`, in any order.
            progress: of all sources, the same for every slot.

        Returns:
            lanes, late events and statistics.
        """
        passed_us = self._order.frontier_us
        released, late = self._order.advance(frames, progress, self._plan.delay_us, self._plan.tie_columns)
        batch = Batch(released, passed_us, self._order.frontier_us, self._order.max_time_us)
        lanes: list[bytes] = []
        open_ = 0
        for unit, state in zip(self._units, self._states, strict=True):
            rule = self._plan.rules[unit.rule]
            cut, still_open = advance_unit(self._plan, rule, unit.bucket, state, batch)
            lanes += [lane.encode() for lane in cut]
            open_ += still_open
        late_rows = None if late is None else _late_table(late, passed_us)
        events = sum(int(numbers(frame, HOME).sum()) for frame in frames)
        stats = {
            "events": events - (late_rows.num_rows if late_rows is not None else 0),
            "late": late_rows.num_rows if late_rows is not None else 0,
            "pending": 0 if self._order.pending is None else self._order.pending.num_rows,
            "carry": sum(_rows(state) for state in self._states),
            "open": open_,
            "frontier_us": batch.frontier_us,
        }
        return StepOutput(lanes, late_rows, stats)

    @property
    def finished(self) -> bool:
        """Whether the input has ended."""
        return self._order.frontier_us == UNKNOWN_TIME


def _rows(state: UnitState) -> int:
    return 0 if state.carry is None else int(state.carry.num_rows)


def _late_table(late: pa.Table, frontier_us: int) -> pa.Table:
    """Late events that this slot reports, with how far below the frontier they were."""
    late = late.filter(array(late, HOME))
    time = numbers(late, TIME)
    attributes = late.select([name for name in late.column_names if not name.startswith("@")])
    rows = [json.dumps(row, default=str, ensure_ascii=False) for row in attributes.to_pylist()]
    return pa.table(
        [
            pa.array(time).view(UTC_TIME), pa.array(frontier_us - time), array(late, SOURCE).cast(pa.string()),
            array(late, OFFSET), pa.array(rows, pa.string()),
        ],
        schema=LATE_SCHEMA,
    )  # fmt: skip
