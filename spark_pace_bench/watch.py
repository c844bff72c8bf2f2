"""What is seen of a job while it runs: its batches, what they have read, and what its processes take."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pyarrow.parquet as pq

from spark_pace.spark.checkpoint.checkpoint import Checkpoint
from spark_pace_bench.delta_log import commits

_COLUMNS = ("batch_id", "seconds", "records", "late", "bad_records", "carry", "pending", "state_bytes")


@dataclass
class Watched:
    """What was seen.

    Attributes:
        taken: when each batch had taken its records, seconds since 1970, with Spark's offset of the source.
        rows: of the table `metrics`, each with `committed`, when it became visible.
        samples: of the processes: `time`, `rss` (bytes) and `cpu` (seconds since the start) of all together.
    """

    taken: dict[int, tuple[float, dict[str, Any]]] = field(default_factory=dict)
    rows: list[dict[str, Any]] = field(default_factory=list)
    samples: list[dict[str, float]] = field(default_factory=list)

    @property
    def records(self) -> int:
        """How many records the batches that are done have read."""
        return sum(row["records"] for row in self.rows)


class Watcher:
    """Looks at one job."""

    def __init__(self, tables: Path, checkpoint: Path, pid: int, belongs: Callable[[Any], bool]) -> None:
        """Look at the process `pid` and all that it starts; `belongs`: whether an offset is the source's."""
        self.watched = Watched()
        self._metrics, self._checkpoint = tables / "metrics", Checkpoint(checkpoint)
        self._belongs = belongs
        self._process = psutil.Process(pid)
        self._known: set[str] = set()

    def look(self) -> None:
        """Note what is new."""
        for batch in sorted(set(self._checkpoint.begun()) - self.watched.taken.keys()):
            with suppress(FileNotFoundError):  # Spark forgets old ones meanwhile
                at, offsets = self._checkpoint.begun_at(batch), self._checkpoint.offsets_after(batch)
                own = [offset for offset in offsets if self._belongs(offset)]
                if own and at is not None:
                    self.watched.taken[batch] = (at, own[0])
        self.watched.rows += metrics_rows(self._metrics, self._known)
        self.watched.samples.append({"time": time.time(), **_used(self._process)})


def metrics_rows(table: Path, known: set[str]) -> list[dict[str, Any]]:
    """The rows of `metrics` in entries of its log that are not `known`; then they are."""
    rows: list[dict[str, Any]] = []
    for commit in commits(table, known):
        known.add(commit.name)
        for path in commit.files:
            found = pq.read_table(path, columns=list(_COLUMNS), partitioning=None).to_pylist()
            rows += [{**row, "committed": commit.committed} for row in found]
    return rows


def _used(process: psutil.Process) -> dict[str, float]:
    """Resident bytes and processor seconds of a process and all below it."""
    rss, cpu = 0.0, 0.0
    with suppress(psutil.Error):
        for one in [process, *process.children(recursive=True)]:
            with suppress(psutil.Error):
                rss += one.memory_info().rss
                times = one.cpu_times()
                cpu += times.user + times.system + times.children_user + times.children_system
    return {"rss": rss, "cpu": cpu}


def worked(samples: Collection[dict[str, float]], begins: float, ends: float) -> float | None:
    """How many cores the job kept busy between two times; None where nothing was seen."""
    inside = [sample for sample in samples if begins <= sample["time"] <= ends]
    if len(inside) < 2 or inside[-1]["time"] == inside[0]["time"]:
        return None
    return (inside[-1]["cpu"] - inside[0]["cpu"]) / (inside[-1]["time"] - inside[0]["time"])
