"""What is new in a Delta table to which rows are only appended: entries of the manifest, in commit order.

Spark's process for sources runs this, so it imports little.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from spark_pace.errors import StateError, counted
from spark_pace.io.delta_log import Commit, DeltaLog, TableFile
from spark_pace.io.files.addresses import AnyPath
from spark_pace.io.files.contract import Stat
from spark_pace.io.files.files import read_json, write_json
from spark_pace.spark.sources.manifest import FINISH, tick_of

_FRESH = "Start a new checkpoint with a sink of its own"


def entry_of(place: str, file: TableFile) -> str:
    """The entry of a file; `place`: of its version, and of the file where all have one version."""
    partition = dict(sorted(file.partition.items()))
    return json.dumps([place, file.version, file.path, partition])


def file_of(entry: str) -> TableFile:
    """The file that an entry names."""
    _, version, path, partition = json.loads(entry)
    return TableFile(version, path, partition)


@dataclass(frozen=True)
class LogPosition:
    """How far a log was read: the manifest has all files that the commits before `following` have added.

    The manifest alone does not say that. A crash may have cut off the last entries of a commit, and a commit
    that adds no file has no entry.

    Attributes:
        entries: the number of entries of the manifest. A manifest with fewer is older than this position.
        following: the first commit that was not read.
        stamp: the stamp of the commit before it.
    """

    entries: int
    following: int
    stamp: Stat | None


def read_position(path: AnyPath, checkpoint_id: str) -> LogPosition | None:
    """Return the position that a checkpoint has stored; None if it has none.

    Raises:
        StateError: the file is damaged.
    """
    stored = read_json(path, checkpoint_id)
    if stored is None:
        return None
    stamp = stored["stamp"]
    return LogPosition(stored["entries"], stored["following"], None if stamp is None else Stat(*stamp))


def write_position(path: AnyPath, position: LogPosition, checkpoint_id: str) -> None:
    """Store a position. The manifest must have its entries before that."""
    write_json(path, vars(position), checkpoint_id)


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
        position: LogPosition | None = None,
    ) -> None:
        """Go on behind what is known.

        Args:
            folder: of the table.
            table_id: its id.
            from_version: the first commit; None: all rows that the table has at the first look.
            entries: of the manifest; the last batch that was planned has read some of them.
            position: how far the log was read for these entries; None if that is not known.
        """
        self._log = DeltaLog(folder)
        self._table_id = table_id
        self._from = from_version
        self._next: int | None = _behind(entries)
        self._last: Stat | None = None  # of the commit that was read last
        if position and position.entries <= len(entries) and position.following >= (self._next or 0):
            self._next, self._last = position.following, position.stamp
        self._looked_ns = -1

    def position(self, entries: int) -> LogPosition | None:
        """Return how far the log was read, for a manifest with so many entries; None before any look."""
        return None if self._next is None else LogPosition(entries, self._next, self._last)

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
