"""Checks, before a query starts, that the job's tables are complete, fit it and belong to its checkpoint."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable, Schema
from deltalake.exceptions import DeltaError
from deltalake.schema import PrimitiveType

from spark_pace.errors import StateError
from spark_pace.io.files.table_place import TablePlace
from spark_pace.io.sink_owner import SinkOwner, foreign

_RESTORE = "Restore it together with the checkpoint, or start with a new checkpoint and a sink of its own."


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
    marked = owner.known()
    for name in names:
        place = owner.root / name
        try:
            if (table := place.found()) is not None:
                written[name] = _last_own_batch(table, place, owner.app_id, marked)
        except DeltaError as error:
            got = " ".join(str(error).split()).rstrip(".")
            must = "must be a Delta table that can be read"
            raise StateError(f"{place} — {must}; got: {got}. {_RESTORE}") from error
    owner.require_free()
    return written


def _last_own_batch(table: DeltaTable, place: TablePlace, app_id: str, marked: str | None) -> int:
    """Check one table as `require_own_tables` does; `marked` is the owner that the sink's mark names."""
    with place.told():
        done = table.transaction_version(app_id)
        files = pa.table(table.get_add_actions(flatten=True)).select(["path", "size_bytes"])
    is_own = done is not None if marked is None else marked == app_id
    if files.num_rows and not is_own:
        raise foreign(str(place), "rows that another one has written")
    names, sizes = (column.to_pylist() for column in files.columns)
    if place.is_here or place.is_in_store:
        _require_files(place, dict(zip(map(unquote, names), sizes, strict=True)))
    return -1 if done is None else done


def _require_files(place: TablePlace, sizes: dict[str, int]) -> None:
    there = place.files().sizes([*sizes])
    for name, size in sizes.items():
        if "://" not in name and there.get(name) != size:
            must, got = "must have all its files as they were written", f"none or another {name}"
            raise StateError(f"{place} — {must}; got {got}. {_RESTORE}")


def require_columns(root: str | Path | TablePlace, schemas: Mapping[str, pa.Schema]) -> None:
    """Refuse schemas that do not fit the tables that are in a place.

    Raises:
        StateError: a table has a column with the same name and another type.
    """
    for table, schema in schemas.items():
        place = TablePlace.of(root) / table
        if (there := place.found()) is not None:
            missing_columns(place, there.schema(), Schema.from_arrow(schema))


def missing_columns(place: TablePlace, there: Schema, wanted: Schema) -> list[str]:
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
    texts = {
        field.name: field.type.type if isinstance(field.type, PrimitiveType) else field.type.to_json()
        for field in schema.fields
    }
    return {name: "bigint" if text == "long" else text for name, text in texts.items()}
