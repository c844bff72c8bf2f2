"""The manifest of a folder of files: which files were seen, in the order in which they are read.

It is a file with a line of JSON for each name, append-only, and synced to disk before an offset may refer to
it. An offset is a number of lines, so a batch that runs again has the same files.

A line is ``["name", "checksum"]``; the checksum covers this name and all before it. In checkpoints of format
version 2 a line is the name alone; the checksums of later lines then cover it.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

from spark_pace.errors import StateError
from spark_pace.spark.checkpoint.durable import RESTORE, digest

FINISH = ""  # no file has this name
# a folder that changed less than this before it was listed may have changed again, unseen
_SETTLED_NS = 2_000_000_000
_LISTED_ANYWAY_S = 60  # some mounted stores do not keep the time at which a folder changed
# a folder that fails like this has no files; other errors end the query
_NOT_FOR_US = (FileNotFoundError, NotADirectoryError, PermissionError)


class Manifest:
    """The files seen so far, in the order in which they are read; `FINISH` marks the end of the input."""

    def __init__(self, path: Path) -> None:
        """Read the manifest at `path`, and write nothing; a line that a crash cut short does not count.

        Raises:
            StateError: a line is damaged.
        """
        self._path = path
        content = path.read_bytes() if path.exists() else b""
        whole = content[: content.rfind(b"\n") + 1]  # no offset can refer to a line without its end
        self._cut_at = len(whole) if whole != content else None
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
        """The end of the batch that starts at `start`.

        It has at most `max_files` files (None: all), and ends with the next `FINISH`, which does not count as
        a file.
        """
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
        if self._cut_at is not None:
            os.truncate(self._path, self._cut_at)
            self._cut_at = None
        with open(self._path, "ab") as file:
            file.write("".join(lines).encode())
            file.flush()
            os.fsync(file.fileno())
        self.entries += names
        self._known.update(names)
        self._checksum = checksum


def _entry(path: Path, number: int, line: bytes, before: str) -> tuple[str, str]:
    """The name in a line, and the checksum of all names up to it; `before`: that of the names before it."""
    try:
        entry = json.loads(line)
    except ValueError:
        entry = None
    name, kept = entry if isinstance(entry, list) and len(entry) == 2 else (entry, None)
    if not isinstance(name, str):
        must, got = "must be the name of a file, in quotes, with a checksum", repr(line[:40])
        raise StateError(f"{path}:{number} — {must}; got {got}. {RESTORE}")
    checksum = digest(_bytes(name), before)
    if kept not in (None, checksum):
        must = "must have the checksum of the names up to it"
        raise StateError(f"{path}:{number} — {must}; got other names. {RESTORE}")
    return name, checksum


def _bytes(name: str) -> bytes:
    return f"{name}\n".encode("utf-8", "surrogatepass")


class Listing:
    """Lists the files below a folder, but skips folders in which nothing can have changed."""

    def __init__(self) -> None:
        """Nothing is listed yet."""
        self._listed: dict[str, tuple[int, list[str]]] = {}  # folder: when it last changed, the folders in it
        self._all_listed_s = -float("inf")

    def changed(self, root: Path) -> Iterator[str]:
        """The names relative to `root`: at first and every minute all, else those in changed folders."""
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
    """The folders and files in `root`/`below`, relative to `root`; hides names with a dot or _ in front."""
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
    """Refuse a manifest that has lost entries, or has the end of the input although there are new files.

    Files of lost entries would be read again, or never; files behind the end would be late. Writes nothing.

    Args:
        path: the manifest.
        root: the folder of the files.
        read: the number of entries that the checkpoint's offsets refer to.

    Raises:
        StateError: the manifest is so, or a line of it is damaged.
    """
    manifest = Manifest(path)
    known = len(manifest.entries)
    if known < read:
        raise StateError(f"{path} — must know the {read} files that were read; got {known}. {RESTORE}")
    if FINISH in manifest.entries and (new := sorted(set(Listing().changed(root)) - set(manifest.entries))):
        must = "must not go on after its end, which an earlier run with finish: true has marked"
        do = "Start a new checkpoint with a sink of its own, and use finish: false where more may come."
        raise StateError(f"{root} — {must}; got {len(new)} new files, first {new[0]}. {do}")
