"""The stages of a job, one batch after another, with every state saved and restored between two batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.intake import pack
from spark_pace.core.merger import merge
from spark_pace.core.operator import operate
from spark_pace.core.order import Progress
from spark_pace.core.plan import Plan
from spark_pace.core.splitter import SlotSplitter


@dataclass(frozen=True)
class Step:
    """What one batch gave."""

    matches: pa.Table
    failed: pa.Table
    late: list[pa.Table]


def drive(plan: Plan, batches: Sequence[pa.Table], *, finish: bool, parts: int = 1) -> Iterator[Step]:
    """Run the batches, packing each in `parts` pieces, as several tasks would."""
    snapshots: list[bytes | None] = [None] * plan.slots
    next_out_seq: dict[str, int] = {}
    for table in [*batches, None] if finish else list(batches):
        frames: list[list[pa.Table]] = [[] for _ in range(plan.slots)]
        for piece in [] if table is None else pieces(table, parts):
            for slot, frame in pack(plan, piece):
                frames[slot].append(frame)
        latest = None if table is None or not table.num_rows else pc.max(table["@time"]).as_py()
        results, late = [], []
        for slot in range(plan.slots):
            splitter = SlotSplitter(plan, slot, snapshots[slot])
            output = splitter.step(frames[slot], Progress(latest, finish=table is None))
            snapshots[slot] = splitter.snapshot()
            results += [operate(plan, lane) for lane in output.lanes]
            late += [output.late] if output.late is not None else []
        merged = merge(plan, results, next_out_seq)
        next_out_seq = merged.next_out_seq
        yield Step(merged.matches, merged.failed, late)


def pieces(table: pa.Table, parts: int) -> list[pa.Table]:
    return [table.take(pa.array(range(part, table.num_rows, parts), pa.int64())) for part in range(parts)]
