"""What each stage of a batch costs as events, carried events and matches grow: what the model is fitted to.

The stages of a job without Spark, one after the other in this process, in processor seconds: reading a JSON
file, the intake, the splitter (without its snapshot), the operators, the merger, the append to Delta. A
payment below 5 waits a day for one above 900 on the same card, in one rule over the whole stream; how many
wait when a batch comes, how many events it has and how many of them are large vary. A figure is the least of
some batches alike. The matches of all batches are compared with those of one batch of all events.

Beside the seconds stand the bytes that a cluster moves for such a batch: the file that is read, the frames
that go to the splitter, the lanes that go to operators, their results, what the state of the slot writes, on
disk and packed as in a store, and what the table gets.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.carry import PATTERN, SCHEMA, payments
from benchmarks.core_runs import plan_of
from benchmarks.rows import Row, Sizes, processor, require
from spark_pace.core.frames import encode
from spark_pace.core.intake.pack import pack
from spark_pace.core.intake.sift import Past, Sifted, sift
from spark_pace.core.local_run import run
from spark_pace.core.merger import matches_schema, merge
from spark_pace.core.operate.lane_matches import work_off
from spark_pace.core.operate.match_table import decode_result
from spark_pace.core.plan.plan import Plan
from spark_pace.core.split.slot_splitter import SlotSplitter
from spark_pace.core.split.task import decode_lane
from spark_pace.io.delta_tables import DeltaTables
from spark_pace.io.event_files import read_events
from spark_pace.spark.checkpoint.checkpoint import ChunkFiles

RULE = f"{{name: waits, {PATTERN}, where: a.card = b.card, merge: detection}}"
PARTS = (100, 20, 5)  # a batch has so many times fewer events than `Sizes.kernel_events`
LARGE = (10, 1_000)  # events of a batch that end matches
ALIKE = 3
FILL = 100_000
STAGES = ("read", "intake", "splitter", "operators", "merger", "write")
MOVED = ("file", "frames", "lanes", "results", "state", "state, packed", "table")

Result = TypeVar("Result")


@dataclass
class Staged:
    """A job's stages in this process."""

    plan: Plan
    folder: Path
    splitter: SlotSplitter = field(init=False)
    numbers: dict[str, int] = field(default_factory=dict)
    batches: int = 0
    carried: int = 0
    seconds: dict[str, float] = field(default_factory=dict)
    moved: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Begin with empty state and an empty table."""
        self.splitter = SlotSplitter(self.plan, 0, None, ChunkFiles(self.folder / "waiting"))
        self.tables = DeltaTables(str(self.folder), "growth")
        self.tables.prepare({"matches": matches_schema(planned.rule for planned in self.plan.rules)})

    def step(self, events: pa.Table) -> pa.Table:
        """The matches of a batch; then `seconds` are those of its stages, and `moved` are its bytes."""
        path = self.folder / "batch.json"
        _write_json(events, path)
        schema = self.plan.schema
        read = self._timed("read", lambda: read_events(str(path), "json", schema, "batch"))
        require(read.events.num_rows == events.num_rows, "the file must hold the batch's events")
        sifted, frames = self._timed("intake", lambda: self._intake(events))
        output = self._timed("splitter", lambda: self.splitter.step(frames, sifted.progress))
        self.carried = output.stats["carry"]
        snapshots: list[bytes] = []
        chunks = self._written(self.folder / "waiting", lambda: snapshots.append(self.splitter.snapshot()))
        state = len(snapshots[0]) + sum(path.stat().st_size for path in chunks)
        packed_chunks = (pa.compress(path.read_bytes(), "zstd", asbytes=True) for path in chunks)
        packed_state = len(snapshots[0]) + sum(map(len, packed_chunks))
        results = self._timed(
            "operators",
            lambda: [one.encode() for lane in output.lanes for one in work_off(self.plan, decode_lane(lane))],
        )
        merged = self._timed("merger", lambda: merge(self.plan, map(decode_result, results), self.numbers))
        self.numbers = merged.next_out_seq
        if merged.matches.num_rows:
            append = partial(self.tables.append, "matches", merged.matches, self.batches)
            files = self._written(self.folder / "matches", lambda: self._timed("write", append))
            table = sum(path.stat().st_size for path in files)
        else:
            self.seconds["write"], table = 0.0, 0
        self.batches += 1
        packed = (sum(map(len, parts)) for parts in (map(encode, frames), output.lanes, results))
        moved = (path.stat().st_size, *packed, state, packed_state, table)
        self.moved = dict(zip(MOVED, moved, strict=True))
        return merged.matches

    def _intake(self, events: pa.Table) -> tuple[Sifted, list[pa.Table]]:
        sifted = sift(self.plan, events, Past(self.splitter.frontier_us))
        return sifted, [frame for _, frame in pack(self.plan, sifted.events)]

    def _written(self, folder: Path, action: Callable[[], object]) -> list[Path]:
        """The files that an action writes in a folder."""
        before = set(folder.rglob("*"))
        action()
        return [path for path in folder.rglob("*") if path.is_file() and path not in before]

    def _timed(self, stage: str, action: Callable[[], Result]) -> Result:
        results: list[Result] = []
        self.seconds[stage] = processor(lambda: results.append(action()))
        return results[0]


def measure(sizes: Sizes) -> Iterator[Row]:
    """Each stage with each number of events, of those that are carried, and of matches."""
    plan = plan_of(SCHEMA, "event_time: time", [RULE])
    for carried in sizes.carried:
        with tempfile.TemporaryDirectory() as folder:
            yield from _with(plan, carried, Staged(plan, Path(folder)), sizes.kernel_events)


def _with(plan: Plan, carried: int, staged: Staged, events: int) -> Iterator[Row]:
    """The rows of batches that come while so many events wait."""
    random = np.random.default_rng(1)
    given, found, first, rows = [], [], 0, []
    wanted = [(min(FILL, carried - start), 0) for start in range(0, carried, FILL)]
    kinds = [(events // part, large) for part in PARTS for large in LARGE]
    for size, large in [*wanted, *(kind for kind in kinds for _ in range(ALIKE))]:
        given.append(payments(first, size, large, random))
        before = staged.carried
        found.append(staged.step(given[-1]))
        first += size
        if large:
            at = (size, before, found[-1].num_rows)
            rows.append((at, dict(staged.seconds), dict(staged.moved)))
    whole = run(plan, [pa.concat_tables(given).combine_chunks()], finish=False).matches
    same = pa.concat_tables(found).combine_chunks().equals(whole.combine_chunks())
    require(same, "the stages must give the matches of one batch; gave others")
    for begin in range(0, len(rows), ALIKE):
        alike = rows[begin : begin + ALIKE]
        size, waited, matches = (round(float(mean)) for mean in np.mean([at for at, _, _ in alike], axis=0))
        case = f"{size:,} events, {waited:,} carried, {matches:,} matches"
        for stage in STAGES:
            least = min(seconds[stage] for _, seconds, _ in alike)
            yield Row("growth", f"{stage}; {case}", least, "s", None, None, "one batch of all")
        for what in MOVED:
            mean = round(float(np.mean([moved[what] for _, _, moved in alike])))
            yield Row("growth", f"{what}; {case}", mean, "bytes", None, None, "one batch of all")


def _write_json(events: pa.Table, path: Path) -> None:
    """Lines that hold a batch."""
    iso = pc.strftime(events["time"], "%Y-%m-%dT%H:%M:%SZ")
    columns = [iso, events["value"].cast(pa.string()), events["card"]]
    quoted = ['{"time":"', '","value":', ',"card":"', '"}']
    parts = [part for pair in zip(quoted, [*columns, ""], strict=True) for part in pair]
    path.write_text("\n".join(pc.binary_join_element_wise(*parts, "").to_pylist()) + "\n", encoding="ascii")
