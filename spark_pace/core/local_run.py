"""Runs the whole pipeline in one process: for `replay`, for tests, and to try a rule on a file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

import pyarrow as pa

from spark_pace.core.intake.pack import pack
from spark_pace.core.intake.sift import LATE_SCHEMA, Past, Sifted, sift, sift_next
from spark_pace.core.levels import Levels
from spark_pace.core.merger import matches_schema, merge
from spark_pace.core.operate.lane_matches import work_off
from spark_pace.core.operate.match_table import FAILED_SCHEMA, Result
from spark_pace.core.operate.python_operator import CallOperator, call_here
from spark_pace.core.order import LateFile, Order, Tick, together
from spark_pace.core.plan.plan import Plan
from spark_pace.core.python_functions import FoldRuns, fold_here
from spark_pace.core.split.slot_splitter import SlotSplitter, StepOutput, told_of_waiting
from spark_pace.core.tables import concat

Records: TypeAlias = pa.Table | Sequence[pa.Table | Tick]

COUNTED = ("records", "events", "late", "heartbeats", "repeats")
STANDING = ("pending", "carry", "open", "idle_sources")


@dataclass(frozen=True)
class Calls:
    """How Python functions are called.

    Attributes:
        operator: calls the Python operators of rules.
        fold: calls the Python functions of folds.
    """

    operator: CallOperator = call_here
    fold: FoldRuns = fold_here


IN_THIS_PROCESS = Calls()


@dataclass(frozen=True)
class LocalResult:
    """All output of a run.

    Attributes:
        matches: columns of `spark_pace.core.merger.matches_schema`.
        late: columns of `spark_pace.core.intake.sift.LATE_SCHEMA`.
        failed: the selections on which a Python operator failed; columns of `FAILED_SCHEMA`.
        stats: the counts of `COUNTED` over all batches, where records = events + late + heartbeats + repeats;
            and the counts of `STANDING` at the end, which are sums over slots and levels, but for
            idle_sources.
    """

    matches: pa.Table
    late: pa.Table
    failed: pa.Table
    stats: dict[str, int]


@dataclass(frozen=True)
class LocalStep:
    """The output of one batch, as in `LocalResult`, and more.

    `of_rules` has the matches of each rule that has any, with its own columns, also of rules that others only
    read. `slowest` names the sources that hold the frontier back.
    """

    matches: pa.Table
    of_rules: Mapping[str, pa.Table]
    late: pa.Table
    failed: pa.Table
    stats: dict[str, int]
    frontier_us: int
    slowest: list[str]


class LocalRun:
    """A running pipeline: intake, splitters, operators and merger, batch by batch."""

    def __init__(self, plan: Plan, calls: Calls = IN_THIS_PROCESS) -> None:
        """Begin with empty state."""
        self.plan = plan
        self._calls = calls
        self.splitters = [SlotSplitter(plan, slot) for slot in range(plan.slots)]
        self.levels = Levels(plan)
        self.next_out_seq: dict[str, int] = {}
        self._reached: dict[str, int] = {}
        self._entries = 0

    def step(self, records: Records | None, *, finish: bool = False) -> LocalStep:
        """Process one batch.

        Args:
            records: a table of ``@time, @source, @offset`` and the attributes, or several in a row; each
                counts as a file if earlier files decide which events are late, and ticks of the clock may
                stand among them. None: no records.
            finish: True if the input ends with this batch.
        """
        tables, ticks = self._numbered(records)
        parts = list(self._sifted(tables))
        frames: dict[int, list[pa.Table]] = {}
        for slot, frame in pack(self.plan, concat([part.events for part in parts])) if parts else []:
            frames.setdefault(slot, []).append(frame)
        progress = replace(together(part.progress for part in parts), finish=finish, ticks=ticks)
        operate = partial(work_off, self.plan, call=self._calls.operator)
        passed_us = self.splitters[0].frontier_us
        outputs = [
            splitter.advance(frames.get(slot, []), progress, operate, fold=self._calls.fold)
            for slot, splitter in enumerate(self.splitters)
        ]
        results = [result for output in outputs for lane in output.lanes for result in lane]
        frontier_us = self.splitters[0].frontier_us
        told = told_of_waiting(output.waiting for output in outputs)
        merged = merge(self.plan, results, self.next_out_seq, told)
        merged = self.levels.advance(merged, passed_us, frontier_us, self._calls.fold)
        self.next_out_seq = merged.next_out_seq
        self._reached = outputs[0].reached
        behind = self._late_in(tables, outputs[0].late_files)
        late = pa.concat_tables([LATE_SCHEMA.empty_table(), *(part.late for part in parts), *behind])
        self._entries += len(tables) + len(ticks)
        return LocalStep(
            merged.matches,
            merged.of_rules,
            late,
            merged.failed,
            _counts(parts, late.num_rows, outputs, self.levels.standing),
            frontier_us,
            outputs[0].slowest,
        )

    def late(self, records: Records) -> pa.Table:
        """The late events of an input that begins with these records; nothing is matched or kept."""
        tables, ticks = self._numbered(records)
        parts = list(self._sifted(tables))
        progress = replace(together(part.progress for part in parts), ticks=ticks)
        late_files = Order().advance([], progress, self.plan.order, ()).late_files
        found = [*(part.late for part in parts), *self._late_in(tables, late_files)]
        return pa.concat_tables([LATE_SCHEMA.empty_table(), *found])

    def _numbered(self, records: Records | None) -> tuple[dict[int, pa.Table], tuple[Tick, ...]]:
        """The tables of a batch by their index in the order of files, and its ticks with theirs."""
        parts = [records] if isinstance(records, pa.Table) else list(records or ())
        numbered = list(enumerate(parts, self._entries))
        tables = {entry: part for entry, part in numbered if not isinstance(part, Tick)}
        return tables, tuple(replace(part, entry=entry) for entry, part in numbered if isinstance(part, Tick))

    def _sifted(self, tables: Mapping[int, pa.Table]) -> Iterator[Sifted]:
        """Sift the tables of a batch."""
        is_by_file = self.plan.order.before == "files"
        past = Past() if is_by_file else Past(self.splitters[0].frontier_us, self._reached)
        for entry, table in tables.items():
            sifted, past = sift_next(self.plan, table, past, entry)
            yield sifted

    def _late_in(self, tables: Mapping[int, pa.Table], files: Iterable[LateFile]) -> Iterator[pa.Table]:
        """Yield the late events of each of these files."""
        for file in files:
            yield sift(self.plan, tables[file.entry], Past(file.frontier_us)).late


def run(
    plan: Plan, batches: Iterable[Records], *, finish: bool = True, calls: Calls = IN_THIS_PROCESS
) -> LocalResult:
    """Run batches of records through a plan.

    Args:
        plan: the plan.
        batches: tables of ``@time, @source, @offset`` and the attributes, in order of arrival; see
            `LocalRun.step`.
        finish: True if the input ends after the last batch.
        calls: how Python functions are called.

    Returns:
        All matches, sorted by (rule, out_seq), and the rest of the output.

    Raises:
        OperatorError: a fold failed, or a Python operator did and the plan says to stop then.
    """
    local = LocalRun(plan, calls)
    steps = [local.step(records) for records in batches]
    if finish:
        steps.append(local.step(None, finish=True))
    none = matches_schema(plan.shown).empty_table()
    matches = pa.concat_tables([none, *(step.matches for step in steps)]).combine_chunks()
    if len(plan.shown) > 1:  # those of one rule are in order
        matches = matches.sort_by([("rule", "ascending"), ("out_seq", "ascending")])
    late = pa.concat_tables([LATE_SCHEMA.empty_table(), *(step.late for step in steps)])
    failed = pa.concat_tables([FAILED_SCHEMA.empty_table(), *(step.failed for step in steps)])
    stats = {name: sum(step.stats[name] for step in steps) for name in COUNTED}
    stats |= {name: steps[-1].stats[name] if steps else 0 for name in STANDING}
    return LocalResult(matches, late, failed, stats)


def _counts(
    parts: Sequence[Sifted],
    late_rows: int,
    outputs: list[StepOutput[list[Result]]],
    above: Mapping[str, int],
) -> dict[str, int]:
    records = sum(part.events.num_rows + part.late.num_rows + part.heartbeats for part in parts)
    heartbeats = sum(part.heartbeats for part in parts)
    repeats = outputs[0].stats["repeats"]
    standing = {name: above[name] + sum(output.stats[name] for output in outputs) for name in above}
    return standing | {
        "records": records,
        "events": records - heartbeats - late_rows - repeats,
        "late": late_rows,
        "heartbeats": heartbeats,
        "repeats": repeats,
        "idle_sources": outputs[0].stats["idle_sources"],
    }
