"""A streaming source of file paths: in name order, with a marker for the end of a bounded input.

Spark's own file source orders by modification time, skips files older than `maxFileAge` without a word, and cannot
say that the input has ended. This one writes what it has seen into a *manifest* (a line of JSON per file, append-only,
synced to disk before an offset may refer to it); an offset is a number of manifest lines, so a batch that runs
again has the same files. A file is read once: write it under a name that starts with a dot, then rename it.

A line is ``["name", "checksum"]``: the checksum is of this name and all before it. Checkpoints of format version 2 have
lines of the name alone, which the checksums of later lines then cover.
"""

from __future__ import annotations

import json
import os
import time
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

from spark_pace.errors import StateError
from spark_pace.spark.checkpoint.durable import RESTORE, digest

SOURCE_NAME = "spark_pace_files"
FINISH = ""  # no file has this name
_SETTLED_NS = (
    2_000_000_000  # a folder that changed less than this before it was listed may have changed since, unseen
)
_NOT_FOR_US = (
    FileNotFoundError,
    NotADirectoryError,
    PermissionError,
)  # of a folder: it has no files; other errors end the query
_LISTED_ANYWAY_S = 60  # some mounted stores do not keep the time at which a folder changed


class Manifest:
    """The files seen so far, in the order they are read; `FINISH` marks the end of a bounded input."""

    def __init__(self, path: Path) -> None:
        """Open the manifest at `path`; a line that a crash cut short is dropped (no offset can refer to it)."""
        self._path = path
        content = path.read_bytes() if path.exists() else b""
        whole = content[: content.rfind(b"\n") + 1]
        if whole != content:
            os.truncate(path, len(whole))
        self.entries: list[str] = []
        self._checksum = "0"
        for number, line in enumerate(whole.splitlines(), 1):
            name, self._checksum = _entry(path, number, line, self._checksum)
            self.entries.append(name)
        self._known = set(self.entries)
        self._listing = Listing()

    def scan(self, root: Path) -> None:
        """Add the files below `root` that are not in it yet, in name order."""
        self._append(sorted(set(self._listing.changed(root)) - self._known))

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
        checksum, lines = self._checksum, []
        for name in names:
            checksum = digest(_bytes(name), checksum)
            lines.append(json.dumps([name, checksum]) + "\n")
        with open(self._path, "ab") as file:
            file.write("".join(lines).encode())
            file.flush()
            os.fsync(file.fileno())
        self.entries += names
        self._known.update(names)
        self._checksum = checksum


def _entry(path: Path, number: int, line: bytes, before: str) -> tuple[str, str]:
    """The name in a line, and the checksum of all names up to it."""
    try:
        entry = json.loads(line)
    except ValueError:
        entry = None
    name, kept = entry if isinstance(entry, list) and len(entry) == 2 else (entry, None)
    if not isinstance(name, str):
        got = repr(line[:40])
        raise StateError(
            f"{path}:{number} — must be the name of a file, in quotes, with a checksum; got {got}. {RESTORE}"
        )
    checksum = digest(_bytes(name), before)
    if kept not in (None, checksum):
        raise StateError(
            f"{path}:{number} — must have the checksum of the names up to it; got other names. {RESTORE}"
        )
    return name, checksum


def _bytes(name: str) -> bytes:
    return f"{name}\n".encode("utf-8", "surrogatepass")


class Listing:
    """The names of files below a folder, without those of folders in which nothing can have changed."""

    def __init__(self) -> None:
        """Nothing is listed yet."""
        self._listed: dict[str, tuple[int, list[str]]] = {}  # folder: when it had changed, the folders in it
        self._all_listed_s = -float("inf")

    def changed(self, root: Path) -> Iterator[str]:
        """All names relative to `root` at first, then those in folders that have changed; every minute all again."""
        if time.monotonic() - self._all_listed_s >= _LISTED_ANYWAY_S:
            self._listed.clear()
            self._all_listed_s = time.monotonic()
        if root.is_file():
            yield root.name
            return
        folders = [""]
        while folders:
            below = folders.pop()
            changed_ns, inside = self._listed.get(below, (-1, []))
            now_ns = time.time_ns()
            if (latest_ns := _changed_ns(root / below)) != changed_ns:
                inside, names = _listed(root, below)
                yield from names
                settled = latest_ns < now_ns - _SETTLED_NS
                self._listed[below] = (latest_ns if settled else -1, inside)
            folders += inside


def _changed_ns(folder: Path) -> int:
    try:
        return folder.stat().st_mtime_ns
    except _NOT_FOR_US:
        return 0


def _listed(root: Path, below: str) -> tuple[list[str], list[str]]:
    """Folders and files in a folder, relative to `root`; those that start with a dot or underscore are hidden."""
    folders: list[str] = []
    names: list[str] = []
    try:
        with os.scandir(root / below) as entries:
            for entry in entries:
                if entry.name[0] in "._":
                    continue
                if _is_folder(entry, follow=False):
                    folders.append(f"{below}{entry.name}/")
                elif not _is_folder(entry, follow=True):  # a link to a folder is not followed
                    names.append(below + entry.name)
    except _NOT_FOR_US:
        return [], []
    return folders, names


def _is_folder(entry: os.DirEntry[str], follow: bool) -> bool:
    try:
        return entry.is_dir(follow_symlinks=follow)
    except OSError:  # a link that leads nowhere, or in a circle: the intake says so of it
        return False


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
    if FINISH in manifest.entries and (new := sorted(set(Listing().changed(root)) - set(manifest.entries))):
        raise StateError(
            f"{root} — must not go on after its end, which an earlier run with finish: true has marked; got {len(new)} new files, first {new[0]}. "
            "Start a new checkpoint with a sink of its own, and use finish: false where more may come."
        )


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
