"""What a running job uses, seen from outside: its processes' memory, and its files.

Each look asks the job for its page and its counters too, as a browser does. Now and then one asks the JVM for
what is in use of its heap behind a collection, which costs the batch at work some tenths of a second.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.request import urlopen

import psutil

from tests.long.soak.settings import Settings

ANSWER_SECONDS = 60  # the first look at many batches reads them all
SAMPLE_SECONDS = 3
TABLES = ("matches", "late", "quarantine", "metrics")
Sample = dict[str, float]


class Looks:
    """Looks at the job of a run while events come, and until they are processed.

    Attributes:
        samples: one every few seconds, each with its `second` of the run.
    """

    def __init__(self, settings: Settings, folder: Path) -> None:
        """Look at a job in the folder of its run."""
        self.samples: list[Sample] = []
        self._settings, self._folder = settings, folder
        self._next = self._next_heap = 0.0

    def tell(self, doing: str, second: float, sent: int, read: int) -> None:
        """Take a sample, if it is time; see `drive`. The job goes on, so its parts are milliseconds apart.

        Raises:
            OSError: the job does not answer.
        """
        if not second or second < self._next:
            return
        self._next = second + SAMPLE_SECONDS
        for address in self._settings.addresses:
            with urlopen(address, timeout=ANSWER_SECONDS) as answer:
                answer.read()
        sample: Sample = {"second": second, **self._memory(heap=second >= self._next_heap)}
        if "heap" in sample:
            self._next_heap = second + self._settings.look_s
        for table in TABLES:
            folder = self._folder / "tables" / table
            sample[f"{table} files"] = _count(folder, ".parquet")
            sample[f"{table} log"] = _count(folder / "_delta_log", "")
        sizes = list(_sizes(self._folder / "_checkpoint"))
        self.samples.append(sample | {"checkpoint files": len(sizes), "checkpoint": sum(sizes)})

    def _memory(self, *, heap: bool) -> Sample:
        """Resident bytes of the driver's Python, of the JVM, and of Python workers with their children."""
        started, file = psutil.Process().children(), str(self._folder / "job.yaml")
        process = next(child for child in started if file in child.cmdline())
        found = {"driver": process.memory_info().rss, "jvm": 0, "workers": 0, "processes": 0}
        for child in process.children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                java = child.name() == "java"
                found["jvm" if java else "workers"] += child.memory_info().rss
                found["processes"] += not java
                if java and heap:
                    found["heap"] = heap_in_use(child.pid)
        return {**found}


def heap_in_use(jvm: int) -> int:
    """Bytes; the histogram of classes begins with a collection."""
    command = ["jcmd", str(jvm), "GC.class_histogram"]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return int(told.rpartition("\nTotal")[2].split()[1])


def _count(folder: Path, ending: str) -> int:
    return sum(name.endswith(ending) for name in os.listdir(folder)) if folder.exists() else 0


def _sizes(folder: Path) -> Iterator[int]:
    """Of all files below; one that goes away meanwhile is not counted."""
    for parent, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                yield os.stat(os.path.join(parent, name)).st_size
