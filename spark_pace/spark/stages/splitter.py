"""The host of the splitter (`applyInPandasWithState`): one call and one value of state for each slot."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from spark_pace.core.frames import TableStore, decode, encode
from spark_pace.core.order import Progress, together
from spark_pace.core.plan.plan import Plan
from spark_pace.core.plan.rule import PythonFold
from spark_pace.core.split.slot_splitter import SlotSplitter
from spark_pace.errors import StateError
from spark_pace.io.files.contract import REQUESTS
from spark_pace.io.files.files import RESTORE
from spark_pace.io.metrics import null_in_all
from spark_pace.spark.stages.earlier_batches import earlier_than_batch, prices_of_batch
from spark_pace.spark.stages.operator_process import OperatorProcess
from spark_pace.spark.stages.operators import Handover
from spark_pace.spark.stages.rows import BAD, FRAME, LANE, LATE, PROGRESS, STATS, giving_back

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql.streaming.state import GroupState

STATE_SCHEMA = "snapshot binary"
_NONE = b"none"  # the label of a state that is not there

Frames = Iterator["pd.DataFrame"]

_process = OperatorProcess()  # one for each Python worker of Spark


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
            "store_requests": REQUESTS.so_far - asked_before + _asked_by_tasks(reports, slot),
        }
        rows = lanes.rows(slot, self.parts)
        stats["lanes_left"] = sum(kind == LANE for _, kind, _ in rows)
        if slot == 0:  # every slot knows all tasks' progress, so one reports it
            stats |= _of_all_tasks(reports) | output.of_sources
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


def _asked_by_tasks(reports: list[dict[str, Any]], slot: int) -> int:
    """The requests of all tasks to stores, which the first slot counts for all."""
    return sum(report["store_requests"] for report in reports) if slot == 0 else 0


def _of_all_tasks(reports: list[dict[str, Any]]) -> dict[str, Any]:
    """The counts of all tasks, and what they tell of attributes that records lack."""
    absent = null_in_all(report["absent"] for report in reports)
    return {
        "absent": None if absent is None else sorted(absent),
        "counts": sum((Counter(report["counts"]) for report in reports), Counter()),
        "lacking": {name: told for report in reports for name, told in report["lacking"].items()},
    }
