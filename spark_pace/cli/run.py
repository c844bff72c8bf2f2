"""`spark-pace run`: runs the streaming job, shows its progress, and says why it finds nothing, or late."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack
from datetime import datetime, timezone
from functools import partial
from pathlib import Path

from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.text import Text

from spark_pace.cli.log import say
from spark_pace.cli.status import board
from spark_pace.core.expr.time_functions import time_of
from spark_pace.errors import counted, one_line, shown_length, shown_time
from spark_pace.io.metrics import ENOUGH_RECORDS, BatchReport, metrics_row
from spark_pace.job import run_job
from spark_pace.job_file import JobSpec, read_job
from spark_pace.spark.running import Running
from spark_pace.spark.stages.rows import keep_freed
from spark_pace.spark.summary import Listener, Summary
from spark_pace.watching.facts import figures, rules_told
from spark_pace.watching.history import NOTHING
from spark_pace.watching.troubles import CLOSE_SECONDS, lag_of, of_stream, patience

_MOST_RULES = 20  # of the live table


def _now() -> datetime:
    return datetime.now(timezone.utc)


class Progress:
    """What a run has done so far; says once that no batch comes, and each time that it is far behind.

    Attributes:
        history: of its batches.
    """

    def __init__(self, spec: JobSpec, say: Callable[[str], None], now: Callable[[], datetime] = _now) -> None:
        """Begin before the first batch; `say` is called in threads of Spark's and in the main one."""
        self.history = NOTHING
        self._spec, self._say, self._now = spec, say, now
        self._began: datetime | None = None
        self._worked = now()  # when a batch was under way last
        self._told: set[str] = set()
        self._lag: str | None = None  # the kind that was told last

    def ready(self, _: JobSpec) -> None:
        """Say where the job reads."""
        self._began = self._began or self._now()
        self._say(f"started: reads {one_line(self._spec.source.told)}")

    def batch(self, report: BatchReport) -> None:
        """Add a batch, and say it where the job begins to fall behind, begins to catch up, has caught up."""
        now = self._now()
        self.history = self.history.after(metrics_row(report, now))
        if self._began is None:
            return
        self.works(is_under_way=True)
        lag, newest = lag_of(self.history, now) if report.records else None, self.history.newest
        if lag is not None and lag[0] != self._lag:
            self._say(f"warning: {lag[1]}")
            self._lag = lag[0]
        elif self._lag is not None and newest is not None and report.records:
            behind = (now - newest).total_seconds()
            if behind <= CLOSE_SECONDS:
                self._say(f"caught up: the newest event is {shown_length(behind)} behind the clock.")
                self._lag = None

    def works(self, is_under_way: bool) -> None:
        """Say what stands, unless it was said; called each second, and after each batch.

        A batch that was under way lately counts as one: it may have been interrupted, and had records.
        """
        if self._began is None:
            return
        now = self._now()
        self._worked = now if is_under_way else self._worked
        works = (now - self._worked).total_seconds() <= patience(self._spec)
        found = dict(
            of_stream(self._spec, self.history, Running("", self._began, 0 if works else None, None), now)
        )
        if "silent" not in found:  # between two batches every stream stands for a while
            found.pop("stands", None)
        for kind, sentence in found.items():
            if kind not in self._told:
                self._say(f"{'warning:' if kind == 'ahead' else 'waiting:'} {sentence}")
        self._told = {*found}

    def board(self, batch: BatchReport) -> Group:
        """The content of the live table after a batch."""
        told, rules = figures(self.history, self._now()), rules_told(self._spec, self.history)
        return board(
            one_line(self._spec.name), f"batch {batch.batch_id}", [*held(batch)], told, rules, _MOST_RULES
        )


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
    progress = Progress(spec, tell)
    with ExitStack() as stack:
        show = print_batch if spec.events.clock is None else print_unless_idle
        if console.is_terminal:
            live = Live(Text("no batch is done yet"), console=console, auto_refresh=False)
            show = partial(_update, stack.enter_context(live), tell, progress)
        heard = [Listener(progress.batch), Listener(show, empty=lambda: tell(no_files_yet(spec)))]
        if spec.trigger_us != "available_now":
            heard.append(Listener(ready=progress.ready, works=progress.works))
        summary = run_job(spec, reset_rules=reset_rules, heard=heard)
    advice = advice_on_late(spec, summary)
    absent = summary.told_of_absent if summary.records < ENOUGH_RECORDS else None  # else it was told
    last = [f"warning: {absent}" if absent else None, closing_line(summary), *alert_lines(summary), advice]
    say("\n".join(filter(None, last)))
    return summary


def no_files_yet(spec: JobSpec) -> str:
    """One line for a new job that finds no file where it reads."""
    return f"no files yet in {one_line(spec.source.told)}: check this place if some should be there."


def _print_above(console: Console, told: str) -> None:
    """Print a line above the live table."""
    console.print(escape(told), soft_wrap=True)


def _update(live: Live, tell: Callable[[str], None], progress: Progress, batch: BatchReport) -> None:
    for warning in warnings(batch):
        tell(warning)
    live.update(progress.board(batch), refresh=True)


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
    rate = round(batch.records / batch.seconds) if batch.seconds else 0  # of records
    lag = "none" if batch.newest_us is None else shown_length(time.time() - batch.newest_us / 1e6)
    parts = (
        *(f"{counted(batch.events, 'event')}, {rate:,}/s", f"frontier {frontier(batch)}", f"lag {lag}"),
        *(*held(batch), f"late {batch.late:,}"),
        f"quarantined {batch.quarantined:,}" if batch.quarantined else "",
        *(f"carry {batch.carry:,}", f"matches: {found}"),
    )
    return f"batch {batch.batch_id}: {'; '.join(filter(None, parts))}"


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


def held(batch: BatchReport) -> Iterator[str]:
    """The sources that the stream waits for, and why no cut of lanes could keep the latency bound."""
    if batch.waiting_for:
        yield f"waiting for sources: {one_line(', '.join(batch.waiting_for))}"
    if batch.over_bound:
        yield f"latency_bound cannot be kept: {batch.over_bound}"


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
