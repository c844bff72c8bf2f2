"""Reads the log of a Delta table: what each commit has added, and which files the table has now.

Nothing of a table is read here that could be misread: what changes the rows of a file without changing the
file (deletion vectors), or the names of its columns (column mapping), is refused, and so is each feature that
this module does not know. Spark's process for sources runs this, so it imports little.

A checkpoint replaces the commits before it. One of version 1 is one Parquet file or several. One of version 2
is one file of Parquet or JSON, with a unique name or with the name of version 1; its actions about files may
be in other files, the sidecars.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any
from urllib.parse import unquote

from spark_pace.errors import StateError
from spark_pace.io.files import files
from spark_pace.io.files.addresses import AnyPath
from spark_pace.io.files.contract import Stat

LOG = "_delta_log"
SIDECARS = f"{LOG}/_sidecars"
_OF_FILES = ("add", "remove")  # only these are in sidecars
_NAME = re.compile(
    r"(\d{20})\.checkpoint(?:\.parquet|\.\d{10}\.(\d{10})\.parquet|\.[\da-f-]{36}\.(?:parquet|json))"
)


def last_checkpoint(names: Iterable[str]) -> tuple[int, list[str]] | None:
    """The last checkpoint in a log that has all its parts; None if there is none.

    Args:
        names: of the files in the log.

    Returns:
        The last commit that it replaces, and the names of its files, without the sidecars.
    """
    found: dict[tuple[int, str], list[str]] = {}
    for match in filter(None, map(_NAME.fullmatch, sorted(names))):
        found.setdefault((int(match[1]), match[2] or match[0]), []).append(match[0])
    whole = [
        (version, files)
        for (version, parts), files in found.items()
        if not parts.isdigit() or len(files) == int(parts)
    ]
    return max(whole, default=None)


def stored_actions(table: AnyPath, names: Iterable[str], kinds: Collection[str]) -> Iterator[dict[str, Any]]:
    """Yield the actions of a checkpoint that are of these kinds, in the form that they have in a commit.

    Args:
        table: the folder of the table.
        names: the names of the checkpoint's files.
        kinds: the kinds of actions.

    Raises:
        OSError: a file is missing.
        ValueError: a file is damaged, or a sidecar is in another folder.
    """
    sidecars = {unquote(action["sidecar"]["path"]) for action in _actions(table / LOG, names, ["sidecar"])}
    yield from _actions(table / LOG, names, kinds)
    if any("/" in name for name in sidecars):
        raise ValueError(f"a part of a checkpoint in another folder, {min(sidecars)}")
    if not {*kinds}.isdisjoint(_OF_FILES):
        yield from _actions(table / SIDECARS, sorted(sidecars), kinds)


def _actions(folder: AnyPath, names: Iterable[str], kinds: Collection[str]) -> Iterator[dict[str, Any]]:
    import pyarrow.parquet as pq  # Spark's process for sources imports this module, and mostly reads commits

    for name in names:
        if name.endswith(".json"):
            yield from (one for one in _of_lines(folder / name) if not one.keys().isdisjoint(kinds))
            continue
        with pq.ParquetFile(files.open_file(folder / name)) as file:
            rows = file.read(columns=[kind for kind in kinds if kind in file.schema_arrow.names])
        for kind in rows.column_names:
            yield from ({kind: told} for told in rows[kind].drop_null().to_pylist())


def _of_lines(path: AnyPath) -> Iterator[dict[str, Any]]:
    """The actions in a file of JSON."""
    return (json.loads(line) for line in files.content_of(path).decode().split("\n") if line)


_COMMIT = re.compile(r"(\d{20})\.json")
# of tables that tell their readers to know features by name; some matter only where they are used
_KNOWN_FEATURES = {"columnMapping", "deletionVectors", "timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"}
_ANOTHER = "Read another table, or write this one without it."


@dataclass(frozen=True)
class TableFile:
    """A file of a table.

    Attributes:
        version: the commit that has added it; of a file that was joined from others, the first of theirs.
            Where the log begins with a checkpoint, that of the checkpoint for all that is in it.
        path: below the table's folder.
        partition: the values of the table's partition columns, as text; None for null.
        added_ms: when it was written, milliseconds since 1970.
    """

    version: int
    path: str
    partition: dict[str, str | None] = field(default_factory=dict)
    added_ms: int = 0

    @property
    def place(self) -> tuple[int, int, str]:
        """By which files are read, whether a commit names them or the checkpoint that has taken its place."""
        return self.version, self.added_ms, self.path


@dataclass(frozen=True)
class Metadata:
    """What a table says of itself.

    Attributes:
        table_id: its id, which a table that is made anew does not have.
        schema: the columns, as JSON.
    """

    table_id: str
    schema: str


@dataclass(frozen=True)
class Commit:
    """What one commit does to the rows of a table.

    Attributes:
        version: its number.
        added: the files that have new rows, in the order of their places.
        joined: the files that have rows of others, which they take the place of.
        removed: the paths of the files that are gone with their rows.
        replaced: the paths of those whose rows are in `joined`.
        metadata: what the table says of itself from now on; None: what it said before.
        operation: the writer's word for it.
    """

    version: int
    added: tuple[TableFile, ...]
    joined: tuple[TableFile, ...]
    removed: tuple[str, ...]
    replaced: tuple[str, ...]
    metadata: Metadata | None
    operation: str


class DeltaLog:
    """The log of a table in a folder of this machine, or in a store."""

    def __init__(self, folder: AnyPath) -> None:
        """Read nothing yet."""
        self.folder = folder

    def versions(self) -> list[int]:
        """The commits that the log still has, in order.

        Raises:
            StateError: there is no log.
        """
        names = map(_COMMIT.fullmatch, self._names())
        return sorted(int(name[1]) for name in names if name)

    def has(self, version: int) -> bool:
        """Tell whether the log has a commit."""
        return self.stamp(version) is not None

    def stamp(self, version: int) -> Stat | None:
        """By what the commit that now has a number is known again; None if there is none."""
        return files.stat(self.folder / _file(version))

    def changed_ns(self) -> int:
        """Another number than before if a commit may have come to the log, or gone, since then.

        Raises:
            StateError: there is no log.
        """
        try:
            return files.changed(self.folder / LOG)
        except OSError as error:
            raise self._gone(error) from error

    def commit(self, version: int) -> Commit:
        """What a commit does.

        Raises:
            StateError: it cannot be read, or makes the table one that cannot be.
        """
        return self._read(version, lambda: _of_lines(self.folder / _file(version)))

    def metadata(self) -> Metadata:
        """What the table says of itself now.

        Raises:
            StateError: the log cannot be read.
        """
        found = self._checkpoint(("protocol", "metaData"))
        told = [commit.metadata for commit in (found, *self._since(found.version)) if commit.metadata]
        if not told:
            must, got = "must say what it is", "no metaData in its log"
            raise self.refusal(found.version, must, got, "Restore the table.")
        return told[-1]

    def files(self, until: int) -> list[TableFile]:
        """The files that the table has after the commit `until`, in the order in which they were added.

        Raises:
            StateError: the log cannot be read, or no longer goes back to a checkpoint.
        """
        found = _NOTHING if self.has(0) else self._checkpoint(("protocol", "metaData", "add"))
        there = {file.path: file for file in (*found.added, *found.joined)}
        for commit in self._since(found.version, until):
            replaced = [there.pop(path) for path in commit.replaced if path in there]
            version = min((file.version for file in replaced), default=commit.version)
            for path in commit.removed:
                there.pop(path, None)
            there.update((file.path, file) for file in commit.added)
            there.update((file.path, replace(file, version=version)) for file in commit.joined)
        return sorted(there.values(), key=_PLACE)

    def refusal(self, version: int, must: str, got: str, do: str) -> StateError:
        """The error for a table that cannot be read from a version on."""
        return StateError(f"{self.folder}, version {version} — {must}; got {got}. {do}")

    def _names(self) -> list[str]:
        try:
            return files.entries(self.folder / LOG)
        except OSError as error:
            raise self._gone(error) from error

    def _gone(self, error: OSError) -> StateError:
        must, do = "must be a Delta table that is there as long as it is read", "Restore it."
        return StateError(f"{self.folder} — {must}; got: {error.strerror} ({LOG}). {do}")

    def _since(self, first: int, until: int | None = None) -> Iterator[Commit]:
        """The commits behind a checkpoint, -1 if there is none."""
        versions = [version for version in self.versions() if version > first]
        for number, version in enumerate(versions, first + 1):
            if number != version:
                raise self.missing(number)
            if until is None or version <= until:
                yield self.commit(version)

    def missing(self, version: int) -> StateError:
        """The error for a commit that is not there although there are later ones."""
        must, got = "must have the commits that were not read yet", "a log without it, which begins later"
        do = "Start a new checkpoint with a sink of its own."
        return self.refusal(version, must, got, do)

    def _checkpoint(self, columns: tuple[str, ...]) -> Commit:
        """The last checkpoint, as if one commit had done all that it says; else a commit of nothing."""
        found = last_checkpoint(self._names())
        if found is None:
            return _NOTHING
        version, names = found
        return self._read(version, lambda: stored_actions(self.folder, names, columns))

    def _read(self, version: int, actions: Callable[[], Iterable[dict[str, Any]]]) -> Commit:
        try:
            return self._commit(version, actions())
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            must, got = "must have a log that can be read", f"{type(error).__name__}: {error}"
            raise self.refusal(version, must, got, "Restore the table.") from error

    def _commit(self, version: int, actions: Iterable[dict[str, Any]]) -> Commit:
        by_kind: dict[str, list[dict[str, Any]]] = {}
        for action in actions:
            for kind, told in action.items():
                by_kind.setdefault(kind, []).append(told)
        for protocol in by_kind.get("protocol", []):
            self._require_known(version, protocol)
        metadata = [self._metadata(version, told) for told in by_kind.get("metaData", [])]
        adds, removes = by_kind.get("add", []), by_kind.get("remove", [])
        fresh, joined = ([add for add in adds if add["dataChange"] is new] for new in (True, False))
        told = by_kind.get("commitInfo", [{}])[0]
        return Commit(
            version,
            tuple(sorted((self._added(version, add) for add in fresh), key=_PLACE)),
            tuple(self._added(version, add) for add in joined),
            tuple(unquote(one["path"]) for one in removes if one.get("dataChange", True)),
            tuple(unquote(one["path"]) for one in removes if not one.get("dataChange", True)),
            metadata[-1] if metadata else None,
            str(told.get("operation", "a removal of rows")),
        )

    def _added(self, version: int, add: dict[str, Any]) -> TableFile:
        path = unquote(add["path"])
        if add.get("deletionVector"):
            raise self.refusal(version, "must have no deletion vectors", f"one for {path}", _ANOTHER)
        if "://" in path or os.path.isabs(path) or ".." in path.split("/"):
            must, do = "must have its files in its folder", "Copy the table whole."
            raise self.refusal(version, must, path, do)
        partition = add.get("partitionValues") or {}
        return TableFile(version, path, dict(partition), int(add.get("modificationTime") or 0))

    def _metadata(self, version: int, told: dict[str, Any]) -> Metadata:
        mode = dict(told.get("configuration") or {}).get("delta.columnMapping.mode") or "none"
        if mode != "none":
            must = "must have its columns under their own names"
            raise self.refusal(version, must, f"column mapping by {mode}", _ANOTHER)
        return Metadata(told["id"], told["schemaString"])

    def _require_known(self, version: int, protocol: dict[str, Any]) -> None:
        features = set(protocol.get("readerFeatures") or ()) - _KNOWN_FEATURES
        least = protocol["minReaderVersion"]
        if features or least > 3:
            got = f"{', '.join(sorted(features))}" if features else f"version {least} of the protocol"
            raise self.refusal(version, "must have no features that are not known here", got, _ANOTHER)


def _file(version: int) -> str:
    return f"{LOG}/{version:020d}.json"


_PLACE = attrgetter("place")
_NOTHING = Commit(-1, (), (), (), (), None, "")
