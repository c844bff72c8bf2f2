"""The manifest of a job that reads files: the files seen so far, in the order in which they are read.

It is a file with a line of JSON for each name. Lines are only added, and synced to disk before an offset
refers to them. An offset is a number of lines, so a batch that runs again reads the same files. A line is
``["name", "checksum"]``; the checksum covers the checkpoint's id, this name and all before it. Where a job
has a clock, its ticks stand among the names.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from spark_pace.errors import StateError, counted
from spark_pace.io.files import files
from spark_pace.io.files.addresses import AnyPath
from spark_pace.io.files.contract import Listing
from spark_pace.io.files.files import RESTORE, digest

FINISH = ""  # no file has this name
_TICK = "\0"  # begins the entry of a tick; no name of a file has this character


def tick_of(entry: str) -> int | None:
    """The time of an entry that is a tick of the clock, in microseconds since 1970; None if it is not."""
    return int(entry.removeprefix(_TICK)) if entry.startswith(_TICK) else None


class Manifest:
    """The files seen so far, in the order in which they are read; `FINISH` marks the end of the input."""

    def __init__(self, path: AnyPath, checkpoint_id: str = "") -> None:
        """Read the manifest at `path`, without a last line that a crash has cut short; write nothing.

        Raises:
            StateError: a line is damaged.
        """
        self._path = path
        content = files.read_appended(path) or b""
        whole = content[: content.rfind(b"\n") + 1]  # no offset can refer to a line without its end
        self._length, self._is_cut = len(whole), whole != content
        self.entries: list[str] = []
        self._checksum = digest(checkpoint_id.encode())
        for number, line in enumerate(whole.splitlines(), 1):
            name, self._checksum = _entry(path, number, line, self._checksum)
            self.entries.append(name)
        self._known = {entry for entry in self.entries if tick_of(entry) is None}
        self._greatest = max(self._known, default="")
        ticks = map(tick_of, reversed(self.entries))
        self._last_tick_us = next((tick for tick in ticks if tick is not None), None)

    def scan(self, source: Listing) -> None:
        """Add the files of a source that are not in it yet, in name order."""
        self._append(sorted(set(source.look(self._greatest)) - self._known))

    def add(self, names: Iterable[str]) -> None:
        """Add those names that are not in it yet, in their order."""
        self._append([name for name in names if name not in self._known])

    def tick(self, time_us: int) -> None:
        """Add a tick of the clock, unless one that is no earlier is there."""
        if self._last_tick_us is None or time_us > self._last_tick_us:
            self._append([f"{_TICK}{time_us}"], known=False)
            self._last_tick_us = time_us

    def finish(self) -> None:
        """Add the mark for the end of the input, unless it is the last entry."""
        if not self.entries or self.entries[-1] != FINISH:
            self._append([FINISH])

    def next_index(self, start: int, max_files: int | None) -> int:
        """The end of the batch that starts at `start`.

        It has at most `max_files` files (None: all), and ends at the next `FINISH`. Neither that nor a tick
        counts as a file.
        """
        files = 0
        for index, entry in enumerate(self.entries[start:], start):
            if entry == FINISH:
                return index + 1
            files += tick_of(entry) is None
            if max_files is not None and files > max_files:
                return index
        return len(self.entries)

    def _append(self, names: list[str], known: bool = True) -> None:
        if not names:
            return
        checksum, lines = self._checksum, []
        for name in names:
            checksum = digest(_bytes(name), checksum)
            lines.append(json.dumps([name, checksum]) + "\n")
        content = "".join(lines).encode()
        files.append(self._path, content, self._length, self._is_cut)
        self._length, self._is_cut = self._length + len(content), False
        self.entries += names
        if known:
            self._known.update(names)
            self._greatest = max(self._greatest, *names)
        self._checksum = checksum


def _entry(path: AnyPath, number: int, line: bytes, before: str) -> tuple[str, str]:
    """The name in a line, and the checksum of all names up to it; `before` is that of the names before."""
    try:
        entry = json.loads(line)
    except ValueError:
        entry = None
    name, kept = entry if isinstance(entry, list) and len(entry) == 2 else (None, None)
    if not isinstance(name, str):
        must, got = "must be the name of a file, in quotes, with a checksum", repr(line[:40])
        raise StateError(f"{path}:{number} — {must}; got {got}. {RESTORE}")
    checksum = digest(_bytes(name), before)
    if kept != checksum:
        must = "must have the checksum of the names up to it"
        raise StateError(f"{path}:{number} — {must}; got other names. {RESTORE}")
    return name, checksum


def _bytes(name: str) -> bytes:
    return f"{name}\n".encode("utf-8", "surrogatepass")


def require_readable(path: AnyPath, source: AnyPath, read: int = 0, checkpoint_id: str = "") -> None:
    """Refuse a manifest that has lost entries, or is ended although there are new files. Writes nothing.

    Files of lost entries would be read again or never; files after the end would be late.

    Args:
        path: the manifest.
        source: where the files are.
        read: the number of entries that the checkpoint's offsets refer to.
        checkpoint_id: the id of the checkpoint.

    Raises:
        StateError: the manifest is refused, or a line of it is damaged.
    """
    manifest = require_known(path, read, checkpoint_id)
    if FINISH in manifest.entries:
        require_ended(manifest, str(source), files.listing(source).look(""))


def require_known(path: AnyPath, read: int, checkpoint_id: str) -> Manifest:
    """Read the manifest at `path` of a checkpoint, which must have at least `read` entries.

    Raises:
        StateError: it has fewer, or a line of it is damaged.
    """
    manifest = Manifest(path, checkpoint_id)
    known = len(manifest.entries)
    if known < read:
        raise StateError(f"{path} — must know of {counted(read, 'file')} read; got {known}. {RESTORE}")
    return manifest


def require_ended(manifest: Manifest, place: str, names: Iterable[str]) -> None:
    """Refuse names that an ended manifest does not have.

    Raises:
        StateError: there are such names.
    """
    if new := sorted(set(names) - set(manifest.entries)):
        must = "must not go on after its end, which an earlier run with finish: true has marked"
        do = "Start a new checkpoint with a sink of its own, and use finish: false where more may come."
        raise StateError(f"{place} — {must}; got {counted(len(new), 'new file')}, first {new[0]}. {do}")
