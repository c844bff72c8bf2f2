"""Drives a job: first some records that start it, then the schedule, then the wait until all is processed."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from spark_pace.errors import SetupError
from spark_pace.job_file import KafkaSource, read_job
from spark_pace.job_file.secrets import Secrets
from spark_pace_bench.check import differing_matches
from spark_pace_bench.job import DrivenJob
from spark_pace_bench.latency import Latencies, Sent, latencies, taken_times
from spark_pace_bench.records import Records, make_records
from spark_pace_bench.schedule import Floats, Schedule, schedule
from spark_pace_bench.spec import Replay, RunSpec
from spark_pace_bench.targets import Folder, Target, Topic
from spark_pace_bench.watch import Watched, Watcher

Process = subprocess.Popen[bytes]

LOOK_SECONDS = 1.0
START_SECONDS = 1800  # for Spark's start and the first batch
_MOST_FIRST = 1_000
_AHEAD_SECONDS = 0.2  # the first event of the schedule is due so long after the first batch was seen

Tell = Callable[[str, float, int, int], None]  # what is done, in which second, records sent, records read


@dataclass(frozen=True)
class Driven:
    """What a run was and has shown.

    Attributes:
        run: its specification.
        began: when its first event was due, seconds since 1970.
        first: how many records came before the schedule.
        sent: all records, those before the schedule included.
        watched: what was seen of the job.
        stopped: when the job was told to stop.
        latencies: of the matches that were visible when it had stopped.
        matches: how many there are with those that only the end of the input decides.
        expected: how many the core finds.
        differences: of the job's matches from the core's, in sentences.
    """

    run: RunSpec
    began: float
    first: int
    sent: Sent
    watched: Watched
    stopped: float
    latencies: Latencies
    matches: int
    expected: int
    differences: list[str]


def drive(
    run: RunSpec, out: Path, tell: Tell, make: Callable[[RunSpec, int], Records] = make_records
) -> Driven:
    """Run and measure.

    Args:
        run: what.
        out: an empty folder for all files.
        tell: hears once a second how far it is.
        make: makes so many records of the run.

    Raises:
        SetupError: the job or the broker fails.
    """
    plan = schedule(run.phases, run.seed)
    first = int(np.clip(max(run.phases[0].rate), 1, _MOST_FIRST))
    count = first + len(plan.due)
    records = make(run, count)
    with closing(_target(run, out, records)) as target:
        since = time.time()
        at = target.send(0, np.full(first, int(since * 1e6)))
        target.settle()
        job = DrivenJob(run, out, target.starting(since))
        load = _Load(run, plan, first, target)
        with job.running() as process:
            watcher = Watcher(job.tables, job.checkpoint, process.pid, lambda offset: _of(run, offset))
            with _watching(watcher, load, tell):
                load.wait(lambda: watcher.watched.records >= first, job, process, START_SECONDS)
                if watcher.watched.records < first:
                    must = f"must have its first batch within {START_SECONDS} s"
                    raise SetupError(f"the job {job.file} — {must}; got none. See {job.log}.")
                load.send_all(at, partial(load.require_going, job, process))
                target.settle()
                load.doing = "waiting until all is processed"
                load.wait(lambda: watcher.watched.records >= load.sent, job, process, run.limit_seconds)
                load.doing = "stopping the job"
        stopped = time.time()
        load.doing = "checking"
        return _results(load, job, watcher.watched, stopped)


def _of(run: RunSpec, offset: object) -> bool:
    """Tell whether an offset is that of the source, not that of the end of the input."""
    key = run.job.source.topics[0] if isinstance(run.job.source, KafkaSource) else "entries"
    return isinstance(offset, dict) and key in offset


def _target(run: RunSpec, out: Path, records: Records) -> Target:
    source = run.job.source
    if isinstance(source, KafkaSource):
        return Topic(source, source.resolved(Secrets()).servers, records)
    return Folder(out / "events", records, run.file_seconds)


class _Load:
    """The state of a run while it is driven."""

    def __init__(self, run: RunSpec, plan: Schedule, first: int, target: Target) -> None:
        self.run, self.plan, self.first, self.target = run, plan, first, target
        self.doing, self.sent = "starting the job", first
        self.began: float | None = None
        self.at: Floats = np.empty(0)
        self.due: Floats = np.empty(0)
        self.failure: Exception | None = None

    def require_going(self, job: DrivenJob, process: Process) -> None:
        """Refuse to go on without the job, or without the thread that looks at it."""
        job.require_running(process)
        if self.failure is not None:
            raise self.failure

    def send_all(self, at: Floats, require_going: Callable[[], None]) -> None:
        """Send the schedule, what is late as soon as possible, until the limit. `at`: of the first ones."""
        self.began = time.time() + _AHEAD_SECONDS
        self.due = np.concatenate([at, self.began + self.plan.due])
        self.at = np.concatenate([at, np.full(len(self.plan.due), np.nan)])
        end = self.began + sum(phase.seconds for phase in self.run.phases) + self.run.limit_seconds
        due_us = (self.due * 1e6).astype(np.int64)  # as `Sent.due_us`
        while self.sent < len(self.due) and (now := time.time()) < end:
            require_going()
            ready = int(np.searchsorted(self.due, now, "right"))
            if ready > self.sent:
                self.doing = self.run.phases[self.plan.phase[ready - self.first - 1]].name
                self.at[self.sent : ready] = self.target.send(self.sent, due_us[self.sent : ready])
                self.sent = ready
            _pause(self.target.tick_seconds - (time.time() - now))

    def wait(self, ready: Callable[[], bool], job: DrivenJob, process: Process, seconds: float) -> None:
        """Wait until something holds, but so many seconds at most."""
        until = time.time() + seconds
        while not ready() and time.time() < until:
            self.require_going(job, process)
            _pause(0.1)


def _pause(seconds: float) -> None:
    threading.Event().wait(max(0.0, seconds))


@contextmanager
def _watching(watcher: Watcher, load: _Load, tell: Tell) -> Iterator[None]:
    """Look at the job once a second in a thread of its own, and once more at the end."""
    over = threading.Event()

    def watch() -> None:
        try:
            while not over.wait(LOOK_SECONDS):
                watcher.look()
                second = time.time() - load.began if load.began else 0.0
                tell(load.doing, second, load.sent, watcher.watched.records)
        except Exception as error:
            load.failure = error  # the run ends with it

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        watcher.look()


def _results(load: _Load, job: DrivenJob, watched: Watched, stopped: float) -> Driven:
    """End the job's input and compare; the latencies are of what was visible before."""
    run, until = load.run, time.time()
    taken = taken_times(watched.taken, load.target, len(load.due))
    phase = np.concatenate([np.full(load.first, -1), load.plan.phase])
    own_times = isinstance(run.events, Replay) and run.events.own_times
    sent = Sent(load.due, load.at, taken, phase, own_times)
    found = latencies(job.tables / "matches", load.target, sent, until)
    job.finish()
    events = load.target.events(job.out / "sent")
    expected, matches, differences = differing_matches(read_job(job.file), events, job.tables)
    assert load.began is not None
    return Driven(run, load.began, load.first, sent, watched, stopped, found, matches, expected, differences)
