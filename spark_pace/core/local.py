"""The whole pipeline in one process: for `replay`, for tests, and for whoever wants to try a rule on a file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.columns import TIME
from spark_pace.core.intake import pack
from spark_pace.core.merger import matches_schema, merge
from spark_pace.core.operator import FAILED_SCHEMA, operate
from spark_pace.core.order import Progress
from spark_pace.core.plan import Plan
from spark_pace.core.splitter import LATE_SCHEMA, SlotSplitter, StepOutput


@dataclass(frozen=True)
class LocalResult:
    """All output of a run.

    Attributes:
        matches: columns of `spark_pace.core.merger.matches_schema`.
        late: columns of `spark_pace.core.splitter.LATE_SCHEMA`.
        failed: selections a Python operator failed on.
        stats: events, late, pending, carry and open as they stood at the end, summed over the slots.
    """

    matches: pa.Table
    late: pa.Table
    failed: pa.Table
    stats: dict[str, int]


class LocalRun:
    """A running pipeline: splitters, operators and merger, batch by batch."""

    def __init__(self, plan: Plan) -> None:
        """Begin with empty state."""
        self.plan = plan
        self.splitters = [SlotSplitter(plan, slot) for slot in range(plan.slots)]
        self.next_out_seq: dict[str, int] = {}

    def step(self, events: pa.Table | None, progress: Progress) -> tuple[pa.Table, pa.Table, list[StepOutput]]:
        """Take one batch of events in; returns its matches, its failed selections and the splitters' output."""
        frames: dict[int, list[pa.Table]] = {}
        for slot, frame in [] if events is None else pack(self.plan, events):
            frames.setdefault(slot, []).append(frame)
        outputs = [splitter.step(frames.get(slot, []), progress) for slot, splitter in enumerate(self.splitters)]
        results = [operate(self.plan, lane) for output in outputs for lane in output.lanes]
        merged = merge(self.plan, results, self.next_out_seq)
        self.next_out_seq = merged.next_out_seq
        return merged.matches, merged.failed, outputs


def run(plan: Plan, batches: Iterable[pa.Table], *, finish: bool = True) -> LocalResult:
    """Run batches of events through a plan.

    Args:
        plan: the plan.
        batches: event tables in order of arrival (``@time, @source, @offset`` and attributes).
        finish: whether the input ends behind the last batch.

    Returns:
        All matches, sorted by (rule, out_seq), and the rest of the output.

    Raises:
        OperatorError: a Python operator failed and the plan says to stop then.
    """
    local = LocalRun(plan)
    matches, late, failed = [matches_schema(plan).empty_table()], [LATE_SCHEMA.empty_table()], []
    stats = {"events": 0, "late": 0}
    for events in (*batches, None) if finish else batches:
        progress = Progress(None, finish=True) if events is None else Progress(pc.max(events[TIME]).as_py())
        found, poisoned, outputs = local.step(events, progress)
        matches.append(found)
        failed.append(poisoned)
        late += [output.late for output in outputs if output.late is not None]
        _count(stats, outputs)
    table = pa.concat_tables(matches).combine_chunks()
    table = table.sort_by([("rule", "ascending"), ("out_seq", "ascending")])
    return LocalResult(
        table, pa.concat_tables(late), pa.concat_tables([FAILED_SCHEMA.empty_table(), *failed]), stats
    )  # fmt: skip


def _count(stats: dict[str, int], outputs: list[StepOutput]) -> None:
    for name in ("events", "late"):
        stats[name] += sum(output.stats[name] for output in outputs)
    for name in ("pending", "carry", "open"):
        stats[name] = sum(output.stats[name] for output in outputs)
