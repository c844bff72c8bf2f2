"""The streaming source `spark_pace_files`: names of files in order, and a marker of the end of the input.

The files are those of a folder, or those that the commits of a Delta table have added.

Spark's own file source orders by modification time, skips files older than `maxFileAge` without a word, and
cannot say that the input has ended. This one takes names in their order from a manifest. A file is read once:
write it under a name that starts with a dot, then rename it.

Spark runs this in Python workers, so it imports little: neither pyarrow nor the core.
"""

from __future__ import annotations

import json
import os
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxFiles,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from spark_pace.spark.sources.manifest import FINISH, Manifest
from spark_pace.spark.sources.table_commits import TableCommits, file_of, read_position, write_position

FILE_NAMES = "spark_pace_files"
READ_BYTES = "bytes"  # in offsets of jobs with admission: what all files up to there weigh

# as `ARCHIVES` of `spark_pace.io.files`, which would take the process of a source long to import
_PACKED = (".gz", ".bz2", ".lz4", ".zst", ".parquet")
_UNPACKED = 4  # bytes of text for a byte of such a file, roughly
_OPENING = 4096  # bytes that are read in the time that it takes to open a file, roughly


class FileNames(DataSource):
    """Rows with `entry`, the place in the manifest, and `name`, in JSON; ``""`` is the marker of the end."""

    @classmethod
    def name(cls) -> str:
        """The name that `readStream.format` takes."""
        return FILE_NAMES

    def schema(self) -> str:
        """The columns of a row."""
        return "entry bigint, name string"

    def streamReader(self, schema: StructType) -> FileNamesReader:
        """The reader that Spark keeps for the query."""
        return FileNamesReader(dict(self.options))


@dataclass
class FileNamesPartition(InputPartition):
    """The files of one task; `first` is the place of the first one in the manifest."""

    first: int
    names: list[str]


class FileNamesReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Turns the manifest into batches. Its offset is ``{"entries": n}``, a number of entries of the manifest.

    Where a batch is bounded by bytes, what all these files weigh stands beside it (`READ_BYTES`).

    Options: `root`, `manifest` (paths), `table` (the id of the Delta table there; absent: a folder of files),
    `position` (the path of how far its log was read), `from_version` (the first commit that is read; absent:
    the table as it is at first), `tasks` (the most tasks of a batch), `finish` (``true``: mark the end of an
    available-now run), `max_files` (the most files of a batch; absent: all), `first_bytes` (the most that the
    first batch's files weigh, unless it is one file; absent: batches are not bounded by bytes).
    """

    def __init__(self, options: dict[str, str]) -> None:
        """Open the manifest that the options name."""
        self._root = Path(options["root"])
        self._manifest = Manifest(Path(options["manifest"]))
        first = int(options["from_version"]) if "from_version" in options else None
        self._commits: TableCommits | None = None
        if "table" in options:
            self._position_file = Path(options["position"])
            self._position = read_position(self._position_file)
            known = self._manifest.entries
            self._commits = TableCommits(self._root, options["table"], first, known, self._position)
        self._tasks = int(options["tasks"])
        self._finish = options.get("finish") == "true"
        self._max_files = int(options["max_files"]) if "max_files" in options else None
        self._first_bytes = int(options["first_bytes"]) if "first_bytes" in options else None
        self._frozen = False

    def prepareForTriggerAvailableNow(self) -> None:
        """Take the files that are there now, and no more in this run."""
        self._scan()
        if self._finish:
            self._manifest.finish()
        self._frozen = True

    def initialOffset(self) -> dict[str, int]:
        """Nothing was read."""
        return {"entries": 0}

    def getDefaultReadLimit(self) -> ReadLimit:
        """The bytes of the first batch, else at most `max_files` a batch."""
        if self._first_bytes is not None:
            return ReadMaxBytes(self._first_bytes)
        return ReadAllAvailable() if self._max_files is None else ReadMaxFiles(self._max_files)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        """The end of the next batch; the same as `start` if there is nothing new."""
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
        if self._commits is None:
            self._manifest.scan(self._root)
            return
        self._manifest.add(self._commits.new())
        position = self._commits.position(len(self._manifest.entries))
        if position is not None and position != self._position:
            self._position = position
            write_position(self._position_file, position)

    def _within(self, start: dict[str, int], end: int, max_bytes: int) -> dict[str, int]:
        """The offset behind as many of the files up to `end` as weigh `max_bytes`, and at least one."""
        first, read = start["entries"], 0
        for index, name in enumerate(self._manifest.entries[first:end], first):
            weight = self._weight(name)
            if read and read + weight > max_bytes:
                end = index
                break
            read += weight
        return {"entries": end, READ_BYTES: start.get(READ_BYTES, 0) + read}

    def _weight(self, name: str) -> int:
        """The bytes of a file, as text; opening it counts too. Of the marker of the end 0."""
        if name == FINISH:
            return 0
        name = name if self._commits is None else file_of(name).path
        path = self._root / name if self._root.is_dir() else self._root
        try:
            size = os.stat(path).st_size
        except OSError:  # the intake says so of it
            size = 0
        return _OPENING + (_UNPACKED * size if name.endswith(_PACKED) else size)

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        """Deal the files out to the tasks by their weight, to each those that follow each other.

        So may their events, which then need no sorting.
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
        """The names as JSON, for one need not be UTF-8; the intake reads the files themselves."""
        assert isinstance(partition, FileNamesPartition)
        return ((entry, json.dumps(name)) for entry, name in enumerate(partition.names, partition.first))
