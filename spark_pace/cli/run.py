"""`spark-pace run`: runs the streaming job, shows its progress, and says why it finds nothing, or late."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Collection
from datetime import datetime, timezone
from functools import partial
from pathlib import Path

from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from spark_pace.cli.log import say
from spark_pace.core.expr.time_functions import time_of
from spark_pace.errors import counted, one_line
from spark_pace.io.metrics import ENOUGH_RECORDS, BatchReport
from spark_pace.job import run_job
from spark_pace.job_file import JobSpec, read_job
from spark_pace.spark.stages.memory import keep_freed
from spark_pace.spark.summary import Summary
from spark_pace.watching.figures import CLOSE_SECONDS, MOST_SEEN, Reached, lag_of
from spark_pace.watching.troubles import ahead, patience, unusual_seconds, what_moves_it
from spark_pace.watching.words import shown_length, shown_time


class Standstill:
    """Says once after a batch that no further one comes, and once each time that a job is far behind.

    Attributes:
        least_seconds: the shortest silence that is told.
    """

    def __init__(self, spec: JobSpec, say: Callable[[str], None], seconds: float | None = None) -> None:
        """Begin before the first batch; `say` is called in a thread of its own, or of Spark's."""
        self.least_seconds = patience(spec) if seconds is None else seconds
        self._say, self._timer = say, threading.Timer(0, say)
        self._source = one_line(spec.source.told)
        self._has_clock = spec.events.clock is not None
        self._first = self._last = 0.0  # when the first and the last batch with records were done
        self._batches = 0  # with records
        self._is_ahead = False
        self._reached = deque[Reached](maxlen=MOST_SEEN)
        self._kind: str | None = None  # of the lag that was told last
        self._lock = threading.Lock()  # batches end in a thread of Spark's, the run in the main one
        self._stopped = False

    def begin(self, _: JobSpec) -> None:
        """Say that the job waits for events, and later that none has come."""
        self._say(f"started, waiting for events in {self._source}")
        with self._lock:
            if not self._batches:
                self._wait(self.least_seconds, self._silence(self.least_seconds))

    def after(self, batch: BatchReport) -> None:
        """Look at a batch, and wait anew from its end on."""
        with self._lock:
            self._after(batch)

    def stop(self) -> None:
        """Say nothing any more."""
        with self._lock:
            self._stopped = True
            self._timer.cancel()

    def _after(self, batch: BatchReport) -> None:
        self._look_ahead(batch.newest_us)
        if batch.records:
            self._last = time.time()
            self._first = self._first or self._last
            self._batches += 1
            self._look_behind(batch)
        if batch.finished:
            self._timer.cancel()
        elif batch.records:  # a tick of the clock ends no silence, nor does Spark's first batch without any
            seconds = max(self.least_seconds, unusual_seconds(self._first, self._last, self._batches))
            self._wait(seconds, self._silence(seconds) if self._has_clock else standing(batch, seconds))

    def _wait(self, seconds: float, told: str) -> None:
        """Say something after so long, unless it is called again before."""
        self._timer.cancel()
        if not self._stopped:
            self._timer = threading.Timer(seconds, self._say, [told])
            self._timer.daemon = True
            self._timer.start()

    def _silence(self, seconds: float) -> str:
        told = f"waiting: nothing has come for {seconds:.0f} s from {self._source}"
        return f"{told}: the clock alone moves the frontier." if self._has_clock else f"{told}."

    def _look_ahead(self, newest_us: int | None) -> None:
        newest = None if newest_us is None else time_of(newest_us)
        told = ahead(newest, datetime.now(timezone.utc))
        if told is not None and not self._is_ahead:
            self._say(f"warning: {told}")
        self._is_ahead = told is not None

    def _look_behind(self, batch: BatchReport) -> None:
        """Say it where the job begins to fall behind, begins to catch up, and has caught up."""
        if batch.newest_us is None:
            return
        reached = Reached(self._last, batch.newest_us / 1e6, batch.seconds, batch.batch_seconds)
        self._reached.append(reached)
        lag = lag_of(self._reached)
        if lag is not None and lag.kind != self._kind:
            self._say(f"warning: {lag.told}")
            self._kind = lag.kind
        elif self._kind is not None and reached.lag <= CLOSE_SECONDS:
            self._say(f"caught up: the newest event is {shown_length(reached.lag)} behind the clock.")
            self._kind = None


def no_files_yet(spec: JobSpec) -> str:
    """One line for a new job that finds no file where it reads."""
    return f"no files yet in {one_line(spec.source.told)}: check this place if some should be there."


def standing(batch: BatchReport, seconds: float) -> str:
    """One line: what waits, up to which time the stream is decided, and what would move it."""
    at = "has not moved yet"
    if batch.frontier_us is not None:
        at = f"stands at {shown_time(time_of(batch.frontier_us))}"
    waits = f"{counted(batch.pending, 'event')} not yet passed by the frontier, which {at}"
    open_ones = f", and {counted(batch.open, 'selection')} open" if batch.open else ""
    mover = what_moves_it(batch.slowest_source)
    return f"waiting: no batch has ended for {seconds:.0f} s; {waits}{open_ones}. {mover}"


def run_command(job: Path, reset_rules: Collection[str] = ()) -> int:
    """Do what `spark_pace.cli.main.run` says, and return the exit code: after signal n it is 128 + n."""
    summary = run_shown(read_job(job), reset_rules)
    return 128 + summary.stopped_by if summary.stopped_by else 0


def run_shown(spec: JobSpec, reset_rules: Collection[str] = (), in_lines: bool = False) -> Summary:
    """Run a job, show a live table on a terminal, else a line for each batch, and at the end a summary.

    Args:
        spec: the job.
        reset_rules: names of rules that begin anew.
        in_lines: show lines on a terminal too, for Spark says something there.
    """
    console = Console(highlight=False, force_terminal=False if in_lines else None)
    if not in_lines:  # elsewhere Spark's own settings decide about memory
        keep_freed()
    tell = partial(_print_above, console) if console.is_terminal else say
    standstill = Standstill(spec, tell)
    watched = spec.trigger_us != "available_now"
    shown = partial(_shown, standstill) if watched else lambda show: show
    run = partial(run_job, spec, reset_rules=reset_rules, on_empty=lambda: tell(no_files_yet(spec)))
    run = partial(run, on_ready=standstill.begin) if watched else run
    try:
        if console.is_terminal:
            with Live(Text("no batch is done yet"), console=console, auto_refresh=False) as live:
                board = Board(spec)

                def show(batch: BatchReport) -> None:
                    for warning in warnings(batch):
                        console.print(escape(warning))
                    live.update(board.after(batch), refresh=True)

                summary = run(on_progress=shown(show))
        else:
            print_it = print_batch if spec.events.clock is None else print_unless_idle
            summary = run(on_progress=shown(print_it))
    finally:
        standstill.stop()
    advice = advice_on_late(spec, summary)
    absent = summary.told_of_absent if summary.records < ENOUGH_RECORDS else None  # else it was told
    last = [f"warning: {absent}" if absent else None, closing_line(summary), *alert_lines(summary), advice]
    say("\n".join(filter(None, last)))
    return summary


def _print_above(console: Console, told: str) -> None:
    """Print a line above the live table."""
    console.print(escape(told), soft_wrap=True)


def _shown(standstill: Standstill, show: Callable[[BatchReport], None]) -> Callable[[BatchReport], None]:
    """Show each batch, and say later if the stream stands since then."""

    def shown(batch: BatchReport) -> None:
        show(batch)
        standstill.after(batch)

    return shown


class Board:
    """The content of the live table: the last batch, and sums since the start."""

    def __init__(self, spec: JobSpec) -> None:
        """Start with no matches."""
        self.name = spec.name
        self.matches = {rule.name: 0 for rule in spec.rules}
        self.events = 0

    def after(self, batch: BatchReport) -> Group:
        """Add a batch to the sums, and return the table."""
        self.events += batch.events
        for rule, count in batch.matches.items():
            self.matches[rule] = self.matches.get(rule, 0) + count
        state = Table.grid(padding=(0, 3))
        state.add_row(
            Text(one_line(self.name), style="bold"),
            f"batch {batch.batch_id}",
            counted(self.events, "event"),
            f"{rate(batch):,} events/s",
        )
        state.add_row(
            "",
            f"frontier {frontier(batch)}",
            f"lag {lag(batch)}",
            f"carry {counted(batch.carry, 'event')}, {counted(batch.open, 'selection')} open",
        )
        state.add_row(
            "",
            f"late {batch.late:,}",
            f"quarantined {batch.quarantined:,}",
            f"state {batch.state_bytes / 1e6:.1f} MB",
        )
        if batch.slowest_source is not None:
            slowest = escape(one_line(batch.slowest_source))
            state.add_row(
                "",
                f"slowest source {slowest}",
                f"idle sources {batch.idle_sources:,}",
                escape(waiting(batch)),
            )
        if batch.over_bound is not None:
            state.add_row("", escape(over_bound(batch)))
        found = Table("rule", "matches", "in this batch")
        for rule, count in self.matches.items():
            found.add_row(rule, f"{count:,}", f"{batch.matches.get(rule, 0):,}")
        return Group(state, found)


def print_batch(batch: BatchReport) -> None:
    """Print a batch for logs: a line, and before it one for each warning."""
    say("\n".join([*warnings(batch), line(batch)]))


def print_unless_idle(batch: BatchReport) -> None:
    """Print a batch for logs, unless nothing was read and nothing found, as in most batches of a clock."""
    if batch.records or batch.matches:
        print_batch(batch)


def warnings(batch: BatchReport) -> list[str]:
    """What looks wrong in the input, but is no bad record."""
    return [f"warning: {told}" for told in batch.warnings]


def line(batch: BatchReport) -> str:
    """One line about a batch, for logs."""
    found = ", ".join(f"{rule} {count:,}" for rule, count in batch.matches.items()) or "none"
    return (
        f"batch {batch.batch_id}: {counted(batch.events, 'event')}, {rate(batch):,}/s; "
        f"frontier {frontier(batch)}; lag {lag(batch)}; {waiting(batch)}{over_bound(batch)}"
        f"late {batch.late:,}; {bad(batch)}carry {batch.carry:,}; matches: {found}"
    )


def closing_line(summary: Summary) -> str:
    """One line about the whole run."""
    found = ", ".join(f"{rule} {count:,}" for rule, count in summary.matches.items())
    others = "".join(
        f", {counted(count, name)}"
        for name, count in (("heartbeat", summary.heartbeats), ("repeat", summary.repeats))
        if count
    )
    end = "finished" if summary.finished else "up to date"
    if summary.stopped_by:
        end = "stopped; run it again to go on"
    over = ""
    if summary.over_bound:
        batches = f"{summary.over_bound:,} of {counted(summary.batches, 'batch')}"
        over = f"; latency_bound could not be kept in {batches}, in the last: {summary.why_over_bound}"
    what = "closed by the end of the input" if summary.finished else "still open"
    still_open = f"; {counted(summary.still_open, 'selection')} {what}" if summary.batches else ""
    if summary.pending:
        still_open += f", {counted(summary.pending, 'event')} that the frontier has not passed"
    return (
        f"{end}: {counted(summary.events, 'event')} in {summary.seconds:.1f} s, {summary.late:,} late, "
        f"{summary.quarantined:,} quarantined{others}; matches: {found}{still_open}{over}"
    )


def alert_lines(summary: Summary) -> list[str]:
    """For each target of alerts a line about what the run has sent, and what waits at its end."""
    lines = []
    for counts in summary.alerts:
        said = f"{counts.sent:,} sent"
        if counts.refused:
            said += f", {counts.refused:,} refused, which are in the table alerts_refused"
        if counts.waiting:
            said += f", {counts.waiting:,} wait: the next start sends them"
        if counts.failures:
            said += f"; {counted(counts.failures, 'failure')}, the last: {counts.failure}"
        lines.append(f"alerts.{counts.target}: {said}")
    return lines


def advice_on_late(spec: JobSpec, summary: Summary) -> str | None:
    """The cause and the remedy if the cut of the input into batches may have made events late; else None."""
    order = spec.events.order
    if not summary.late:
        return None
    if order.before == "batches":
        why = "with ordering: watermark partitions have no order between them"
        do = "Ordering: sources makes it depend on the input alone; a longer delay keeps more of them."
    elif order.before == "records" and order.idle_after_us is not None:
        why = "idle_after leaves sources out by how far the batches have come"
        do = "A longer idle_after waits longer for them."
    else:
        return None
    return f"late: which events are late may depend on how the input was cut into batches, for {why}. {do}"


def waiting(batch: BatchReport) -> str:
    """The sources that the stream waits for, as text; empty if it waits for none."""
    names = one_line(", ".join(batch.waiting_for))
    return f"waiting for sources: {names}; " if batch.waiting_for else ""


def over_bound(batch: BatchReport) -> str:
    """The reason why no cut of lanes could keep the latency bound, as text; empty if the bound was kept."""
    return f"latency_bound cannot be kept: {batch.over_bound}; " if batch.over_bound else ""


def bad(batch: BatchReport) -> str:
    """The number of rows that went to quarantine, as text; empty if none did."""
    return f"quarantined {batch.quarantined:,}; " if batch.quarantined else ""


def rate(batch: BatchReport) -> int:
    """Records a second."""
    return round(batch.records / batch.seconds) if batch.seconds else 0


def frontier(batch: BatchReport) -> str:
    """The frontier as text: the time before which everything is decided; and how far it is behind events."""
    if batch.finished:
        return "end"
    if batch.frontier_us is None:
        return "none yet"
    at = shown_time(time_of(batch.frontier_us))
    if batch.newest_us is None:
        return at
    return f"{at}, {shown_length((batch.newest_us - batch.frontier_us) / 1e6)} behind the newest event"


def lag(batch: BatchReport) -> str:
    """How far the newest event of the run is behind the clock, as text."""
    return "none" if batch.newest_us is None else shown_length(time.time() - batch.newest_us / 1e6)
