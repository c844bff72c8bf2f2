"""Says in the log of a running job why it finds nothing, or late: nothing comes, or it is far behind."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from datetime import datetime, timezone

from spark_pace.core.expr.time_functions import time_of
from spark_pace.errors import counted, one_line
from spark_pace.io.metrics import BatchReport
from spark_pace.job_file import JobSpec
from spark_pace.watching.lag import CLOSE_SECONDS, MOST_SEEN, Reached, lag_of
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
