"""Checks, before a query starts, that the job's tables are complete and belong to its checkpoint."""

from __future__ import annotations

import os
from collections.abc import Iterable
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from spark_pace.errors import StateError
from spark_pace.io.sink_owner import SinkOwner, foreign

_RESTORE = "Restore it together with the checkpoint, or start with a new checkpoint and a sink of its own."


def require_own_tables(owner: SinkOwner, names: Iterable[str]) -> dict[str, int]:
    """The last batch that this checkpoint has appended to each existing table; -1 if it appended none.

    Args:
        owner: the owner of the sink, which must be on a mounted file system.
        names: the names of the tables.

    Raises:
        StateError: a table cannot be read, has lost a file, or has rows of another checkpoint; or another
            checkpoint owns the sink.
    """
    written: dict[str, int] = {}
    marked = owner.known()
    for name in names:
        path = f"{owner.root}/{name}"
        try:
            if DeltaTable.is_deltatable(path):
                written[name] = _last_own_batch(DeltaTable(path), path, owner.app_id, marked)
        except DeltaError as error:
            got = " ".join(str(error).split()).rstrip(".")
            must = "must be a Delta table that can be read"
            raise StateError(f"{path} — {must}; got: {got}. {_RESTORE}") from error
    owner.require_free()
    return written


def _last_own_batch(table: DeltaTable, path: str, app_id: str, marked: str | None) -> int:
    """Check one table as `require_own_tables` does; `marked` is the owner that the sink's mark names."""
    done = table.transaction_version(app_id)
    files = pa.table(table.get_add_actions(flatten=True)).select(["path", "size_bytes"])
    is_own = done is not None if marked is None else marked == app_id
    if files.num_rows and not is_own:
        raise foreign(path, "rows that another one has written")
    names, sizes = (column.to_pylist() for column in files.columns)
    _require_files(path, dict(zip(map(unquote, names), sizes, strict=True)))
    return -1 if done is None else done


def _require_files(path: str, sizes: dict[str, int]) -> None:
    for name, size in sizes.items():
        if "://" not in name and _size(os.path.join(path, name)) != size:
            must, got = "must have all its files as they were written", f"none or another {name}"
            raise StateError(f"{path} — {must}; got {got}. {_RESTORE}")


def _size(file: str) -> int | None:
    try:
        return os.stat(file).st_size
    except (FileNotFoundError, NotADirectoryError):
        return None
