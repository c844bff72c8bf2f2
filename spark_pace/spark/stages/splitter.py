"""The host of the splitter (`applyInPandasWithState`): one call and one value of state for each slot.

The streaming query goes on from the intake (`spark_pace.spark.stages.intake`) by `split_rows`. In a job the
merger starts the operators, and only if the splitter has left lanes to work off
(`spark_pace.spark.stages.operators`).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from spark_pace import ways
from spark_pace.core.frames import TableStore, decode, encode
from spark_pace.core.order import Progress, together
from spark_pace.core.plan.plan import Plan
from spark_pace.core.plan.rule import PythonFold
from spark_pace.core.split.slot_splitter import SlotSplitter
from spark_pace.errors import StateError
from spark_pace.io.files.contract import REQUESTS
from spark_pace.io.files.files import RESTORE
from spark_pace.io.metrics import null_in_all
from spark_pace.spark.checkpoint.layout import slot_keys
from spark_pace.spark.stages.earlier_batches import earlier_than_batch, prices_of_batch
from spark_pace.spark.stages.operator_process import OperatorProcess
from spark_pace.spark.stages.operators import Handover
from spark_pace.spark.stages.rows import BAD, FRAME, LANE, LATE, PART_ROWS, PROGRESS, STATS, giving_back

if TYPE_CHECKING:
    import pandas as pd

STATE_SCHEMA = "snapshot binary"
_NONE = b"none"  # the label of a state that is not there

Frames = Iterator["pd.DataFrame"]

_process = OperatorProcess()  # one for each Python worker of Spark


def split_rows(
    intake: DataFrame,
    plan: Plan,
    keys: tuple[int, ...],
    parts: int,
    chunks: TableStore | None = None,
    checkpoint_id: str = "",
) -> DataFrame:
    """The splitters' output for rows of the intake (`SLOT_ROWS`), distributed for operators (`PART_ROWS`).

    The query must have as many shuffle partitions as there are slots.

    Args:
        intake: the rows of the intake.
        plan: the plan.
        keys: the group key of each slot.
        parts: the number of tasks for operators.
        chunks: the files for large chunks of the carry; None: all of it is in Spark's state.
        checkpoint_id: the checkpoint whose states are gone on with; empty: there is no such file of ours.
    """
    # A Python stage directly in front of an exchange fails in Spark (ColumnarBatchRow cannot be cast to
    # UnsafeRow). A projection that cannot be optimised away must stand between them: here the one to the
    # group key.
    key = F.element_at(F.array(*map(F.lit, keys)), F.col("slot") + 1)
    slot_of_key = {key: slot for slot, key in enumerate(keys)}
    splitter = SplitterHost(plan, slot_of_key, parts, ways.HERE_SECONDS, chunks, checkpoint_id)
    slots = intake.select(key.alias("key"), "kind", "body").groupBy("key")
    split = slots.applyInPandasWithState(
        splitter.stage(), PART_ROWS, STATE_SCHEMA, "append", GroupStateTimeout.NoTimeout
    )
    part = F.expr(f"pmod(part, {parts})").alias("part")
    return _shared_out(split.select(part, "kind", "body"), parts)


def _shared_out(rows: DataFrame, parts: int) -> DataFrame:
    """The rows, those of each part in a partition of its own."""
    if hasattr(DataFrame, "repartitionById"):
        return rows.repartitionById(parts, F.col("part"))
    # PySpark 4.0 sends rows by the hash of a key
    keys = F.array(*map(F.lit, slot_keys(rows.sparkSession, parts)))
    return rows.repartition(parts, F.element_at(keys, F.expr("CAST(part + 1 AS INT)")))


@dataclass(frozen=True)
class SplitterHost:
    """Runs the splitter of a slot over a batch's frames.

    Attributes:
        plan: the plan.
        slot_of_key: the slot of each group key.
        parts: the number of partitions over which lanes are distributed.
        here_seconds: the most that a slot's lanes may take to be worked off here.
        store: where large chunks of the state are stored; None: in the state itself.
        checkpoint_id: the checkpoint whose states these are; each says so, and of which slot and batch it is.
            Empty for the checkpoint of a user's query, which has no note of ours to compare them with.
    """

    plan: Plan
    slot_of_key: dict[int, int]
    parts: int
    here_seconds: float
    store: TableStore | None
    checkpoint_id: str = ""

    def stage(self) -> Callable[[tuple[Any, ...], Frames, GroupState], Frames]:
        """The function for `applyInPandasWithState`, from `SLOT_ROWS` of one slot to `PART_ROWS`."""
        return lambda key, batches, state: giving_back(self.step(key, batches, state))

    def step(self, key: tuple[Any, ...], batches: Frames, state: GroupState) -> Frames:
        """Process one batch of one slot."""
        import pandas as pd  # here, because the driver imports this file before it starts the JVM

        if any(isinstance(planned.rule.fold, PythonFold) for planned in self.plan.rules):
            _process.start()
        slot, asked_before = self.slot_of_key[int(key[0])], REQUESTS.so_far
        incoming = [
            (kind, body) for batch in batches for kind, body in zip(batch["kind"], batch["body"], strict=True)
        ]
        before, label = self._opened(slot, bytes(state.get[0]) if state.exists else None)
        splitter = SlotSplitter(self.plan, slot, before, self.store)
        reports = [json.loads(body) for kind, body in incoming if kind == PROGRESS]
        progress = together(Progress.of(report["progress"]) for report in reports)
        prices = prices_of_batch()
        lanes = Handover(self.plan, prices, self.here_seconds)
        frames = [decode(body) for kind, body in incoming if kind == FRAME]
        fold = partial(_process.fold, timeout_us=self.plan.operator_timeout_us)
        output = splitter.advance(frames, progress, lanes.take, prices, fold)
        snapshot = splitter.snapshot()
        state.update((label + snapshot,))
        stats: dict[str, Any] = {
            **output.stats,
            "slot": slot,
            "state_bytes": len(snapshot),
            "chunks": splitter.stored(),
            "finish": progress.finish,
            "max_time_us": progress.max_time_us,
            "matches_waiting": [[index, waiting.stored()] for index, waiting in output.waiting.items()],
            "store_requests": REQUESTS.so_far - asked_before,
        }
        rows = lanes.rows(slot, self.parts)
        stats["lanes_left"] = sum(kind == LANE for _, kind, _ in rows)
        if slot == 0:  # every slot knows all tasks' progress, so one reports it
            stats |= _of_all_tasks(reports) | output.of_sources
            stats["store_requests"] += sum(report["store_requests"] for report in reports)
            stats["late_files"] = [asdict(file) for file in output.late_files]
        rows += [(0, kind, body) for kind, body in incoming if kind in (BAD, LATE)]
        rows += [(0, LATE, encode(output.late))] if output.late is not None else []
        rows.append((0, STATS, json.dumps(stats).encode()))
        yield pd.DataFrame(rows, columns=["part", "kind", "body"]).astype({"part": "int32"})

    def _opened(self, slot: int, kept: bytes | None) -> tuple[bytes | None, bytes]:
        """The state that a slot begins with, without its label, and the label for the one that it leaves.

        Raises:
            StateError: the state is not that of this slot, from the batch that has left the last one.
        """
        if not self.checkpoint_id:
            return kept, b""
        earlier = earlier_than_batch()
        label, _, before = (_NONE if kept is None else kept).partition(b"\n")
        expected = self._label(slot, earlier.states) if earlier.states >= 0 else _NONE
        if label != expected:
            must, got = f"must be {expected.decode()}", label[:100].decode(errors="replace")
            raise StateError(f"state of slot {slot} — {must}; got {got}. {RESTORE}")
        return before or None, self._label(slot, earlier.batch_id) + b"\n"

    def _label(self, slot: int, batch_id: int) -> bytes:
        return f"that of slot {slot} behind batch {batch_id} of checkpoint {self.checkpoint_id}".encode()


def _of_all_tasks(reports: list[dict[str, Any]]) -> dict[str, Any]:
    """The counts of all tasks, and what they tell of attributes that records lack."""
    absent = null_in_all(report["absent"] for report in reports)
    return {
        "absent": None if absent is None else sorted(absent),
        "counts": sum((Counter(report["counts"]) for report in reports), Counter()),
        "lacking": {name: told for report in reports for name, told in report["lacking"].items()},
    }
