"""What a running job uses, seen from outside: its processes' memory, its files, its batches, and its lag.

Behind the first batch each look asks the job for its page and its counters too, as a browser does.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import psutil
from kafka import KafkaConsumer, TopicPartition

from spark_pace.io.files.files import stat
from spark_pace.spark.checkpoint.checkpoint import Checkpoint
from tests.long.soak.settings import TOPIC, Settings

ANSWER_SECONDS = 60  # the first look at many batches reads them all
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
        self._checkpoint = Checkpoint(settings.checkpoint)
        self._process = psutil.Process(pid)
        self._partitions = [TopicPartition(TOPIC, number) for number in range(settings.partitions)]
        self._consumer = KafkaConsumer(bootstrap_servers=servers)
        self.batches: dict[int, tuple[float, float]] = {}

    def close(self) -> None:
        """Leave the broker alone: the consumer has threads and sockets of its own."""
        self._consumer.close()

    def sample(self) -> Sample:
        """One sample. The job goes on meanwhile, so its parts are some milliseconds apart.

        Raises:
            OSError: the job does not answer.
        """
        self._note_batches()
        if self.batches:  # the job may be starting before
            self._ask()
        sample: Sample = {"time": time.time(), "lag": self._lag(), **memory(self._process)}
        for table in TABLES:
            folder = self._settings.tables / table
            sample[f"{table}_files"] = _count(folder, ".parquet")
            sample[f"{table}_log"] = _count(folder / "_delta_log", "")
        sizes = list(_sizes(self._settings.checkpoint))
        return sample | {"checkpoint_files": len(sizes), "checkpoint_bytes": sum(sizes)}

    def _ask(self) -> None:
        for address in self._settings.addresses:
            with urlopen(address, timeout=ANSWER_SECONDS) as answer:
                answer.read()

    def _lag(self) -> int | None:
        """Records in the topic that are in no batch yet; None before the first."""
        ends = self._consumer.end_offsets(self._partitions)
        read = self._offsets()
        return None if read is None else sum(ends.values()) - sum(read.values())

    def _offsets(self) -> dict[str, int] | None:
        """Where the last batch that was begun ends, by partition."""
        for offsets in self._checkpoint.last_offsets():
            if TOPIC in offsets:
                return dict(offsets[TOPIC])
        return None

    def _note_batches(self) -> None:
        """When the batches began and ended: Spark writes one file before, and one after."""
        for batch in self._checkpoint.begun():
            began = self._checkpoint.begun_at(batch)
            ended = stat(self._checkpoint.commits / str(batch))
            if batch not in self.batches and began and ended:
                self.batches[batch] = (began, ended.changed_ns / 1e9)


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


def memory(process: psutil.Process) -> dict[str, int]:
    """Resident bytes of the driver's Python, of the JVM, and of the Python workers with their children."""
    found = {"driver_rss": process.memory_info().rss, "jvm_rss": 0, "workers_rss": 0, "workers": 0}
    for child in process.children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            java = child.name() == "java"
            found["jvm_rss" if java else "workers_rss"] += child.memory_info().rss
            found["workers"] += not java
    return found
