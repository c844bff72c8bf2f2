"""Whether a running job does its work: no batch is under way for too long.

How old the last batch is says nothing by itself: a job whose trigger is long, or to which nothing comes, does
none for hours and is well.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from spark_pace.io.metrics import BatchReport
from spark_pace.spark.checkpoint.checkpoint import Checkpoint
from spark_pace.watching.running import under_way


@dataclass
class Health:
    """The health of the job that this process runs.

    Attributes:
        checkpoint: of the job.
        most_seconds: how long a batch may be under way.
        began: when the job was started, in seconds since 1970.
    """

    checkpoint: Checkpoint
    most_seconds: float
    began: float = field(default_factory=time.time)
    _last: BatchReport | None = None
    _written: float = 0.0

    def after(self, batch: BatchReport, now: float) -> None:
        """Note a batch that was written at `now`, in seconds since 1970."""
        self._last, self._written = batch, now

    def told(self, now: float) -> dict[str, Any]:
        """What `/healthz` answers at `now`.

        Raises:
            StateError: the checkpoint is damaged.
        """
        _, begun = under_way(self.checkpoint)
        # a batch that a stop has interrupted is done again from the start of this run on
        since = None if begun is None else max(begun.timestamp(), self.began, self._written)
        waited = None if since is None else max(0.0, now - since)
        is_healthy = waited is None or waited <= self.most_seconds
        state = "starts" if self._last is None else "waits" if waited is None else "works"
        return {
            "healthy": is_healthy,
            "state": state if is_healthy else "hangs",
            "batch": None if self._last is None else self._last.batch_id,
            "last_batch_seconds": None if self._last is None else round(max(0.0, now - self._written), 1),
            "under_way_seconds": None if waited is None else round(waited, 1),
        }
