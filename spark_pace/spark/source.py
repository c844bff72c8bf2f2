"""A streaming source of file paths: in name order, with a marker for the end of a bounded input.

Spark's own file source orders by modification time, skips files older than `maxFileAge` without a word, and cannot
say that the input has ended. This one writes what it has seen into a *manifest* (one JSON line per file, append-only,
synced to disk before an offset may refer to it); an offset is a number of manifest lines, so a batch that runs
again has the same files. A file is read once: write it under a name that starts with a dot, then rename it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxFiles, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from spark_pace.errors import StateError
from spark_pace.spark.durable import RESTORE

SOURCE_NAME = "spark_pace_files"
FINISH = ""  # no file has this name


class Manifest:
    """The files seen so far, in the order they are read; `FINISH` marks the end of a bounded input."""

    def __init__(self, path: Path) -> None:
        """Open the manifest at `path`; a line that a crash cut short is dropped (no offset can refer to it)."""
        self._path = path
        text = path.read_bytes() if path.exists() else b""
        whole = text[: text.rfind(b"\n") + 1]
        if whole != text:
            os.truncate(path, len(whole))
        self.entries = [_name(path, number, line) for number, line in enumerate(whole.splitlines(), 1)]
        self._known = set(self.entries)

    def scan(self, root: Path) -> None:
        """Add the files below `root` that are not in it yet, in name order."""
        self._append(sorted(name for name in _file_names(root) if name not in self._known))

    def finish(self) -> None:
        """Mark the end of the input, unless the last entry does."""
        if not self.entries or self.entries[-1] != FINISH:
            self._append([FINISH])

    def next_index(self, start: int, max_files: int | None) -> int:
        """The end of the batch that starts at `start`; it ends with the next `FINISH`, which is no file and so comes on top."""
        end = len(self.entries) if max_files is None else min(len(self.entries), start + max_files)
        ahead = self.entries[start : end + 1]
        return start + ahead.index(FINISH) + 1 if FINISH in ahead else end

    def _append(self, names: list[str]) -> None:
        if not names:
            return
        with open(self._path, "ab") as file:
            file.write("".join(json.dumps(name) + "\n" for name in names).encode())
            file.flush()
            os.fsync(file.fileno())
        self.entries += names
        self._known.update(names)


def _name(path: Path, number: int, line: bytes) -> str:
    try:
        name = json.loads(line)
    except ValueError:
        name = None
    if not isinstance(name, str):
        raise StateError(f"{path}:{number} — must be the name of a file, in quotes; got {line[:40]!r}. {RESTORE}")
    return name


def require_readable(path: Path, root: Path, read: int = 0) -> None:
    """Refuse a manifest that has lost entries, for what they stood for would be read again, or never; and one that has ended, for new files would be late.

    Args:
        path: of the manifest.
        root: the folder of the files.
        read: how many entries the checkpoint's offsets refer to.

    Raises:
        StateError: there are fewer entries; or files that the manifest does not know, and it says that the input has ended.
    """
    manifest = Manifest(path)
    known = len(manifest.entries)
    if known < read:
        raise StateError(f"{path} — must know the {read} files that were read; got {known}. {RESTORE}")
    new = sorted(set(_file_names(root)) - set(manifest.entries))
    if FINISH in manifest.entries and new:
        raise StateError(
            f"{root} — must not go on after its end, which an earlier run with finish: true has marked; got {len(new)} new files, first {new[0]}. "
            "Start a new checkpoint with a sink of its own, and use finish: false where more may come."
        )


def _file_names(root: Path) -> Iterator[str]:
    """The files below `root` (or `root` itself) relative to it; names that start with a dot or underscore are hidden."""
    if root.is_file():
        yield root.name
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if name[0] not in "._"]
        yield from (Path(folder, name).relative_to(root).as_posix() for name in files if name[0] not in "._")


class FilesSource(DataSource):
    """The source `spark_pace_files`: rows of `name`; the marker is a row with the name ``""``."""

    @classmethod
    def name(cls) -> str:
        """The name that `readStream.format` takes."""
        return SOURCE_NAME

    def schema(self) -> str:
        """One row per file."""
        return "name string"

    def streamReader(self, schema: StructType) -> FilesReader:
        """The reader that Spark keeps for the query."""
        return FilesReader(dict(self.options))


@dataclass
class FilesPartition(InputPartition):
    """The files of one task."""

    names: list[str]


class FilesReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Turns the manifest into batches.

    Options: `root`, `manifest` (paths), `tasks` (most tasks of a batch), `finish` (``true``: mark the end of an
    available-now run), `max_files` (most files of a batch; absent: all).
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
        """Take what is there now, and no more in this run."""
        self._manifest.scan(self._root)
        if self._finish:
            self._manifest.finish()
        self._frozen = True

    def initialOffset(self) -> dict[str, int]:
        """Nothing read."""
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
        """The files dealt out to the tasks."""
        names = self._manifest.entries[start["entries"] : end["entries"]]
        tasks = min(self._tasks, len(names))
        return [FilesPartition(names[task::tasks]) for task in range(tasks)]

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        """The names as JSON, for one need not be UTF-8; the files themselves are read by the intake."""
        assert isinstance(partition, FilesPartition)
        return ((json.dumps(name),) for name in partition.names)
