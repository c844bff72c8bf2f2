"""`spark-pace run`: the streaming job with live progress."""

from __future__ import annotations

import sys
from collections.abc import Collection
from datetime import datetime, timedelta, timezone
from pathlib import Path

from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from spark_pace.errors import one_line
from spark_pace.job import run_job
from spark_pace.job_file import JobSpec, read_job
from spark_pace.spark.stages.merger import BatchReport
from spark_pace.spark.summary import Summary

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def run_command(job: Path, reset_rules: Collection[str] = ()) -> None:
    """The whole command; see `spark_pace.cli.main.run`. Ends with 128 + n after signal n."""
    summary = run_shown(read_job(job), reset_rules)
    if summary.stopped_by:
        sys.exit(128 + summary.stopped_by)


def run_shown(spec: JobSpec, reset_rules: Collection[str] = ()) -> Summary:
    """Run a job: a live table on a terminal, one line a batch elsewhere, a summary at the end."""
    console = Console(highlight=False)
    if console.is_terminal:
        with Live(Text("starting Spark …"), console=console, auto_refresh=False) as live:
            board = Board(spec)
            summary = run_job(
                spec,
                on_progress=lambda progress: live.update(board.after(progress), refresh=True),
                reset_rules=reset_rules,
            )
    else:
        summary = run_job(
            spec, on_progress=lambda progress: print(line(progress), flush=True), reset_rules=reset_rules
        )
    print(closing_line(summary), flush=True)
    return summary


class Board:
    """What the live table shows: the last batch, and sums since the start."""

    def __init__(self, spec: JobSpec) -> None:
        """Start with no matches."""
        self.name = spec.name
        self.matches = {rule.name: 0 for rule in spec.rules}
        self.events = 0

    def after(self, progress: BatchReport) -> Group:
        """The table after one more batch."""
        self.events += progress.events
        for rule, count in progress.matches.items():
            self.matches[rule] += count
        state = Table.grid(padding=(0, 3))
        state.add_row(
            Text(one_line(self.name), style="bold"),
            f"batch {progress.batch_id}",
            f"{self.events:,} events",
            f"{rate(progress):,} events/s",
        )
        state.add_row(
            "",
            f"frontier {frontier(progress)}",
            f"lag {lag(progress)}",
            f"carry {progress.carry:,} events, {progress.open:,} selections open",
        )
        state.add_row(
            "",
            f"late {progress.late:,}",
            f"quarantined {progress.quarantined:,}",
            f"state {progress.state_bytes / 1e6:.1f} MB",
        )
        if progress.slowest_source is not None:
            slowest = escape(one_line(progress.slowest_source))
            state.add_row(
                "",
                f"slowest source {slowest}",
                f"idle sources {progress.idle_sources:,}",
                escape(waiting(progress)),
            )
        found = Table("rule", "matches", "in this batch")
        for rule, count in self.matches.items():
            found.add_row(rule, f"{count:,}", f"{progress.matches.get(rule, 0):,}")
        return Group(state, found)


def line(progress: BatchReport) -> str:
    """A batch in one line, for logs."""
    found = ", ".join(f"{rule} {count:,}" for rule, count in progress.matches.items()) or "none"
    return (
        f"batch {progress.batch_id}: {progress.events:,} events, {rate(progress):,}/s; frontier {frontier(progress)}, lag {lag(progress)}; {waiting(progress)}"
        f"late {progress.late:,}; carry {progress.carry:,}; matches: {found}"
    )


def closing_line(summary: Summary) -> str:
    """The run in one line."""
    found = ", ".join(f"{rule} {count:,}" for rule, count in summary.matches.items())
    others = "".join(
        f", {count:,} {name}"
        for name, count in (("heartbeats", summary.heartbeats), ("repeats", summary.repeats))
        if count
    )
    end = (
        "stopped; run it again to go on"
        if summary.stopped_by
        else "finished"
        if summary.finished
        else "up to date"
    )
    still_open = f"; {summary.still_open:,} selections still open" if summary.batches else ""
    return (
        f"{end}: {summary.events:,} events in {summary.seconds:.1f} s, {summary.late:,} late, {summary.quarantined:,} quarantined{others}; "
        f"matches: {found}{still_open}"
    )


def waiting(progress: BatchReport) -> str:
    """Which sources hold the stream, where it stands still; else nothing."""
    return (
        f"waiting for sources: {one_line(', '.join(progress.waiting_for))}; " if progress.waiting_for else ""
    )


def rate(progress: BatchReport) -> int:
    """Records a second."""
    return round(progress.records / progress.seconds) if progress.seconds else 0


def frontier(progress: BatchReport) -> str:
    """The time before which everything is decided."""
    if progress.finished:
        return "end"
    return (
        "none yet"
        if progress.frontier_us is None
        else f"{EPOCH + timedelta(microseconds=progress.frontier_us):%Y-%m-%d %H:%M:%S}"
    )


def lag(progress: BatchReport) -> str:
    """How far the frontier is behind the newest event, in event time."""
    if progress.frontier_us is None or progress.max_time_us is None:
        return "none"
    return str(timedelta(seconds=max(0, progress.max_time_us - progress.frontier_us) // 1_000_000))
