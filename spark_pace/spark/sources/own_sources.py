"""The streaming source of our own, `spark_pace`, and what it can read: names of files, or ends and ticks.

Spark's own file source orders files by modification time, silently skips files older than `maxFileAge`, and
has no end of the input. `FileNamesReader` takes names in order from a manifest: those of a folder or of a
prefix in an object store, or those that the commits of a Delta table have added. Each file is read once, so
it must be written under a name that starts with a dot and then renamed.

Kafka's connector gives neither an end of the input nor the ticks of a clock. `EndReader` does. A query that
reads Kafka has it from its first start on, because Spark refuses a checkpoint if a source was added or
removed. A tick is part of the input: it is noted in the checkpoint before a batch reads it, so that a batch
that runs again, and a job that is started again, read the same ticks at the same places.

Since 4.2 Spark tells a Python source where a batch begins and how much it may read. Before, a source is asked
for its newest offset. It is told neither that, nor that a run takes what is there now. `reader_option` gives
such a Spark a reader that knows both.

Spark runs this module in Python workers, so it imports little: neither pyarrow nor the core.
"""

from __future__ import annotations

import json
import pickle
import time
from base64 import b64decode, b64encode
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from spark_pace.io.files import files
from spark_pace.io.files.addresses import AnyPath
from spark_pace.io.files.files import read_json, write_json
from spark_pace.spark.sources.manifest import (
    FINISH,
    Manifest,
    TableCommits,
    file_of,
    tick_of,
)

try:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadLimit,
        ReadMaxBytes,
        SupportsTriggerAvailableNow,
    )
except ImportError:

    class ReadLimit:  # type: ignore[no-redef]
        """A limit; this Spark has none."""

    class ReadAllAvailable(ReadLimit):  # type: ignore[no-redef]
        """No limit."""

    class ReadMaxBytes(ReadLimit):  # type: ignore[no-redef]
        """A limit that this Spark never gives."""

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """A source that is told of a run which takes what is there now; not by this Spark."""


TELLS_LIMITS = ReadLimit.__module__ != __name__
OWN_SOURCE = "spark_pace"
READER = "reader_secret"  # Spark shows no option with such a name


class OwnSource(DataSource):
    """Rows of a number and a text, from the reader that `reader_option` names."""

    @classmethod
    def name(cls) -> str:
        """The name that `readStream.format` takes."""
        return OWN_SOURCE

    def schema(self) -> str:
        """The columns of a row."""
        return "number bigint, text string"

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """The reader that Spark keeps for the query, as the Spark here asks it."""
        return pickle.loads(b64decode(self.options[READER]))()  # type: ignore[no-any-return]


def reader_option(
    make: Callable[[], Any], noted: Callable[[], dict[str, int] | None], available_now: bool
) -> dict[str, str]:
    """The option that tells the source its reader, and an older Spark where its first batch begins.

    Args:
        make: makes the reader; it is picklable.
        noted: gives the source's offset after the last batch that has begun; None before the first batch.
        available_now: True if the run takes what is there now.
    """
    told = make if TELLS_LIMITS else partial(_UnlimitedReader, make, noted(), available_now)
    return {READER: b64encode(pickle.dumps(told)).decode()}


class _UnlimitedReader(DataSourceStreamReader):
    """Asks a reader as Spark 4.2 does, for a Spark that asks for the newest offset alone."""

    def __init__(self, make: Callable[[], Any], noted: dict[str, int] | None, available_now: bool) -> None:
        """Begin at the offset `noted`; None: where the reader begins."""
        self._reader = make()
        self._last: dict[str, int] = noted or self._reader.initialOffset()
        self._available_now = available_now
        self._prepared = False

    def initialOffset(self) -> dict[str, int]:
        """The offset before all rows."""
        return self._reader.initialOffset()  # type: ignore[no-any-return]

    def latestOffset(self) -> dict[str, int]:  # type: ignore[override]  # as Spark before 4.2 calls it
        """The end of the next batch: of all that is there in a run that takes what is there now.

        Such a Spark asks only once in such a run, which has one batch for it.
        """
        if not self._available_now:
            self._last = self._next()
        elif not self._prepared:
            self._prepared = True
            self._reader.prepareForTriggerAvailableNow()
            while (end := self._next()) != self._last:
                self._last = end
        return self._last

    def _next(self) -> dict[str, int]:
        return self._reader.latestOffset(self._last, ReadAllAvailable())  # type: ignore[no-any-return]

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        """The tasks of a batch."""
        return self._reader.partitions(start, end)  # type: ignore[no-any-return]

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        """The rows of a task."""
        return self._reader.read(partition)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Ticks:
    """The times at which a clock ticks: the multiples of `every_us`, each `slack_us` after it has passed."""

    every_us: int
    slack_us: int

    def due_us(self) -> int:
        """The last tick that is due by the clock of this machine."""
        return self._us() // self.every_us * self.every_us

    def seconds_to_next(self) -> float:
        """The seconds until the next tick is due."""
        return (self.every_us - self._us() % self.every_us) / 1e6

    def _us(self) -> int:
        return time.time_ns() // 1000 - self.slack_us


ROWS = "rows"  # in offsets
TICK = "tick_us"  # in offsets and in the file: the time of the last tick, in microseconds since 1970
_NEVER = -(1 << 63)


class EndReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Gives a row for each tick, whose number is its time, and one without a number for the end of the input.

    Its offset is ``{"rows": n}``, 1 behind the end and else 0, with the time of the last tick as `TICK` once
    there is one. So the checkpoint remembers both.
    """

    def __init__(self, end: bool, clock: AnyPath | None, checkpoint_id: str = "") -> None:
        """Give the end in this run if `end`, and each tick that is written to the file `clock`."""
        self._checkpoint_id = checkpoint_id
        self._end = end
        self._clock = clock

    def prepareForTriggerAvailableNow(self) -> None:
        """Do nothing, because nothing comes later."""

    def initialOffset(self) -> dict[str, int]:
        """The offset before the end."""
        return {ROWS: 0}

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        """The offset after the newest tick, and after the end if the input ends in this run."""
        noted = None if self._clock is None else read_json(self._clock, self._checkpoint_id)
        tick = {TICK: noted[TICK]} if noted is not None and noted[TICK] > start.get(TICK, _NEVER) else {}
        return {**start, **tick, **({ROWS: 1} if self._end else {})}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        """One task for each row."""
        ticks = [end[TICK]] if TICK in end and end[TICK] != start.get(TICK) else []
        return [*map(InputPartition, ticks), *[InputPartition(None)] * (end[ROWS] - start[ROWS])]

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        """The row."""
        yield partition.value, None


READ_BYTES = "bytes"  # in offsets of jobs with admission: the weight of all files up to there
# the same as `ARCHIVES` of `spark_pace.io.event_files`, which takes long to import
_PACKED = (".gz", ".bz2", ".lz4", ".zst", ".parquet")
_UNPACKED = 4  # bytes of text for each byte of such a file, roughly
_OPENING = 4096  # opening a file takes about as long as reading this many bytes


@dataclass(frozen=True)
class FilesToRead:
    """What a query reads.

    Attributes:
        root: the folder of files, or its place in a store.
        manifest: the manifest.
        tasks: the most tasks of a batch.
        finish: True: mark the end of an available-now run.
        max_files: the most files of a batch; None: all.
        first_bytes: the greatest weight of the first batch, if it has several files; None: batches are not
            bounded by bytes.
        ticks: when the clock ticks; None: never.
        checkpoint_id: the id of the checkpoint, whose files the manifest and the position of a table are.
        table_id: the id of the Delta table at the root whose commits add the files; empty: it is a folder.
        from_version: the first commit to read; None: begin with the table as it is.
        position: the file that says how far the log of the table was read.
    """

    root: AnyPath
    manifest: AnyPath
    tasks: int
    finish: bool = False
    max_files: int | None = None
    first_bytes: int | None = None
    ticks: Ticks | None = None
    checkpoint_id: str = ""
    table_id: str = ""
    from_version: int | None = None
    position: AnyPath = Path()


class FileNamesReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Turns the manifest into batches, of rows of an entry's index and its name as JSON.

    Its offset is ``{"entries": n}``, a number of entries of the manifest.

    If batches are bounded by bytes, the offset also has the weight of all these files (`READ_BYTES`).
    """

    def __init__(self, of: FilesToRead) -> None:
        """Open the manifest."""
        self._of = of
        self._listing = files.listing(of.root)
        self._manifest = Manifest(of.manifest, of.checkpoint_id)
        self._commits: TableCommits | None = None
        if of.table_id:
            self._position = read_json(of.position, of.checkpoint_id)
            known = self._manifest.entries
            self._commits = TableCommits(of.root, of.table_id, of.from_version, known, self._position)
        self._frozen = False

    def prepareForTriggerAvailableNow(self) -> None:
        """Take the files that exist now, and no more in this run."""
        self._scan()
        if self._of.finish:
            self._manifest.finish()
        self._frozen = True

    def initialOffset(self) -> dict[str, int]:
        """The offset before the first file."""
        return {"entries": 0}

    def getDefaultReadLimit(self) -> ReadLimit:
        """The limit of the first batch, by bytes; that of the number of files is the same for every batch."""
        return ReadAllAvailable() if self._of.first_bytes is None else ReadMaxBytes(self._of.first_bytes)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        """The end of the next batch; `start` if there is nothing new."""
        if not self._frozen:
            self._scan()
        end = self._manifest.next_index(start["entries"], self._of.max_files)
        if end <= start["entries"]:
            return start
        if isinstance(limit, ReadMaxBytes):
            return self._within(start, end, limit.max_bytes)
        return {"entries": end}

    def _scan(self) -> None:
        """Note what is new, and behind it the tick that was due before anyone looked for it."""
        due_us = None if self._of.ticks is None else self._of.ticks.due_us()
        if self._commits is None:
            self._manifest.scan(self._listing)
        else:
            self._manifest.add(self._commits.new())
            position = self._commits.position(len(self._manifest.entries))
            if position is not None and position != self._position:
                self._position = position
                write_json(self._of.position, position, self._of.checkpoint_id)
        if due_us is not None:
            self._manifest.tick(due_us)

    def _within(self, start: dict[str, int], end: int, max_bytes: int) -> dict[str, int]:
        """The offset after those files up to `end` that weigh at most `max_bytes`; at least one."""
        first, read = start["entries"], 0
        for index, name in enumerate(self._manifest.entries[first:end], first):
            weight = self._weight(name)
            if read and read + weight > max_bytes:
                end = index
                break
            read += weight
        return {"entries": end, READ_BYTES: start.get(READ_BYTES, 0) + read}

    def _weight(self, name: str) -> int:
        """The weight of a file: its bytes as text, and those for opening it; 0 for other entries."""
        if name == FINISH or tick_of(name) is not None:
            return 0
        size = self._listing.size(name if self._commits is None else file_of(name).path)
        return _OPENING + (_UNPACKED * size if name.endswith(_PACKED) else size)

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        """Divide the files among the tasks by weight; each task gets neighbouring files.

        Their events may then be in order already, and need no sorting.
        """
        names = self._manifest.entries[start["entries"] : end["entries"]]
        tasks = min(self._of.tasks, len(names))
        weights = list(map(self._weight, names)) if tasks > 1 else []
        middles = [end - weight / 2 for end, weight in zip(accumulate(weights), weights, strict=True)]
        inner = (bisect_left(middles, sum(weights) * task / tasks) for task in range(1, tasks))
        bounds = sorted({0, *inner, len(names)})
        before = start["entries"]
        return [InputPartition((before + first, names[first:last])) for first, last in pairwise(bounds)]

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        """Yield the names as JSON, because they need not be UTF-8; the intake reads the files."""
        first, names = partition.value
        return ((entry, json.dumps(name)) for entry, name in enumerate(names, first))
