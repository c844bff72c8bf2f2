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
from spark_pace.io.files.addresses import path_of
from spark_pace.spark.sources.end_source import Ticks
from spark_pace.spark.sources.manifest import FINISH, Manifest, tick_of
from spark_pace.spark.sources.read_limits import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxFiles,
    SupportsTriggerAvailableNow,
    reader_for,
)
from spark_pace.spark.sources.table_commits import TableCommits, file_of, read_position, write_position

FILE_NAMES = "spark_pace_files"
STORE = "store_secret"  # Spark shows no option with such a name
CHECKPOINT = "checkpoint_secret"  # the store of the checkpoint, if it is in one
CHECKPOINT_ID = "checkpoint_id"
READ_BYTES = "bytes"  # in offsets of jobs with admission: the weight of all files up to there
# the same as `ARCHIVES` of `spark_pace.io.text.unread_lines`, which takes long to import
_PACKED = (".gz", ".bz2", ".lz4", ".zst", ".parquet")
_UNPACKED = 4  # bytes of text for each byte of such a file, roughly
_OPENING = 4096  # opening a file takes about as long as reading this many bytes


class FileNames(DataSource):
    """Rows of `entry`, the index in the manifest, and `name`, as JSON: of a file, a tick or the end."""

    @classmethod
    def name(cls) -> str:
        """The name that `readStream.format` takes."""
        return FILE_NAMES

    def schema(self) -> str:
        """The columns of a row."""
        return "entry bigint, name string"

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """The reader that Spark keeps for the query."""
        options = dict(self.options)
        return reader_for(FileNamesReader(options), options)


@dataclass
class FileNamesPartition(InputPartition):
    """The files of one task; `first` is the index of the first one in the manifest."""

    first: int
    names: list[str]


class FileNamesReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Turns the manifest into batches. Its offset is ``{"entries": n}``, a number of entries of the manifest.

    If batches are bounded by bytes, the offset also has the weight of all these files (`READ_BYTES`).

    Options: `root` (a path, or an address of a store), `STORE` (settings of that store; empty: on a disk),
    `manifest` (a path), `CHECKPOINT` (settings of the store in which that path and `position` lie; empty: on
    a disk),
    `CHECKPOINT_ID` (the id of the checkpoint, whose files both are),
    `table` (the id of the Delta table there; absent: a folder of files),
    `position` (the path of the file that says how far its log was read), `from_version` (the first commit to
    read; absent: begin with the table as it is), `tasks` (the most tasks of a batch), `finish` (``true``:
    mark the end of an available-now run), `max_files` (the most files of a batch; absent: all), `first_bytes`
    (the greatest weight of the first batch, if it has several files; absent: batches are not bounded by
    bytes), `clock_every_us` and `clock_slack_us` (when the clock ticks; absent: never).
    """

    def __init__(self, options: dict[str, str]) -> None:
        """Open the manifest that the options name."""
        root = path_of(options["root"], options.get(STORE, ""))
        self._listing = files.listing(root)
        secret = options.get(CHECKPOINT, "")
        self._checkpoint_id = options.get(CHECKPOINT_ID, "")
        self._manifest = Manifest(path_of(options["manifest"], secret), self._checkpoint_id)
        first = int(options["from_version"]) if "from_version" in options else None
        self._commits: TableCommits | None = None
        if "table" in options:
            self._position_file = path_of(options["position"], secret)
            self._position = read_position(self._position_file, self._checkpoint_id)
            known = self._manifest.entries
            self._commits = TableCommits(root, options["table"], first, known, self._position)
        self._tasks = int(options["tasks"])
        self._finish = options.get("finish") == "true"
        self._max_files = int(options["max_files"]) if "max_files" in options else None
        self._first_bytes = int(options["first_bytes"]) if "first_bytes" in options else None
        self._clock = Ticks.of(options)
        self._frozen = False

    def prepareForTriggerAvailableNow(self) -> None:
        """Take the files that exist now, and no more in this run."""
        self._scan()
        if self._finish:
            self._manifest.finish()
        self._frozen = True

    def initialOffset(self) -> dict[str, int]:
        """The offset before the first file."""
        return {"entries": 0}

    def getDefaultReadLimit(self) -> ReadLimit:
        """The limit of the first batch: by bytes if the options have it, else by the number of files."""
        if self._first_bytes is not None:
            return ReadMaxBytes(self._first_bytes)
        return ReadAllAvailable() if self._max_files is None else ReadMaxFiles(self._max_files)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        """The end of the next batch; `start` if there is nothing new."""
        if not self._frozen:
            self._scan()
        max_files = limit.max_files if isinstance(limit, ReadMaxFiles) else self._max_files
        end = self._manifest.next_index(start["entries"], max_files)
        if end <= start["entries"]:
            return start
        if isinstance(limit, ReadMaxBytes):
            return self._within(start, end, limit.max_bytes)
        return {"entries": end}

    def _scan(self) -> None:
        """Note what is new, and behind it the tick that was due before anyone looked for it."""
        due_us = None if self._clock is None else self._clock.due_us()
        self._note_new()
        if due_us is not None:
            self._manifest.tick(due_us)

    def _note_new(self) -> None:
        if self._commits is None:
            self._manifest.scan(self._listing)
            return
        self._manifest.add(self._commits.new())
        position = self._commits.position(len(self._manifest.entries))
        if position is not None and position != self._position:
            self._position = position
            write_position(self._position_file, position, self._checkpoint_id)

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
        tasks = min(self._tasks, len(names))
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
