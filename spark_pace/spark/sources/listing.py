"""Lists the files below a folder of events. Spark's process for sources runs this, so it imports little."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

# a folder that changed less than this before it was listed may have changed again without a new time
_SETTLED_NS = 2_000_000_000
_LISTED_ANYWAY_S = 60  # some mounted stores do not record when a folder changed
# with these errors a folder counts as empty; others end the query
_NOT_FOR_US = (FileNotFoundError, NotADirectoryError, PermissionError)


class Listing:
    """Lists the files below a folder, and skips folders that have not changed since they were listed."""

    def __init__(self) -> None:
        """Start with nothing listed."""
        self._listed: dict[str, tuple[int, list[str]]] = {}  # folder: (last change in ns, folders in it)
        self._all_listed_s = -float("inf")

    def changed(self, root: Path) -> Iterator[str]:
        """Yield names of files, relative to `root`: every minute all, else those in changed folders."""
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
    """The folders and files in `root`/`below`, relative to `root`, without names that begin with . or _."""
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
    except OSError:  # a link that leads nowhere or in a circle; the intake reports it
        return False
