"""What a running job uses, seen from outside: its processes' memory, its files, its batches, and its lag."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
from kafka import KafkaConsumer, TopicPartition

from tests.long.soak.settings import TOPIC, Settings

TABLES = ("matches", "late", "quarantine", "metrics")
Sample = dict[str, Any]


@dataclass
class Watched:
    """What was seen of the running job.

    Attributes:
        began: when the first event was produced, seconds since 1970.
        samples: one every few seconds.
        batches: begin and end of each batch, seconds since 1970.
    """

    began: float
    samples: list[Sample] = field(default_factory=list)
    batches: dict[int, tuple[float, float]] = field(default_factory=dict)


class Sampler:
    """Takes samples of one job."""

    def __init__(self, settings: Settings, pid: int, servers: str) -> None:
        """Look at the process `pid` and what it starts."""
        self._settings = settings
        self._process = psutil.Process(pid)
        self._partitions = [TopicPartition(TOPIC, number) for number in range(settings.partitions)]
        self._consumer = KafkaConsumer(bootstrap_servers=servers)
        self.batches: dict[int, tuple[float, float]] = {}

    def close(self) -> None:
        """Leave the broker alone: the consumer has threads and sockets of its own."""
        self._consumer.close()

    def sample(self) -> Sample:
        """One sample. The job goes on meanwhile, so its parts are some milliseconds apart."""
        self._note_batches()
        sample: Sample = {"time": time.time(), "lag": self._lag(), **memory(self._process)}
        for table in TABLES:
            folder = self._settings.tables / table
            sample[f"{table}_files"] = _count(folder, ".parquet")
            sample[f"{table}_log"] = _count(folder / "_delta_log", "")
        sizes = list(_sizes(self._settings.checkpoint))
        return sample | {"checkpoint_files": len(sizes), "checkpoint_bytes": sum(sizes)}

    def _lag(self) -> int | None:
        """Records in the topic that are in no batch yet; None before the first."""
        ends = self._consumer.end_offsets(self._partitions)
        read = self._offsets()
        return None if read is None else sum(ends.values()) - sum(read.values())

    def _offsets(self) -> dict[str, int] | None:
        """Where the last batch that was begun ends, by partition."""
        latest = max(self._ids("offsets"), default=None)
        if latest is None:
            return None
        for line in (
            (self._settings.checkpoint / "offsets" / str(latest)).read_text(encoding="utf-8").splitlines()
        ):
            if TOPIC in (offsets := json.loads(line) if line.startswith("{") else {}):
                return dict(offsets[TOPIC])
        return None

    def _note_batches(self) -> None:
        """When the batches began and ended: Spark writes one file before, and one after."""
        for batch in self._ids("commits"):
            if batch not in self.batches:
                began, ended = (
                    _written(self._settings.checkpoint / part / str(batch)) for part in ("offsets", "commits")
                )
                if began and ended:
                    self.batches[batch] = (began, ended)

    def _ids(self, part: str) -> list[int]:
        folder = self._settings.checkpoint / part
        return [int(name) for name in os.listdir(folder) if name.isdigit()] if folder.exists() else []


def memory(process: psutil.Process) -> Sample:
    """Resident bytes of the driver's Python, of the JVM, and of the Python workers with their children."""
    found = {"driver_rss": process.memory_info().rss, "jvm_rss": 0, "workers_rss": 0, "workers": 0}
    for child in process.children(recursive=True):
        try:
            java = child.name() == "java"
            found["jvm_rss" if java else "workers_rss"] += child.memory_info().rss
            found["workers"] += not java
        except psutil.NoSuchProcess:
            continue
    return found


def _written(path: Path) -> float | None:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return None


def _count(folder: Path, ending: str) -> int:
    return sum(name.endswith(ending) for name in os.listdir(folder)) if folder.exists() else 0


def _sizes(folder: Path) -> Iterator[int]:
    """Of all files below; one that goes away meanwhile is not counted."""
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                yield os.stat(os.path.join(parent, name)).st_size
            except FileNotFoundError:
                continue
