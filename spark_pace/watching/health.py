"""Whether a running job does its work: no batch is under way for too long.

How old the last batch is says nothing by itself: a job whose trigger is long, or to which nothing comes, does
none for hours and is well. All of it is in memory, so who asks waits for no store.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from spark_pace.io.metrics import BatchReport


@dataclass
class Health:
    """The health of the job that this process runs; each `now` is in seconds since 1970.

    Attributes:
        most_seconds: how long a batch may be under way.
    """

    most_seconds: float
    _last: BatchReport | None = None
    _written: float = 0.0
    _since: float | None = None  # when the batch began, or was seen first, that is under way

    def works(self, is_under_way: bool, now: float) -> None:
        """Note whether a batch is under way."""
        if not is_under_way:
            self._since = None
        elif self._since is None:
            self._since = now

    def after(self, batch: BatchReport, now: float) -> None:
        """Note a batch that is written; Spark has not noted its end yet, or has begun the next one."""
        self._last, self._written, self._since = batch, now, now

    def told(self, now: float) -> dict[str, Any]:
        """What `/healthz` answers."""
        waited = None if self._since is None else max(0.0, now - self._since)
        is_healthy = waited is None or waited <= self.most_seconds
        state = "starts" if self._last is None else "waits" if waited is None else "works"
        return {
            "healthy": is_healthy,
            "state": state if is_healthy else "hangs",
            "batch": None if self._last is None else self._last.batch_id,
            "last_batch_seconds": None if self._last is None else round(max(0.0, now - self._written), 1),
            "under_way_seconds": None if waited is None else round(waited, 1),
        }
