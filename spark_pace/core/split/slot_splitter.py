"""The splitter of a slot: it orders the stream, decides where each rule's selections are, and cuts lanes.

It processes whole batches. Between two batches its state is one value of bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import pyarrow as pa

from spark_pace.core.frames import TableStore
from spark_pace.core.intake.sift import late_table
from spark_pace.core.match.release import Waiting
from spark_pace.core.order import MOST_NAMED, Advance, LateFile, Order, Progress, Standing
from spark_pace.core.plan.plan import Plan
from spark_pace.core.plan.price import Price
from spark_pace.core.python_functions import FoldRuns, fold_here
from spark_pace.core.split.snapshot import carry_of, load, save
from spark_pace.core.split.task import Batch, Lane, shares_of
from spark_pace.core.split.unit import advance_unit
from spark_pace.core.tables import HOME, array, numbers

Work = TypeVar("Work")


@dataclass(frozen=True)
class StepOutput(Generic[Work]):
    """The output of a slot for one batch.

    Attributes:
        lanes: the lanes for the operators, as bytes, or as the results of `hand_over` in `advance`.
        late: the events below the frontier that held when the batch began, as a table of `LATE_SCHEMA`; None
            if there are none, or if late events are told by `late_files`.
        stats: the counters of the slot, by name. In `events` and `late` a slot counts only those that no slot
            before it has. `frontier_us`, `repeats` and `idle_sources` are the same in every slot.
        slowest: names of the sources that hold the frontier back, the slowest first, at most `MOST_NAMED`.
        idle: names of the sources that are not waited for, the slowest first, at most `MOST_NAMED`.
        unheard: names of the expected sources without records, in order, at most `MOST_NAMED`.
        late_files: the files with late events. They must be read once more, because slots lack the late
            events that no rule wants, and some attributes. The same in every slot.
        reached: the greatest event time of each source, for the `Past` of the next batch's records. The same
            in every slot.
        waiting: how the matches that wait have changed, by the rule's place in the plan; see `Split`.
    """

    lanes: list[Work]
    late: pa.Table | None
    stats: dict[str, int] = field(default_factory=dict)
    slowest: list[str] = field(default_factory=list)
    idle: list[str] = field(default_factory=list)
    unheard: list[str] = field(default_factory=list)
    late_files: tuple[LateFile, ...] = ()
    reached: dict[str, int] = field(default_factory=dict)
    waiting: dict[int, Waiting] = field(default_factory=dict)

    @property
    def of_sources(self) -> dict[str, Any]:
        """What is the same in every slot of the sources, as JSON has it."""
        names = {"slowest": self.slowest, "idle": self.idle, "unheard": self.unheard}
        return {**names, "reached": self.reached}


def told_of_waiting(slots: Iterable[Mapping[int, Waiting]]) -> dict[int, list[Waiting]]:
    """What all slots tell of matches that wait (`StepOutput.waiting`), by the rule's place in the plan."""
    told: dict[int, list[Waiting]] = {}
    for slot in slots:
        for index, waiting in slot.items():
            told.setdefault(index, []).append(waiting)
    return told


class SlotSplitter:
    """The splitter of one slot, for all its rules and buckets of partition keys."""

    def __init__(
        self, plan: Plan, slot: int, snapshot: bytes | None = None, store: TableStore | None = None
    ) -> None:
        """Start with an empty state, or go on from a snapshot.

        Args:
            plan: the plan.
            slot: the slot.
            snapshot: a result of `snapshot`; None: there is no state yet.
            store: the store of the state's large chunks; None: snapshots hold them.

        Raises:
            StateError: the snapshot is damaged, of another format version or of other rules.
        """
        self._plan = plan
        self._slot = slot
        self._store = store
        if snapshot is None:
            self._order = Order()
            self._kept = [(share, carry_of(share)) for share in shares_of(plan, plan.units[slot])]
        else:
            self._order, self._kept = load(plan, slot, snapshot, store)

    def snapshot(self) -> bytes:
        """The state as bytes; its large chunks are in the store."""
        return save(self._plan, self._slot, self._order, self._kept, self._store)

    def stored(self) -> list[str]:
        """The names of the tables in the store that the last snapshot needs."""
        carries = [one for _, carry in self._kept for one in (carry, *carry.forbidding)]
        chunks = [chunk.name for carry in carries for chunk in carry.chunks]
        return [
            name for name in (*chunks, *(run.name for run in self._order.pending.runs)) if name is not None
        ]

    def step(
        self, frames: list[pa.Table], progress: Progress, prices: Mapping[int, Price] | None = None
    ) -> StepOutput[bytes]:
        """Process a batch like `advance`, and encode its lanes."""
        return self.advance(frames, progress, Lane.encode, prices)

    def advance(
        self,
        frames: list[pa.Table],
        progress: Progress,
        hand_over: Callable[[Lane], Work],
        prices: Mapping[int, Price] | None = None,
        fold: FoldRuns = fold_here,
    ) -> StepOutput[Work]:
        """Process a batch.

        Args:
            frames: the tables from `spark_pace.core.intake.pack.pack` for this slot, in any order.
            progress: how far the sources have come; the same for every slot.
            hand_over: called with each lane as soon as its unit is done, so that few lanes are in memory.
            prices: the predicted prices of operators, if known, by the rule's place in the plan. They decide
                the sizes of lanes if the plan has a bound, never a result.
            fold: calls the Python function of a rule's fold.

        Raises:
            OperatorError: such a function has failed. The state in memory is then useless.
        """
        passed_us = self._order.frontier_us
        advance = self._order.advance(frames, progress, self._plan.order, self._plan.tie_columns)
        frontier_us, seen_us = self._order.frontier_us, self._order.max_time_us
        batch = Batch(advance.released, passed_us, frontier_us, seen_us, prices or {}, fold)
        lanes, counts, waiting = self._cut(batch, hand_over)
        late = self._late(advance, passed_us)
        late_rows = 0 if late is None else late.num_rows
        standing = self._order.standing(self._plan.order)
        stats = {
            "events": sum(int(numbers(frame, HOME).sum()) for frame in frames) - late_rows,
            "late": late_rows,
            "repeats": advance.repeats,
            **self._held(),
            **counts,
            "frontier_us": frontier_us,
            "idle_sources": len(standing.idle),
        }
        named = self._named(standing, batch.frontier_us)
        return StepOutput(lanes, late, stats, *named, advance.late_files, self._reached(), waiting)

    def _named(self, standing: Standing, frontier_us: int) -> tuple[list[str], list[str], list[str]]:
        """The names of sources that hold the frontier, are left out, and were never heard of."""
        slowest = standing.holding(frontier_us + self._plan.order.delay_us, MOST_NAMED)
        return slowest, standing.slowest_idle(MOST_NAMED), sorted(standing.unheard)[:MOST_NAMED]

    def _reached(self) -> dict[str, int]:
        """The greatest event time of each source, if the records before an event decide; else empty."""
        return dict(self._order.sources) if self._plan.order.before == "records" else {}

    def _held(self) -> dict[str, int]:
        """The counters of what is held for later batches."""
        return {
            "pending": self._order.pending.counted,
            "carry": sum(carry.rows for _, carry in self._kept),
            "open": sum(carry.open for _, carry in self._kept),
        }

    def _late(self, advance: Advance, frontier_us: int) -> pa.Table | None:
        """The late events that this slot reports (`StepOutput.late`)."""
        if advance.late is None or advance.late_files:
            return None
        own = advance.late.filter(array(advance.late, HOME))
        return late_table(own, frontier_us, False, self._plan.schema.own)

    def _cut(
        self, batch: Batch, hand_over: Callable[[Lane], Work]
    ) -> tuple[list[Work], dict[str, int], dict[int, Waiting]]:
        """Advance all units; the results of `hand_over`, the counters, and what has changed."""
        lanes, changes = list[Work](), dict[int, list[Waiting]]()
        lane_rows = distinct_rows = 0
        for share, carry in self._kept:
            cut, changed = advance_unit(self._plan, share, carry, batch)
            if len(changed.times):
                changes.setdefault(share.rules[0].index, []).append(changed)
            lanes += map(hand_over, cut)
            lane_rows += sum(lane.events.num_rows for lane in cut)
            distinct_rows += sum(lane.new_rows for lane in cut)
        counts = {"lanes": len(lanes), "lane_rows": lane_rows, "distinct_rows": distinct_rows}
        return lanes, counts, {index: Waiting.sum(parts) for index, parts in changes.items()}

    @property
    def frontier_us(self) -> int:
        """The frontier: events with a smaller event time have been released."""
        return self._order.frontier_us
