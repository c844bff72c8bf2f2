"""The manifest of a job that reads files: the files seen so far, in the order in which they are read.

It is a file with a line of JSON for each name. Lines are only added, and synced to disk before an offset
refers to them. An offset is a number of lines, so a batch that runs again reads the same files. A line is
``["name", "checksum"]``; the checksum covers the checkpoint's id, this name and all before it. Where a job
has a clock, its ticks stand among the names.

With a Delta table to which rows are only appended, `TableCommits` finds the entries, in commit order.

Spark's process for sources runs this, so it imports little.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from spark_pace.errors import StateError, counted
from spark_pace.io.delta_log import Commit, DeltaLog, TableFile
from spark_pace.io.files import files
from spark_pace.io.files.addresses import AnyPath
from spark_pace.io.files.contract import Listing, Stat
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
    name, kept, checksum = "", None, ""
    with suppress(ValueError, TypeError):  # else it is no pair
        name, kept = json.loads(line)
        checksum = digest(_bytes(name), before)
    if kept != checksum:
        must, got = "must be the name of a file with the checksum of the names up to it", repr(line[:40])
        raise StateError(f"{path}:{number} — {must}; got {got}. {RESTORE}")
    return name, checksum


def _bytes(name: str) -> bytes:
    return f"{name}\n".encode("utf-8", "surrogatepass")


def require_known(path: AnyPath, read: int, checkpoint_id: str) -> Manifest:
    """Read the manifest at `path` of a checkpoint, which must have at least `read` entries. Write nothing.

    Files of lost entries would be read again or never.

    Raises:
        StateError: it has fewer, or a line of it is damaged.
    """
    manifest = Manifest(path, checkpoint_id)
    known = len(manifest.entries)
    if known < read:
        raise StateError(f"{path} — must know of {counted(read, 'file')} read; got {known}. {RESTORE}")
    return manifest


def require_ended(manifest: Manifest, place: str, names: Iterable[str]) -> None:
    """Refuse names that a manifest does not have, if it has ended: files after the end would be late.

    Raises:
        StateError: there are such names.
    """
    if FINISH in manifest.entries and (new := sorted(set(names) - set(manifest.entries))):
        must = "must not go on after its end, which an earlier run with finish: true has marked"
        do = "Start a new checkpoint with a sink of its own, and use finish: false where more may come."
        raise StateError(f"{place} — {must}; got {counted(len(new), 'new file')}, first {new[0]}. {do}")


_FRESH = "Start a new checkpoint with a sink of its own"


def entry_of(place: str, file: TableFile) -> str:
    """The entry of a file; `place`: of its version, and of the file where all have one version."""
    partition = dict(sorted(file.partition.items()))
    return json.dumps([place, file.version, file.path, partition])


def file_of(entry: str) -> TableFile:
    """The file that an entry names."""
    _, version, path, partition = json.loads(entry)
    return TableFile(version, path, partition)


class TableCommits:
    """Follows the log of a table.

    The first look finds the files of the table as it is then, or those of the commit `from_version` and of
    later ones; each look finds those of the commits since.
    """

    def __init__(
        self,
        folder: AnyPath,
        table_id: str,
        from_version: int | None,
        entries: Sequence[str],
        position: Mapping[str, Any] | None = None,
    ) -> None:
        """Go on behind what is known.

        Args:
            folder: of the table.
            table_id: its id.
            from_version: the first commit; None: all rows that the table has at the first look.
            entries: of the manifest; the last batch that was planned has read some of them.
            position: what `position` told for these entries; None if that is not known.
        """
        self._log = DeltaLog(folder)
        self._table_id = table_id
        self._from = from_version
        self._next: int | None = _behind(entries)
        self._last: Stat | None = None  # of the commit that was read last
        if position and position["entries"] <= len(entries) and position["following"] >= (self._next or 0):
            self._next, stamp = position["following"], position["stamp"]
            self._last = stamp and Stat(*stamp)
        self._looked_ns = -1

    def position(self, entries: int) -> dict[str, Any] | None:
        """How far the log was read, as JSON has it; None before any look.

        The manifest alone does not say that. A crash may have cut off the last entries of a commit, and a
        commit that adds no file has no entry.

        Args:
            entries: the number of entries of the manifest. A manifest with fewer is older than the position.

        Returns:
            `entries`; the first commit that was not read, as `following`; the `stamp` of the one before it.
        """
        if self._next is None:
            return None
        return {"entries": entries, "following": self._next, "stamp": self._last and [*self._last]}

    def new(self) -> list[str]:
        """The entries that were not known at the last look.

        Raises:
            StateError: a commit does something else than append, or is gone; or this is another table.
        """
        if self._next is None and self._from is None:
            self._require_same()
            last = self._log.versions()[-1]
            self._next, self._last = last + 1, self._log.stamp(last)
            files = enumerate(self._log.files(last))
            return [entry_of(f"{last:020d}.{number:09d}", file) for number, file in files]
        self._next = self._from if self._next is None else self._next
        found: list[str] = []
        for commit in self._commits():
            found += (entry_of(f"{commit.version:020d}", file) for file in commit.added)
        return found

    def _commits(self) -> Iterator[Commit]:
        assert self._next is not None
        if self._log.has(self._next) and self._log.stamp(self._next - 1) != self._last:
            self._require_same()  # the commit before is another one than was read, or gone; or was not read
        while self._log.has(self._next):
            commit = self._log.commit(self._next)
            self._require_appending(commit)
            self._last = self._log.stamp(self._next)
            self._next += 1
            yield commit
        if (changed_ns := self._log.changed_ns()) != self._looked_ns:
            self._looked_ns = changed_ns
            self._require_next(self._log.versions())

    def _require_next(self, versions: Sequence[int]) -> None:
        """Refuse a log that will never have the next commit."""
        assert self._next is not None
        if versions and versions[-1] > self._next and not self._log.has(self._next):
            raise self._log.missing(self._next)
        if self._last is not None and versions and versions[-1] < self._next - 1:
            self._require_same()

    def _require_same(self) -> None:
        now = self._log.metadata().table_id
        if now != self._table_id:
            raise another_table(self._log, self._table_id, now)

    def _require_appending(self, commit: Commit) -> None:
        if commit.metadata is not None and commit.metadata.table_id != self._table_id:
            raise another_table(self._log, self._table_id, commit.metadata.table_id)
        if commit.removed:
            got = f"{commit.operation}, which takes {counted(len(commit.removed), 'file')} out of it"
            do = f"{_FRESH}; from_version: {commit.version + 1} goes on behind it."
            raise self._log.refusal(commit.version, "must only append to the table", got, do)


def another_table(log: DeltaLog, known: str, now: str) -> StateError:
    """The error for a table that was made anew where one was read."""
    must = "must be the table that the checkpoint has read"
    return StateError(f"{log.folder} — {must}, {known}; got another one, {now}. {_FRESH}.")


def _behind(entries: Sequence[str]) -> int | None:
    """The commit to go on with: that of the last entry once more, for a crash may have cut its entries off.

    The files that the table had at the first look are known as a whole, for a batch has begun with them.
    """
    known = [entry for entry in entries if entry != FINISH and tick_of(entry) is None]
    if not known:
        return None
    version, dot, _ = str(json.loads(known[-1])[0]).partition(".")
    return int(version) + bool(dot)
