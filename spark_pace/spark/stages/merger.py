"""The host of the merger (`foreachBatch`): evaluates a batch once, then appends to each table once.

A batch that runs again must give the same numbers. So the next `out_seq` comes not from the tables but from
the checkpoint, where batch N - 1 has written it before touching a table
(`spark_pace.spark.checkpoint.batch_begin`).

The table `rule_changes` says with which batch each rule begins, ends, pauses and begins anew. What has
changed follows from the rows that the table has and from the rules that run. So nothing is written twice and
nothing is forgotten, whenever the job is killed: the next batch that is written completes it.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from spark_pace.core.frames import decode
from spark_pace.core.intake.sift import LATE_SCHEMA
from spark_pace.core.levels import Levels
from spark_pace.core.match.release import Waiting
from spark_pace.core.merger import Merged, merge
from spark_pace.core.operate.match_table import decode_result
from spark_pace.core.order import LateFile
from spark_pace.core.plan.plan import Plan
from spark_pace.core.split.slot_splitter import told_of_waiting
from spark_pace.core.tables import NO_FRONTIER, UNKNOWN_TIME
from spark_pace.errors import StateError
from spark_pace.io.bad_records import BAD_SCHEMA
from spark_pace.io.delta_tables import CHANGES_SCHEMA, QUARANTINE_SCHEMA, DeltaTables, of_batch
from spark_pace.io.files.contract import REQUESTS
from spark_pace.io.metrics import ALIKE, IGNORED, LANES, SLOTS, TASKS, BatchReport, counters_of, metrics_row
from spark_pace.io.query import CHANGES, TABLES
from spark_pace.spark.checkpoint.batch_begin import Begin, Begins, LevelStates
from spark_pace.spark.checkpoint.checkpoint import Checkpoint, began_at
from spark_pace.spark.checkpoint.layout import LaidRule
from spark_pace.spark.checkpoint.lock import require_states
from spark_pace.spark.stages.earlier_batches import Prices, longest_lanes, over_bound, tell_earlier
from spark_pace.spark.stages.operator_process import OperatorProcess
from spark_pace.spark.stages.operators import BatchRows
from spark_pace.spark.stages.rows import BAD, LATE, RESULT, STATS, WORK, bodies, give_back
from spark_pace.spark.stages.side_table_copies import SideTables

ADDED, REMOVED, RESET = "added", "removed", "reset"
CAME_BACK, PAUSED, RESUMED = "came back", "paused", "resumed"
_MOST_ROWS = 1 << 20  # of which transactions of one batch tell their number
_BEGIN_AFTER = {REMOVED: CAME_BACK, PAUSED: RESUMED}  # else it is added, or has begun anew


@dataclass
class RuleHistory:
    """The changes of rules of a job, written with the first batch of a query.

    Attributes:
        rules: the rules that run, by name.
        paused: the names of rules that are paused.
    """

    rules: Mapping[str, LaidRule]
    paused: Collection[str]
    _is_written: bool = False

    def append(self, tables: DeltaTables, batch_id: int, now: datetime) -> None:
        """Write what has changed since the last row, in the first batch; `now` is the time of the rows."""
        if self._is_written:
            return
        known = tables.rows(CHANGES, ["batch_id", "rule", "change"])
        rows = self._changes(last_changes(known), batch_id)
        if rows:
            names = CHANGES_SCHEMA.names
            stamped = [dict(zip(names, (at, now, *row), strict=True)) for at, *row in rows]
            # a batch that is done again with other rules has further rows, so its number alone does not do
            version = batch_id * _MOST_ROWS + min(known.num_rows, _MOST_ROWS - 1)
            tables.append(CHANGES, pa.Table.from_pylist(stamped, CHANGES_SCHEMA), version)
        self._is_written = True

    def _changes(
        self, last: Mapping[str, tuple[int, str]], batch_id: int
    ) -> list[tuple[int, str, str, str | None]]:
        """What has changed of each rule: since which batch, the rule, the change, and what it means then."""
        rows: list[tuple[int, str, str, str | None]] = []
        for name, rule in self.rules.items():
            since, before = last.get(name, (-1, ""))
            if rule.hands_on or (since == rule.place.since and before not in _BEGIN_AFTER):
                continue
            change = _BEGIN_AFTER.get(before, RESET if before else ADDED)
            meaning = json.dumps(rule.parts, ensure_ascii=False)
            rows.append((rule.place.since, name, change, meaning))
        for name, (_, before) in last.items():
            if name not in self.rules and before not in _BEGIN_AFTER:
                rows.append((batch_id, name, PAUSED if name in self.paused else REMOVED, None))
        return rows


def last_changes(rows: pa.Table) -> dict[str, tuple[int, str]]:
    """The last change of each rule, as (its batch, the change), by the name of the rule.

    A rule may begin and end with the same batch, and not the other way round: once a batch has begun without
    it, it begins anew with a later one.
    """
    changes = [(row["batch_id"], row["change"] in _BEGIN_AFTER, row) for row in rows.to_pylist()]
    ordered = sorted(changes, key=lambda change: change[:2])
    return {row["rule"]: (batch_id, row["change"]) for batch_id, _, row in ordered}


_KEPT_SEQUENCES = 20
_QUARANTINE_KEY = ("kind", "rule", "key", "selection_id", "source", "offset")


@dataclass
class MergerHost:
    """Writes the batches of one query.

    Attributes:
        plan: the plan.
        tables: the job's tables.
        checkpoint: the job's checkpoint.
        listeners: called with the report of each batch after it is written, in their order.
        late_in: reads the late events (`LATE_SCHEMA`) in files of the input.
        look: called after a batch is read, since only then the answer holds for what was read, and before any
            of it is written, as `spark_pace.spark.sources.input.Look`; raises if the input is not the same.
        require_held: called before a batch is claimed, and before what the next one begins with is written;
            raises if another job has taken the checkpoint over.
        claim_batch: called before any task of a batch runs; gives Spark's note of what the batch reads, and
            raises if another job runs it.
        side_tables: the side tables to join to events.
        history: writes which rules have begun and ended.
        layout: the number of the checkpoint's layout.
        failure: the error that stopped a batch; Spark hands on only its text.
        failed_at: the path of the table that was being written then; None if none was.
        began: when the last batch was handed over, by `time.monotonic`.
        note: Spark's note of what the last batch reads.
        offsets: those of all sources before the last batch, and after it.
    """

    plan: Plan
    tables: DeltaTables
    checkpoint: Checkpoint
    listeners: list[Callable[[BatchReport], None]]
    late_in: Callable[[SparkSession, Plan, Sequence[LateFile]], pa.Table]
    look: Callable[[int, list[Any], list[Any], int], tuple[int, dict[str, str]]]
    require_held: Callable[[], None]
    claim_batch: Callable[[int], bytes]
    side_tables: SideTables
    history: RuleHistory
    layout: int = 0
    failure: Exception | None = None
    failed_at: str | None = None
    began: float = 0.0
    note: bytes = b""
    offsets: tuple[list[Any], list[Any]] = ([], [])
    _since: float = field(default_factory=time.monotonic)
    _asked: int = field(
        default_factory=lambda: REQUESTS.so_far
    )  # requests to stores up to the row of the last batch
    _writing: threading.Lock = field(default_factory=threading.Lock)
    _closed: bool = False

    def __post_init__(self) -> None:
        """Make what the batches share."""
        self._rows = BatchRows(self.plan)
        self._found_at = self.began
        self._prices = Prices(self.plan)
        self._begins = Begins(self.checkpoint)
        self._levels = LevelStates(self.plan, self.checkpoint)
        self._folds = OperatorProcess()

    def __call__(self, rows: DataFrame, batch_id: int) -> None:
        """Evaluate and write a batch; the function for `foreachBatch`."""
        with self._writing:
            if self._closed:
                do = "Start the job again: it goes on where it stopped."
                raise StateError(f"the job — must run while a batch is written; got its end. {do}")
            self.began = time.monotonic()
            try:
                self.require_held()
                self.note = self.claim_batch(batch_id)
                before = self.offsets[1] or self.checkpoint.offsets_before(batch_id)
                self.offsets = before, self.checkpoint.offsets_after(batch_id, self.note)
                self.side_tables.tell(rows.sparkSession, batch_id)
                collected = self._rows.collect(rows)
                self._found_at = time.monotonic()
                report = self._write(rows.sparkSession, collected, batch_id)
                for listener in self.listeners:
                    listener(report)
                give_back()
            except Exception as error:
                self.failure, self.failed_at = error, self.tables.writing
                raise

    def close(self) -> None:
        """Wait until a batch that is being written is done, and refuse to write from then on."""
        with self._writing:
            self._closed = True
            self._folds.stop()

    def _write(self, session: SparkSession, rows: pa.Table, batch_id: int) -> BatchReport:
        stats = [json.loads(body) for body in bodies(rows, STATS)]
        first = _of_first_slot(stats)
        skipped, told = self.look(batch_id, *self.offsets, _rows_read(first))
        self.tables.claim()
        begin = self._begins.of(batch_id)
        work = [json.loads(body) for body in bodies(rows, WORK)]
        frontier_us = stats[0]["frontier_us"] if stats else begin.frontier_us  # the same in every slot
        levels = self._levels.begin(batch_id, begin.levels)
        merged = self._merged(rows, stats, begin, frontier_us, levels)
        earlier = self._begins.kept(batch_id)  # there if the batch runs again
        kept = self._written(batch_id, begin.out_seq, earlier)
        late = self._late(session, rows, first.get("late_files", []))
        self.require_held()  # what is written from here on, another job may have written already
        above = (kept.levels, 0) if kept else self._levels.write(batch_id + 1, levels)
        quarantine = _quarantine(_joined(bodies(rows, BAD), BAD_SCHEMA), merged.failed, batch_id)
        # matches last: a selection that fails in one try only is perhaps in two tables, but never in none
        tables = {"late": late, "quarantine": quarantine, "matches": merged.matches}
        tables = {name: of_batch(table, batch_id) for name, table in tables.items() if table.num_rows}
        last_appended = self._last_appended(batch_id, begin.tables if earlier is None else {}, tables)
        of_slots = {name for slot in stats for name in slot["chunks"]} if stats else begin.chunks
        chunks = sorted({*of_slots, *(levels.stored() if kept is None else kept.chunks)})
        numbers = merged.next_out_seq if kept is None else kept.out_seq
        read = self.checkpoint.offsets_digest(batch_id, self.note)
        states = batch_id if stats else begin.states
        left = (first.get("reached", begin.reached), states, above[0], self.layout)
        following = Begin(numbers, frontier_us, last_appended, read, chunks, *left)
        self.checkpoint.chunks.remove(self._begins.write(batch_id + 1, following))
        require_states(self.checkpoint, batch_id, len(stats))
        tell_earlier(session, {batch_id + 1: following})
        self.checkpoint.forget_begin(batch_id - _KEPT_SEQUENCES)
        counted = {"late": late.num_rows, "quarantined": merged.failed.num_rows, "skipped_offsets": skipped}
        counted |= {**self._counted(session, work), "lacking": first.get("lacking", {}) | told}
        standing = {**levels.standing, "state_bytes": above[1]}
        matches = {name: number - begin.out_seq.get(name, 0) for name, number in numbers.items()}
        report = self._report(batch_id, stats, matches, counted, standing, frontier_us == begin.frontier_us)
        if merged.failed.num_rows:
            self._complete_quarantine(quarantine, batch_id)
        self._append(tables, report, is_redone=earlier is not None)
        return report

    def _append(self, tables: Mapping[str, pa.Table], report: BatchReport, is_redone: bool) -> None:
        """Append a batch to its tables; which rules have changed comes before their first matches.

        The row of `metrics` comes last, and says how long all the others took too.
        """
        merged_at = time.monotonic()
        self.history.append(self.tables, report.batch_id, datetime.now(timezone.utc))
        for name, table in tables.items():
            self.tables.append(name, table, report.batch_id)
        if is_redone:  # an earlier try may have written what rules that have gone since then failed on
            report.quarantined = report.bad_records + self.tables.failed_selections(report.batch_id)
        now = time.monotonic()
        report.batch_seconds = self._own_seconds(now)
        stages = {"merger": merged_at - self._found_at, "tables": now - merged_at}
        report.stage_seconds = {"tasks": report.batch_seconds - sum(stages.values()), **stages}
        report.seconds, self._since = now - self._since, now
        asked = REQUESTS.so_far
        report.store_requests, self._asked = report.store_requests + asked - self._asked, asked
        self.tables.append("metrics", metrics_row(report, datetime.now(timezone.utc)), report.batch_id)

    def _own_seconds(self, now: float) -> float:
        """How long the batch takes since Spark began it, in this run.

        Where an earlier run has begun it, it counts from the hand-over: Spark has planned the batch by then,
        which takes some tenths of a second.
        """
        least, most = now - self.began, now - self._since
        begun_at = began_at(self.note)
        seconds = least if begun_at is None else time.time() - begun_at
        return seconds if least <= seconds <= most else least

    def _merged(
        self, rows: pa.Table, stats: list[dict[str, Any]], begin: Begin, frontier_us: int, levels: Levels
    ) -> Merged:
        """The matches of all rules; the state of those that read matches moves on."""
        results = map(decode_result, bodies(rows, RESULT))
        waiting = (slot.get("matches_waiting", []) for slot in stats)
        told = told_of_waiting({index: Waiting.of(one) for index, one in of_slot} for of_slot in waiting)
        of_events = merge(self.plan, results, begin.out_seq, told)
        fold = partial(self._folds.fold, timeout_us=self.plan.operator_timeout_us)
        return levels.advance(of_events, begin.frontier_us, frontier_us, fold)

    def _late(self, session: SparkSession, rows: pa.Table, files: list[dict[str, Any]]) -> pa.Table:
        """All late events of the batch: those that tasks have found, and those read from `files`."""
        found = [_joined(bodies(rows, LATE), LATE_SCHEMA)]
        if files:
            found.append(self.late_in(session, self.plan, [LateFile(**file) for file in files]))
        return pa.concat_tables(found)

    def _counted(self, session: SparkSession, work: list[dict[str, Any]]) -> dict[str, Any]:
        """The counters of a batch's lanes; also learns prices from them, and tells these to later tasks."""
        counted = {name: sum(lane[name] for lane in work) for name in counters_of(LANES)}
        counted |= {**longest_lanes(work), "over_bound": None, "lookups": self.side_tables.joined}
        if self.plan.latency_bound_us is not None:
            counted["over_bound"] = over_bound(self.plan, work, session.sparkContext.defaultParallelism)
        self._prices.learn(work)
        self._prices.tell(session)
        return counted

    def _complete_quarantine(self, quarantine: pa.Table, batch_id: int) -> None:
        """Append to `quarantine` what an earlier try lacked, if it ended before it wrote `matches`."""
        tables = self.tables
        if tables.last_batch("quarantine") >= batch_id > tables.last_batch("matches"):
            tables.append_missing("quarantine", quarantine, _QUARANTINE_KEY)

    def _last_appended(
        self, batch_id: int, known: Mapping[str, int], grown: Collection[str]
    ) -> dict[str, int]:
        """The last batch in each table after this one is written.

        An earlier try of the batch may have appended to a table for which there are no rows now.

        Args:
            batch_id: the batch.
            known: the last batch in each table before this one, as far as it is known.
            grown: the tables for which this batch has rows.
        """
        last = {name: known[name] if name in known else self.tables.last_batch(name) for name in TABLES}
        return last | dict.fromkeys([*grown, "metrics"], batch_id)

    def _written(self, batch_id: int, base: dict[str, int], kept: Begin | None) -> Begin | None:
        """What an earlier try of the batch kept for the next one, if it wrote its matches; else None.

        These matches stay, even if rules were removed since then, or an operator fails or recovers now.
        """
        numbers = {} if kept is None else kept.out_seq
        grown = [name for name, number in numbers.items() if number > base.get(name, 0)]
        return kept if grown and self.tables.last_batch("matches") >= batch_id else None

    def _report(
        self,
        batch_id: int,
        stats: list[dict[str, Any]],
        matches: Mapping[str, int],
        counted: dict[str, Any],
        above: Mapping[str, int],
        stood: bool,
    ) -> BatchReport:
        first = _of_first_slot(stats)
        of_tasks = first.get("counts", {})
        counts = {name: of_tasks.get(name, 0) for name in counters_of(TASKS)}
        counts |= {name: first.get(name, 0) for name in counters_of(ALIKE)}
        for name in counters_of(SLOTS):
            counts[name] = sum(slot[name] for slot in stats) + above.get(name, 0)
        # tasks do not know which events of files are late, so these are subtracted here
        counts["events"] -= counts["repeats"] + counted["late"] - counts["late"]
        counted["quarantined"] += counts["bad_records"]
        slowest = first.get("slowest", [])
        frontier_us = first.get("frontier_us", NO_FRONTIER)
        return BatchReport(
            **{**counts, **counted},
            batch_id=batch_id,
            seconds=0.0,  # both are known once all other tables are written
            batch_seconds=0.0,
            matches={name: count for name, count in matches.items() if count},
            frontier_us=None if frontier_us in (NO_FRONTIER, UNKNOWN_TIME) else frontier_us,
            max_time_us=first.get("max_time_us"),
            slowest_source=slowest[0] if slowest else None,
            idle_names=tuple(first.get("idle", [])),
            unheard_sources=tuple(first.get("unheard", [])),
            waiting_for=tuple(slowest) if stood and counts["pending"] else (),
            finished=any(slot["finish"] for slot in stats),
            absent=first.get("absent"),
        )


def _of_first_slot(stats: list[dict[str, Any]]) -> dict[str, Any]:
    """The counts of the first slot, which also reports for all slots; empty if the batch had no rows."""
    return next((slot for slot in stats if slot["slot"] == 0), {})


def _rows_read(first: dict[str, Any]) -> int:
    """The rows that tasks have read, records or not, by the counts of the first slot."""
    counts = first.get("counts", {})
    return int(counts.get("records", 0) + counts.get(IGNORED, 0))


def _joined(frames: list[bytes], schema: pa.Schema) -> pa.Table:
    return pa.concat_tables([schema.empty_table(), *(decode(frame).cast(schema) for frame in frames)])


def _quarantine(records: pa.Table, selections: pa.Table, batch_id: int) -> pa.Table:
    """The rows for the table `quarantine`: bad records, and selections that an operator failed on."""
    parts = [QUARANTINE_SCHEMA.empty_table()]
    for kind, table in (("record", records), ("selection", selections)):
        rows = table.num_rows
        columns = dict(zip(table.column_names, table.columns, strict=True))
        columns |= {"kind": pa.repeat(kind, rows), "batch_id": pa.repeat(batch_id, rows)}
        known = [columns.get(name, pa.nulls(rows)) for name in QUARANTINE_SCHEMA.names]
        parts.append(pa.table(known, QUARANTINE_SCHEMA.names).cast(QUARANTINE_SCHEMA))
    return pa.concat_tables(parts)
