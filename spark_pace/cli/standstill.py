"""Says once that the stream of a running job stands, or that its events are ahead of the time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime, timezone

from spark_pace.core.expr.moments import time_of
from spark_pace.errors import counted
from spark_pace.io.metrics import BatchReport
from spark_pace.watching.troubles import ahead, what_moves_it

_SECONDS = 30.0


class Standstill:
    """Says once after a batch, if events wait and no further batch ends for some time, what they wait for."""

    def __init__(self, say: Callable[[str], None], seconds: float = _SECONDS) -> None:
        """Begin before the first batch; `say` is called in a thread of its own."""
        self._say = say
        self._seconds = seconds
        self._timer: threading.Timer | None = None
        self._newest_us: int | None = None
        self._is_ahead = False

    def after(self, batch: BatchReport) -> None:
        """Wait anew from the end of this batch on."""
        self.stop()
        self._look_ahead(batch)
        if batch.pending and not batch.finished:
            self._timer = threading.Timer(self._seconds, self._say, [standing(batch, self._seconds)])
            self._timer.daemon = True
            self._timer.start()

    def stop(self) -> None:
        """Say nothing any more."""
        if self._timer is not None:
            self._timer.cancel()

    def _look_ahead(self, batch: BatchReport) -> None:
        times = [time for time in (self._newest_us, batch.max_time_us) if time is not None]
        self._newest_us = max(times, default=None)
        newest = None if self._newest_us is None else time_of(self._newest_us)
        told = ahead(newest, datetime.now(timezone.utc))
        if told is not None and not self._is_ahead:
            self._say(f"warning: {told}")
        self._is_ahead = told is not None


def standing(batch: BatchReport, seconds: float) -> str:
    """One line: how many events wait, up to which time the stream is decided, and what would move it."""
    at = "has not moved yet"
    if batch.frontier_us is not None:
        at = f"stands at {time_of(batch.frontier_us):%Y-%m-%d %H:%M:%S} UTC"
    return (
        f"waiting: no batch has ended for {seconds:g} s; {counted(batch.pending, 'event')} "
        f"not yet passed by the frontier, which {at}. {what_moves_it(batch.slowest_source)}"
    )
