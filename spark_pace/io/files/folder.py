"""The files below a folder of this machine, or one file of it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

from spark_pace.io.files.place import LOOKED_AT_ALL_S, Opened
from spark_pace.io.files.regular_file import Objection, RegularFile, opened

# a folder that changed less than this before it was listed may have changed again without a new time
_SETTLED_NS = 2_000_000_000
# with these errors a folder counts as empty; others end the query
_NOT_FOR_US = (FileNotFoundError, NotADirectoryError, PermissionError, Objection)


class Folder:
    """Implements `Place` for a folder of files, or for one file.

    A look skips folders that have not changed since they were listed; some mounted stores do not record when
    a folder changed.
    """

    def __init__(self, root: str | Path) -> None:
        """Start with nothing listed below `root`."""
        self._root = Path(root)
        self._listed: dict[str, tuple[int, list[str]]] = {}  # folder: (last change in ns, folders in it)
        self._all_listed_s = -float("inf")

    def __str__(self) -> str:
        """Its path."""
        return str(self._root)

    def require(self) -> None:
        """Nothing: whether it is there was looked at before Spark was started."""

    def look(self, greatest: str) -> Iterator[str]:
        """Yield names of files: every minute all, else those in changed folders."""
        if time.monotonic() - self._all_listed_s >= LOOKED_AT_ALL_S:
            self._listed.clear()
            self._all_listed_s = time.monotonic()
        if self._root.is_file():
            yield self._root.name
            return
        folders = [""]
        while folders:
            below = folders.pop()
            changed_ns, inside = self._listed.get(below, (-1, []))
            now_ns = time.time_ns()
            if (latest_ns := _changed_ns(self._root / below)) != changed_ns:
                inside, names = _listed(self._root, below)
                yield from names
                settled = latest_ns < now_ns - _SETTLED_NS
                self._listed[below] = (latest_ns if settled else -1, inside)
            folders += inside

    def size(self, name: str) -> int:
        """The bytes of a file; 0 if it cannot be asked: the intake reports that."""
        try:
            return os.stat(self.shown(name)).st_size
        except OSError:
            return 0

    def shown(self, name: str) -> str:
        """The path of a file."""
        root = str(self._root)
        return os.path.join(root, name) if os.path.isdir(root) else root

    def open(self, name: str) -> Opened:
        """Open a file, and name it to pyarrow, which reads faster what it has opened itself."""
        root, path = str(self._root), self.shown(name)
        file = RegularFile(path, None if path == root else root)
        stat = os.fstat(file.fileno())
        return Opened(file.again, stat.st_size, stat.st_mtime_ns, file)


def _changed_ns(folder: Path) -> int:
    try:
        return folder.stat().st_mtime_ns
    except _NOT_FOR_US:
        return 0


def _listed(root: Path, below: str) -> tuple[list[str], list[str]]:
    """The folders and files in `root`/`below`, relative to `root`, without names that begin with . or _."""
    folders: list[str] = []
    names: list[str] = []
    try:
        listed = opened(str(root / below), os.O_RDONLY | os.O_DIRECTORY, str(root) if below else None)
    except _NOT_FOR_US:
        return [], []
    try:
        with os.scandir(listed) as entries:
            for entry in entries:
                if entry.name[0] in "._":
                    continue
                if _is_folder(entry, follow=False):
                    folders.append(f"{below}{entry.name}/")
                elif not _is_folder(entry, follow=True):  # a link to a folder is not followed
                    names.append(below + entry.name)
    finally:
        os.close(listed)
    return folders, names


def _is_folder(entry: os.DirEntry[str], follow: bool) -> bool:
    try:
        return entry.is_dir(follow_symlinks=follow)
    except OSError:  # a link that leads nowhere or in a circle; the intake reports it
        return False
