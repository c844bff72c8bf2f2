"""Checks, before a query starts, that the job's tables are complete and belong to its checkpoint."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

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
