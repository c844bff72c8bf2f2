"""Whose the tables of a sink are, and whether they are whole and fit the job.

The owner of a sink is the checkpoint that wrote to it first, as long as its tables exist.

The first version of the table `_owner`, the mark, names the owner. Delta lets only one writer make a version,
even if several try at the same moment. So of two checkpoints that begin together, only one reads its own name
there. A job that has only made the tables does not own them: if it ends before its first batch, another job
may take them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder, Schema, write_deltalake
from deltalake.exceptions import DeltaError

from spark_pace.errors import StateError
from spark_pace.io.delta_log import DeltaLog
from spark_pace.io.files import files
from spark_pace.io.files.addresses import AnyPath, StorePath
from spark_pace.io.files.contract import Stat
from spark_pace.io.query import store_options, table_if_there, tables_in, told_by_store

NAME = "_owner"
_COLUMN = "checkpoint"
_RESTORE = "Restore it together with the checkpoint, or start with a new checkpoint and a sink of its own."
_DO = "Go on with that checkpoint, choose another sink, or remove the tables and the checkpoint together."


def foreign(where: str, got: str) -> StateError:
    """The error for a table or sink that belongs to another checkpoint."""
    return StateError(f"{where} — must be written by this checkpoint alone; got {got}. {_DO}")


@dataclass
class SinkOwner:
    """The ownership of the sink `root`, seen by the checkpoint `app_id`."""

    root: AnyPath
    app_id: str
    _is_claimed: bool = False
    _stamp: Stat | None = None  # of the first version of the mark, in a store

    def require_free(self) -> str | None:
        """The id of this checkpoint if it owns the sink; None if none does yet.

        Raises:
            StateError: another checkpoint owns it, or the mark is damaged.
        """
        try:
            owner = self._read()
        except (DeltaError, OSError, pa.ArrowException) as error:
            must, got = "must be a Delta table that can be read", " ".join(str(error).split()).rstrip(".")
            do = "Restore it, or remove it if no other checkpoint writes to this sink."
            raise StateError(f"{self._path} — {must}; got: {got}. {do}") from error
        if owner not in (None, self.app_id):
            raise foreign(str(self.root), f"the mark of another one, {NAME}")
        return owner

    def claim(self) -> None:
        """Make this checkpoint the owner if there is none yet.

        Each call looks at the mark, so a job notices if its tables were replaced by others; in a store that
        is one request while the mark stays as it is.

        Raises:
            StateError: another checkpoint was first, or the mark that this one wrote is gone.
        """
        if self._is_claimed and self._stamp is not None and self._stamp == self._stamped():
            return
        if self.require_free() is None:
            if self._is_claimed:
                must, do = "must stay as long as a job writes to it", "Start the job again."
                raise StateError(f"{self._path} — {must}; got no such table. {do}")
            self._mark()
        self._is_claimed, self._stamp = True, self._stamped()

    @property
    def _path(self) -> AnyPath:
        return self.root / NAME

    def _stamped(self) -> Stat | None:
        is_in_store = isinstance(self.root, StorePath) and self.root.is_in_store
        return DeltaLog(self._path).stamp(0) if is_in_store else None

    def _mark(self) -> None:
        mark = pa.table({_COLUMN: [self.app_id]})
        try:
            with told_by_store(self._path):
                write_deltalake(
                    str(self._path), mark, mode="error", storage_options=store_options(self._path)
                )
        except Exception:  # if another checkpoint came first, many kinds are possible; the mark then shows it
            if self.require_free() is None:
                raise
        self.require_free()

    def _read(self) -> str | None:
        first = table_if_there(self._path, version=0)
        if first is None:
            return None
        engine = QueryBuilder()
        engine.register("mark", first)
        with told_by_store(self._path):
            answer = pa.RecordBatchReader.from_stream(engine.execute(f"SELECT {_COLUMN} FROM mark"))
            return str(answer.read_all()[_COLUMN][0])


def require_own_tables(owner: SinkOwner, names: Iterable[str]) -> dict[str, int]:
    """The last batch that this checkpoint has appended to each existing table; -1 if it appended none.

    Args:
        owner: the owner of the sink.
        names: the names of the tables.

    Raises:
        StateError: a table cannot be read, has lost a file, or has rows of another checkpoint; or another
            checkpoint owns the sink.
    """
    written: dict[str, int] = {}
    is_owner = owner.require_free() is not None
    for name in names:
        place = owner.root / name
        try:
            if (table := table_if_there(place)) is not None:
                written[name] = _last_own_batch(table, place, owner.app_id, is_owner)
        except DeltaError as error:
            got = " ".join(str(error).split()).rstrip(".")
            must = "must be a Delta table that can be read"
            raise StateError(f"{place} — {must}; got: {got}. {_RESTORE}") from error
    return written


def last_batch(table: DeltaTable, app_id: str) -> int:
    """The last batch that a checkpoint has appended to a table, -1 if it appended none."""
    done: int | None = table.transaction_version(app_id)
    return -1 if done is None else done


def _last_own_batch(table: DeltaTable, place: AnyPath, app_id: str, is_owner: bool) -> int:
    """Check one table as `require_own_tables` does; `is_owner`: True if the sink has this owner's mark."""
    with told_by_store(place):
        done = last_batch(table, app_id)
        files = pa.table(table.get_add_actions(flatten=True)).select(["path", "size_bytes"])
    if files.num_rows and done < 0 and not is_owner:
        raise foreign(str(place), "rows that another one has written")
    names, sizes = (column.to_pylist() for column in files.columns)
    if isinstance(place, Path) or place.is_in_store:
        _require_files(place, dict(zip(map(unquote, names), sizes, strict=True)))
    return done


def _require_files(place: AnyPath, sizes: dict[str, int]) -> None:
    there = files.sizes(place, [*sizes])
    for name, size in sizes.items():
        if "://" not in name and there.get(name) != size:
            must, got = "must have all its files as they were written", f"none or another {name}"
            raise StateError(f"{place} — {must}; got {got}. {_RESTORE}")


def require_columns(root: str | AnyPath, schemas: Mapping[str, pa.Schema]) -> None:
    """Refuse schemas that do not fit the tables that are in a place.

    Raises:
        StateError: a table has a column with the same name and another type.
    """
    for table, schema in schemas.items():
        place = tables_in(root) / table
        if (there := table_if_there(place)) is not None:
            missing_columns(place, there.schema(), Schema.from_arrow(schema))


def missing_columns(place: AnyPath, there: Schema, wanted: Schema) -> list[str]:
    """The names of the columns to add. A table takes names for equal that differ in letter case only.

    Raises:
        StateError: the table has the column with another spelling or type.
    """
    types, known = _types(there), {field.name.lower(): field.name for field in there.fields}
    for name, kind in _types(wanted).items():
        same = known.get(name.lower())
        if same is not None and (same != name or types[same] != kind):
            must = f"must have a column {name} of type {kind.upper()}"
            got = f"{same} of type {types[same].upper()}"
            do = "Give what is emitted another name, or choose another sink."
            raise StateError(f"{place} — {must}; got {got}. {do}")
    return [field.name for field in wanted.fields if field.name.lower() not in known]


def _types(schema: Schema) -> dict[str, str]:
    """The columns of a table with Spark's names of their types."""
    texts = ((field.name, field.type.to_json()) for field in schema.fields)
    return {name: "bigint" if text == '"long"' else text.strip('"') for name, text in texts}
