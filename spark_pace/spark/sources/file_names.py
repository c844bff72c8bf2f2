"""The streaming source `spark_pace_files`: names of files in order, and a marker of the end of the input.

Spark's own file source orders by modification time, skips files older than `maxFileAge` without a word, and
cannot say that the input has ended. This one takes names in their order from a manifest. A file is read once:
write it under a name that starts with a dot, then rename it.

Spark runs this in Python workers, so it imports little: neither pyarrow nor the core.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxFiles,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from spark_pace.spark.sources.manifest import Manifest

FILE_NAMES = "spark_pace_files"


class FileNames(DataSource):
    """Rows with the column `name`, in JSON; the marker of the end is the name ``""``."""

    @classmethod
    def name(cls) -> str:
        """The name that `readStream.format` takes."""
        return FILE_NAMES

    def schema(self) -> str:
        """The column of a row."""
        return "name string"

    def streamReader(self, schema: StructType) -> FileNamesReader:
        """The reader that Spark keeps for the query."""
        return FileNamesReader(dict(self.options))


@dataclass
class FileNamesPartition(InputPartition):
    """The files of one task."""

    names: list[str]


class FileNamesReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Turns the manifest into batches. Its offset is ``{"entries": n}``, a number of entries of the manifest.

    Options: `root`, `manifest` (paths), `tasks` (the most tasks of a batch), `finish` (``true``: mark the end
    of an available-now run), `max_files` (the most files of a batch; absent: all).
    """

    def __init__(self, options: dict[str, str]) -> None:
        """Open the manifest that the options name."""
        self._root = Path(options["root"])
        self._manifest = Manifest(Path(options["manifest"]))
        self._tasks = int(options["tasks"])
        self._finish = options.get("finish") == "true"
        self._max_files = int(options["max_files"]) if "max_files" in options else None
        self._frozen = False

    def prepareForTriggerAvailableNow(self) -> None:
        """Take the files that are there now, and no more in this run."""
        self._manifest.scan(self._root)
        if self._finish:
            self._manifest.finish()
        self._frozen = True

    def initialOffset(self) -> dict[str, int]:
        """Nothing was read."""
        return {"entries": 0}

    def getDefaultReadLimit(self) -> ReadLimit:
        """At most `max_files` a batch."""
        return ReadAllAvailable() if self._max_files is None else ReadMaxFiles(self._max_files)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        """The end of the next batch; the same as `start` if there is nothing new."""
        if not self._frozen:
            self._manifest.scan(self._root)
        max_files = limit.max_files if isinstance(limit, ReadMaxFiles) else None
        return {"entries": self._manifest.next_index(start["entries"], max_files)}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        """Deal the files out to the tasks."""
        names = self._manifest.entries[start["entries"] : end["entries"]]
        tasks = min(self._tasks, len(names))
        return [FileNamesPartition(names[task::tasks]) for task in range(tasks)]

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        """The names as JSON, for one need not be UTF-8; the intake reads the files themselves."""
        assert isinstance(partition, FileNamesPartition)
        return ((json.dumps(name),) for name in partition.names)
