"""The stages of a job, one batch after another, with every state saved and restored between two batches."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from itertools import cycle

import pyarrow as pa

from spark_pace.core.columns import NO_FRONTIER
from spark_pace.core.frames import Sink
from spark_pace.core.intake.pack import pack
from spark_pace.core.intake.sift import sift
from spark_pace.core.merger import merge
from spark_pace.core.operate.operator import operate
from spark_pace.core.operate.result import decode_result
from spark_pace.core.order.order import Progress, together
from spark_pace.core.plan.plan import Plan
from spark_pace.core.plan.price import Price
from spark_pace.core.split.slot_splitter import SlotSplitter

Plans = Plan | Sequence[Plan]
Told = Sequence[Price | None]


class KeptChunks:
    """Large chunks of one slot's state, in memory: only those that its last state needs are still there."""

    def __init__(self) -> None:
        self.content: dict[str, bytes] = {}

    def put(self, write: Callable[[Sink], None]) -> str:
        file = BytesIO()
        write(file)
        content = file.getvalue()
        name = hashlib.sha256(content).hexdigest()
        self.content[name] = content
        return name

    def get(self, name: str) -> memoryview:
        return memoryview(self.content[name])

    def forget_all_but(self, names: Sequence[str]) -> None:
        self.content = {name: self.content[name] for name in names}


@dataclass(frozen=True)
class Step:
    """What one batch gave; the frontier is that of every slot."""

    matches: pa.Table
    failed: pa.Table
    late: list[pa.Table]
    counts: Counter[str]
    frontier_us: int


def drive(
    plans: Plans, batches: Sequence[pa.Table], *, finish: bool, parts: int = 1, prices: Told = (None,)
) -> Iterator[Step]:
    """Run the batches, reading each in `parts` pieces, as several tasks would.

    `plans` is one plan for all batches, or one for each. `prices` are those of the first rule, in turn.
    """
    tables = [*batches, None] if finish else list(batches)
    plans = [plans] * len(tables) if isinstance(plans, Plan) else plans
    snapshots: list[bytes | None] = [None] * plans[0].slots if plans else []
    stores = [KeptChunks() for _ in snapshots]
    next_out_seq: dict[str, int] = {}
    frontier_us = NO_FRONTIER
    for (plan, table), price in zip(zip(plans, tables, strict=True), cycle(prices), strict=False):
        sifted = [sift(plan, piece, frontier_us) for piece in pieces(table, parts)]
        frames: list[list[pa.Table]] = [[] for _ in range(plan.slots)]
        for part in sifted:
            for slot, frame in pack(plan, part.events):
                frames[slot].append(frame)
        progress = together([*(part.progress for part in sifted), Progress(finish=table is None)])
        results, outputs = [], []
        counts = Counter(records=0 if table is None else table.num_rows)
        for slot in range(plan.slots):
            splitter = SlotSplitter(plan, slot, snapshots[slot], stores[slot])
            output = splitter.step(frames[slot], progress, {0: price} if price else {})
            assert output.late is None, "the intake has taken the late events out"
            snapshots[slot] = splitter.snapshot()
            stores[slot].forget_all_but(splitter.stored())
            outputs.append(output)
            results += [operate(plan, lane) for lane in output.lanes]
        assert len({output.stats["frontier_us"] for output in outputs}) == 1, "every slot has one frontier"
        assert len({output.stats["repeats"] for output in outputs}) == 1, "every slot drops the same events"
        frontier_us = outputs[0].stats["frontier_us"]
        repeats = outputs[0].stats["repeats"]
        counts.update(repeats=repeats, events=-repeats)
        for part in sifted:
            counts.update(events=part.events.num_rows, late=part.late.num_rows, heartbeats=part.heartbeats)
        merged = merge(plan, map(decode_result, results), next_out_seq)
        next_out_seq = merged.next_out_seq
        yield Step(merged.matches, merged.failed, [part.late for part in sifted], counts, frontier_us)


def pieces(table: pa.Table | None, parts: int) -> list[pa.Table]:
    if table is None:
        return []
    return [table.take(pa.array(range(part, table.num_rows, parts), pa.int64())) for part in range(parts)]
