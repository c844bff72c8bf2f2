"""The whole pipeline in one process: for `replay`, for tests, and to try a rule on a file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa

from spark_pace.core.columns import joined
from spark_pace.core.intake.late import LATE_SCHEMA
from spark_pace.core.intake.pack import pack
from spark_pace.core.intake.sift import Sifted, sift
from spark_pace.core.merger import matches_schema, merge
from spark_pace.core.operate.operator import work_off
from spark_pace.core.operate.result import FAILED_SCHEMA, Result
from spark_pace.core.order.order import Progress
from spark_pace.core.plan.plan import Plan
from spark_pace.core.split.slot_splitter import SlotSplitter, StepOutput

COUNTED = ("records", "events", "late", "heartbeats", "repeats")
STANDING = ("pending", "carry", "open", "idle_sources")


@dataclass(frozen=True)
class LocalResult:
    """All output of a run.

    Attributes:
        matches: columns of `spark_pace.core.merger.matches_schema`.
        late: columns of `spark_pace.core.intake.late.LATE_SCHEMA`.
        failed: the selections that a Python operator failed on; columns of `FAILED_SCHEMA`.
        stats: the counts of `COUNTED` over all batches, where records = events + late + heartbeats + repeats;
            and those of `STANDING` at the end, where all but idle_sources are summed over the slots.
    """

    matches: pa.Table
    late: pa.Table
    failed: pa.Table
    stats: dict[str, int]


@dataclass(frozen=True)
class LocalStep:
    """The output of one batch, as in `LocalResult`; `slowest` are the sources that hold the frontier back."""

    matches: pa.Table
    late: pa.Table
    failed: pa.Table
    stats: dict[str, int]
    frontier_us: int
    slowest: list[str]


class LocalRun:
    """A running pipeline: intake, splitters, operators and merger, batch by batch."""

    def __init__(self, plan: Plan) -> None:
        """Begin with empty state."""
        self.plan = plan
        self.splitters = [SlotSplitter(plan, slot) for slot in range(plan.slots)]
        self.next_out_seq: dict[str, int] = {}

    def step(self, records: pa.Table | None, *, finish: bool = False) -> LocalStep:
        """Process one batch.

        Args:
            records: a table of ``@time, @source, @offset`` and the attributes; None: an empty batch.
            finish: the input ends with this batch.
        """
        sifted = None if records is None else sift(self.plan, records, self.splitters[0].frontier_us)
        frames: dict[int, list[pa.Table]] = {}
        for slot, frame in [] if sifted is None else pack(self.plan, sifted.events):
            frames.setdefault(slot, []).append(frame)
        progress = replace(sifted.progress if sifted else Progress(), finish=finish)
        operate = partial(work_off, self.plan)
        outputs = [
            splitter.advance(frames.get(slot, []), progress, operate)
            for slot, splitter in enumerate(self.splitters)
        ]
        results = [result for output in outputs for result in output.lanes]
        merged = merge(self.plan, results, self.next_out_seq)
        self.next_out_seq = merged.next_out_seq
        late = sifted.late if sifted else LATE_SCHEMA.empty_table()
        return LocalStep(
            merged.matches,
            late,
            merged.failed,
            _counts(sifted, outputs),
            self.splitters[0].frontier_us,
            outputs[0].slowest,
        )


def run(plan: Plan, batches: Iterable[pa.Table], *, finish: bool = True) -> LocalResult:
    """Run batches of records through a plan.

    Args:
        plan: the plan.
        batches: tables of ``@time, @source, @offset`` and the attributes, in order of arrival.
        finish: whether the input ends after the last batch.

    Returns:
        All matches, sorted by (rule, out_seq), and the rest of the output.

    Raises:
        OperatorError: a Python operator failed and the plan says to stop then.
    """
    local = LocalRun(plan)
    steps = [local.step(records) for records in batches]
    if finish:
        steps.append(local.step(None, finish=True))
    matches = joined(matches_schema(plan), [step.matches for step in steps])
    if len(plan.rules) > 1:  # those of one rule are in order
        matches = matches.sort_by([("rule", "ascending"), ("out_seq", "ascending")])
    late = pa.concat_tables([LATE_SCHEMA.empty_table(), *(step.late for step in steps)])
    failed = pa.concat_tables([FAILED_SCHEMA.empty_table(), *(step.failed for step in steps)])
    stats = {name: sum(step.stats[name] for step in steps) for name in COUNTED}
    stats |= {name: steps[-1].stats[name] if steps else 0 for name in STANDING}
    return LocalResult(matches, late, failed, stats)


def _counts(sifted: Sifted | None, outputs: list[StepOutput[Result]]) -> dict[str, int]:
    stats = dict.fromkeys(COUNTED, 0)
    if sifted is not None:
        stats |= {
            "events": sifted.events.num_rows,
            "late": sifted.late.num_rows,
            "heartbeats": sifted.heartbeats,
        }
        stats["records"] = sum(stats.values())
    stats |= {name: sum(output.stats[name] for output in outputs) for name in ("pending", "carry", "open")}
    repeats = outputs[0].stats["repeats"]
    return stats | {
        "events": stats["events"] - repeats,
        "repeats": repeats,
        "idle_sources": outputs[0].stats["idle_sources"],
    }
