"""The streaming source `spark_pace_files`: the names of files in order, and a marker at the end of the input.

The files are those of a folder or of a prefix in an object store, or those that the commits of a Delta table
have added.

Spark's own file source orders files by modification time, silently skips files older than `maxFileAge`, and
has no end of the input. This source takes names in order from a manifest. Each file is read once, so it must
be written under a name that starts with a dot and then renamed.

Spark runs this module in Python workers, so it imports little: neither pyarrow nor the core.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from spark_pace.io.files import files
from spark_pace.io.files.addresses import AnyPath
from spark_pace.spark.sources.end_source import Ticks
from spark_pace.spark.sources.manifest import (
    FINISH,
    Manifest,
    TableCommits,
    file_of,
    read_position,
    tick_of,
    write_position,
)
from spark_pace.spark.sources.read_limits import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxFiles,
    SupportsTriggerAvailableNow,
    reader_of,
)

FILE_NAMES = "spark_pace_files"
READ_BYTES = "bytes"  # in offsets of jobs with admission: the weight of all files up to there
# the same as `ARCHIVES` of `spark_pace.io.event_files`, which takes long to import
_PACKED = (".gz", ".bz2", ".lz4", ".zst", ".parquet")
_UNPACKED = 4  # bytes of text for each byte of such a file, roughly
_OPENING = 4096  # opening a file takes about as long as reading this many bytes


class FileNames(DataSource):
    """Rows of `entry`, the index in the manifest, and `name`, as JSON: of a file, a tick or the end.

    Its option is `reader_option`.
    """

    @classmethod
    def name(cls) -> str:
        """The name that `readStream.format` takes."""
        return FILE_NAMES

    def schema(self) -> str:
        """The columns of a row."""
        return "entry bigint, name string"

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """The reader that Spark keeps for the query."""
        return reader_of(self.options)


@dataclass
class FileNamesPartition(InputPartition):
    """The files of one task; `first` is the index of the first one in the manifest."""

    first: int
    names: list[str]


@dataclass(frozen=True)
class Table:
    """A Delta table whose commits add the files.

    Attributes:
        id: its id.
        from_version: the first commit to read; None: begin with the table as it is.
        position: the file that says how far its log was read.
    """

    id: str
    from_version: int | None
    position: AnyPath


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
        table: the table at the root; None: it is a folder of files.
    """

    root: AnyPath
    manifest: AnyPath
    tasks: int
    finish: bool = False
    max_files: int | None = None
    first_bytes: int | None = None
    ticks: Ticks | None = None
    checkpoint_id: str = ""
    table: Table | None = None


class FileNamesReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Turns the manifest into batches. Its offset is ``{"entries": n}``, a number of entries of the manifest.

    If batches are bounded by bytes, the offset also has the weight of all these files (`READ_BYTES`).
    """

    def __init__(self, of: FilesToRead) -> None:
        """Open the manifest."""
        self._of = of
        self._listing = files.listing(of.root)
        self._manifest = Manifest(of.manifest, of.checkpoint_id)
        self._commits: TableCommits | None = None
        if of.table is not None:
            self._position = read_position(of.table.position, of.checkpoint_id)
            known = self._manifest.entries
            first = of.table.from_version
            self._commits = TableCommits(of.root, of.table.id, first, known, self._position)
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
        """The limit of the first batch: by bytes if the options have it, else by the number of files."""
        if self._of.first_bytes is not None:
            return ReadMaxBytes(self._of.first_bytes)
        return ReadAllAvailable() if self._of.max_files is None else ReadMaxFiles(self._of.max_files)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        """The end of the next batch; `start` if there is nothing new."""
        if not self._frozen:
            self._scan()
        max_files = limit.max_files if isinstance(limit, ReadMaxFiles) else self._of.max_files
        end = self._manifest.next_index(start["entries"], max_files)
        if end <= start["entries"]:
            return start
        if isinstance(limit, ReadMaxBytes):
            return self._within(start, end, limit.max_bytes)
        return {"entries": end}

    def _scan(self) -> None:
        """Note what is new, and behind it the tick that was due before anyone looked for it."""
        due_us = None if self._of.ticks is None else self._of.ticks.due_us()
        self._note_new()
        if due_us is not None:
            self._manifest.tick(due_us)

    def _note_new(self) -> None:
        if self._commits is None or self._of.table is None:
            self._manifest.scan(self._listing)
            return
        self._manifest.add(self._commits.new())
        position = self._commits.position(len(self._manifest.entries))
        if position is not None and position != self._position:
            self._position = position
            write_position(self._of.table.position, position, self._of.checkpoint_id)

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
        return [FileNamesPartition(before + first, names[first:last]) for first, last in pairwise(bounds)]

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        """Yield the names as JSON, because they need not be UTF-8; the intake reads the files."""
        assert isinstance(partition, FileNamesPartition)
        return ((entry, json.dumps(name)) for entry, name in enumerate(partition.names, partition.first))
