"""The stages of a job, one batch after another, with every state saved and restored between two batches."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from itertools import cycle

import pyarrow as pa

from spark_pace.core.frames import Sink
from spark_pace.core.intake.pack import pack
from spark_pace.core.intake.sift import Past, Sifted, sift, sift_next
from spark_pace.core.levels import Levels
from spark_pace.core.merger import Merged, merge
from spark_pace.core.operate.lane_matches import work_off
from spark_pace.core.operate.match_table import decode_result
from spark_pace.core.operate.python_operator import CallOperator, call_here
from spark_pace.core.order import Progress, Tick, together
from spark_pace.core.plan.plan import Plan
from spark_pace.core.plan.price import Price
from spark_pace.core.split.slot_splitter import SlotSplitter, StepOutput, told_of_waiting
from spark_pace.core.split.task import decode_lane
from spark_pace.core.tables import NO_FRONTIER

Plans = Plan | Sequence[Plan]
Batch = pa.Table | Sequence[pa.Table | Tick]
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


class KeptLevels:
    """The rules that read matches, with their state saved and restored between two batches."""

    def __init__(self) -> None:
        self.snapshot: bytes | None = None
        self.store = KeptChunks()
        self.frontier_us = NO_FRONTIER
        self.out_before: dict[str, int] = {}

    def advance(self, plan: Plan, merged: Merged, frontier_us: int) -> Merged:
        levels = Levels(plan, self.snapshot, self.store)
        merged = levels.advance(merged, self.frontier_us, frontier_us)
        self.frontier_us, self.out_before = frontier_us, levels.out_before
        self.snapshot = levels.snapshot()
        self.store.forget_all_but(levels.stored())
        return merged


@dataclass(frozen=True)
class Step:
    """What one batch gave; the frontier is that of every slot, `out_before` as in `Levels`."""

    matches: pa.Table
    failed: pa.Table
    late: list[pa.Table]
    counts: Counter[str]
    frontier_us: int
    out_before: dict[str, int]


def drive(
    plans: Plans, batches: Sequence[Batch], *, finish: bool, parts: int = 1, prices: Told = (None,)
) -> Iterator[Step]:
    """Run the batches, reading each in `parts` pieces, as several tasks would.

    A batch may also be the files that it reads, where the files before an event decide whether it is late;
    or what it reads of each partition, where the earlier records do.

    `plans` is one plan for all batches, or one for each. `prices` are those of the first rule, in turn.
    """
    tables = [*batches, None] if finish else list(batches)
    plans = [plans] * len(tables) if isinstance(plans, Plan) else plans
    snapshots: list[bytes | None] = [None] * plans[0].slots if plans else []
    stores = [KeptChunks() for _ in snapshots]
    next_out_seq: dict[str, int] = {}
    past, entries, above = Past(), 0, KeptLevels()
    for (plan, table), price in zip(zip(plans, tables, strict=True), cycle(prices), strict=False):
        read = pieces(table, parts) if table is None or isinstance(table, pa.Table) else list(table)
        sifted = sifted_pieces(plan, read, past, entries)
        frames = frames_of_slots(plan, sifted)
        progress = progress_of(sifted, read, entries, table is None)
        results, outputs = [], []
        for slot in range(plan.slots):
            splitter = SlotSplitter(plan, slot, snapshots[slot], stores[slot])
            output = splitter.step(frames[slot], progress, {0: price} if price else {})
            assert output.late is None, "the intake has taken the late events out, or the files are told"
            snapshots[slot] = splitter.snapshot()
            stores[slot].forget_all_but(splitter.stored())
            outputs.append(output)
            results += [result for lane in output.lanes for result in operated(plan, lane)]
        told = told_by_all(outputs)
        past = Past() if plan.order.before == "files" else Past(told.stats["frontier_us"], told.reached)
        behind = [sift(plan, read[at.entry - entries], Past(at.frontier_us)).late for at in told.late_files]
        entries += len(read)
        late = [*(part.late for part in sifted), *behind]
        counts = counted(read, sifted, behind, told.stats["repeats"])
        merged = merge(
            plan,
            map(decode_result, results),
            next_out_seq,
            told_of_waiting(output.waiting for output in outputs),
        )
        merged = above.advance(plan, merged, told.stats["frontier_us"])
        next_out_seq = merged.next_out_seq
        yield Step(merged.matches, merged.failed, late, counts, above.frontier_us, above.out_before)


def operate(plan: Plan, lane: bytes | memoryview, call: CallOperator = call_here) -> bytes:
    """The result of a lane of one rule, both as bytes, as they travel in a job."""
    (result,) = operated(plan, lane, call)
    return result


def operated(plan: Plan, lane: bytes | memoryview, call: CallOperator = call_here) -> list[bytes]:
    return [result.encode() for result in work_off(plan, decode_lane(lane), call)]


def counted(
    read: Sequence[pa.Table | Tick], sifted: Sequence[Sifted], behind: Sequence[pa.Table], repeats: int
) -> Counter[str]:
    late = sum(part.late.num_rows for part in sifted) + sum(table.num_rows for table in behind)
    events = sum(part.events.num_rows for part in sifted) - sum(table.num_rows for table in behind)
    heartbeats = sum(part.heartbeats for part in sifted)
    records = sum(piece.num_rows for piece in read if not isinstance(piece, Tick))
    return Counter(
        records=records, events=events - repeats, late=late, heartbeats=heartbeats, repeats=repeats
    )


def frames_of_slots(plan: Plan, sifted: Sequence[Sifted]) -> list[list[pa.Table]]:
    frames: list[list[pa.Table]] = [[] for _ in range(plan.slots)]
    for part in sifted:
        for slot, frame in pack(plan, part.events):
            frames[slot].append(frame)
    return frames


def told_by_all(outputs: Sequence[StepOutput[bytes]]) -> StepOutput[bytes]:
    """The output of the first slot: of the whole input, every slot tells the same."""
    assert len({output.stats["frontier_us"] for output in outputs}) == 1, "every slot has one frontier"
    assert len({output.stats["repeats"] for output in outputs}) == 1, "every slot drops the same events"
    assert len({output.late_files for output in outputs}) == 1, "every slot tells of the same files"
    return outputs[0]


def progress_of(
    sifted: Sequence[Sifted], read: Sequence[pa.Table | Tick], entries: int, finish: bool
) -> Progress:
    numbered = enumerate(read, entries)
    ticks = tuple(replace(piece, entry=entry) for entry, piece in numbered if isinstance(piece, Tick))
    return together([*(part.progress for part in sifted), Progress(finish=finish, ticks=ticks)])


def sifted_pieces(plan: Plan, read: Sequence[pa.Table | Tick], past: Past, entries: int) -> list[Sifted]:
    """What the pieces of a batch hold; as files, if those before an event decide whether it is late."""
    files = [(entry, piece) for entry, piece in enumerate(read, entries) if not isinstance(piece, Tick)]
    sifted = [sift_next(plan, piece, past, entry)[0] for entry, piece in files]
    assert plan.order.before != "files" or not any(part.late.num_rows for part in sifted)
    return sifted


def pieces(table: pa.Table | None, parts: int) -> list[pa.Table]:
    if table is None:
        return []
    return [table.take(pa.array(range(part, table.num_rows, parts), pa.int64())) for part in range(parts)]
