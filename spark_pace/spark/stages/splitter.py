"""Host of the splitter (`applyInPandasWithState`): one call a slot and batch, with one value of state."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spark_pace.core.frames import TableStore, decode, encode
from spark_pace.core.order.order import Progress, together
from spark_pace.core.plan.plan import Plan
from spark_pace.core.split.slot_splitter import SlotSplitter
from spark_pace.spark.stages.operators import worked_off
from spark_pace.spark.stages.prices import prices_of_batch
from spark_pace.spark.stages.rows import BAD, FRAME, LANE, LATE, PROGRESS, STATS, Row

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql.streaming.state import GroupState

STATE_SCHEMA = "snapshot binary"

Frames = Iterator["pd.DataFrame"]


@dataclass(frozen=True)
class SplitterHost:
    """Runs the splitters of a slot over a batch's frames.

    Attributes:
        plan: the plan.
        slot_of_key: the slot of each group key.
        parts: the number of partitions that lanes are dealt out to.
        small_bytes: the most bytes of lanes that are worked off here.
        store: where large chunks of the state are; None: in the state.
    """

    plan: Plan
    slot_of_key: dict[int, int]
    parts: int
    small_bytes: int
    store: TableStore | None

    def stage(self) -> Callable[[tuple[Any, ...], Frames, GroupState], Frames]:
        """The function for `applyInPandasWithState`: `SLOT_ROWS` of one slot to `PART_ROWS`."""
        return self.step

    def step(self, key: tuple[Any, ...], batches: Frames, state: GroupState) -> Frames:
        """One batch of one slot."""
        import pandas as pd  # late: the driver imports this file before it starts the JVM

        slot = self.slot_of_key[int(key[0])]
        incoming = [
            (kind, body) for batch in batches for kind, body in zip(batch["kind"], batch["body"], strict=True)
        ]
        before = bytes(state.get[0]) if state.exists else None
        splitter = SlotSplitter(self.plan, slot, before, self.store)
        reports = [json.loads(body) for kind, body in incoming if kind == PROGRESS]
        progress = together(Progress(**report["progress"]) for report in reports)
        prices = {} if self.plan.latency_bound_us is None else prices_of_batch()
        frames = [decode(body) for kind, body in incoming if kind == FRAME]
        output = splitter.step(frames, progress, prices)
        snapshot = splitter.snapshot()
        state.update((snapshot,))
        stats: dict[str, Any] = {
            **output.stats,
            "slot": slot,
            "state_bytes": len(snapshot),
            "chunks": splitter.stored(),
            "finish": progress.finish,
            "max_time_us": progress.max_time_us,
        }
        results = worked_off(self.plan, output.lanes, self.small_bytes)
        if results is None:
            stats["lanes_left"] = len(output.lanes)
            results = [((slot + number) % self.parts, LANE, lane) for number, lane in enumerate(output.lanes)]
        if slot == 0:  # every slot hears of all tasks, so one speaks for all
            counts = sum((Counter(report["counts"]) for report in reports), Counter())
            stats |= {"counts": counts, "slowest": output.slowest}
        rows: list[Row] = [*results]
        rows += [(0, kind, body) for kind, body in incoming if kind in (BAD, LATE)]
        rows += [(0, LATE, encode(output.late))] if output.late is not None else []
        rows.append((0, STATS, json.dumps(stats).encode()))
        yield pd.DataFrame(rows, columns=["part", "kind", "body"]).astype({"part": "int32"})
