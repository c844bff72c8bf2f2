"""Whether a job's tables are whole and belong to its checkpoint, as far as can be seen before a query starts."""

from __future__ import annotations

import os
from collections.abc import Iterable
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from spark_pace.errors import StateError

OWNER = "spark_pace.checkpoint"  # a table's property: the checkpoint that writes it, by the name of its transactions


def require_own_tables(root: str, names: Iterable[str], app_id: str) -> dict[str, int]:
    """For each table below `root` that is there, the last batch that this checkpoint has appended to it; -1 if none.

    Raises:
        StateError: a table cannot be read, has lost a file, or has rows of another checkpoint.
    """
    written: dict[str, int] = {}
    for name in names:
        path = f"{root}/{name}"
        try:
            if DeltaTable.is_deltatable(path):
                written[name] = _last_own_batch(DeltaTable(path), path, app_id)
        except DeltaError as error:
            got = " ".join(str(error).split()).rstrip(".")
            raise StateError(
                f"{path} — must be a Delta table that can be read; got: {got}. {_RESTORE}"
            ) from error
    return written


_RESTORE = "Restore it together with the checkpoint, or start with a new checkpoint and a sink of its own."


def _last_own_batch(table: DeltaTable, path: str, app_id: str) -> int:
    done = table.transaction_version(app_id)
    owner = table.metadata().configuration.get(OWNER)
    files = pa.table(table.get_add_actions(flatten=True)).select(["path", "size_bytes"])
    is_own = done is not None if owner is None else owner == app_id
    if files.num_rows and not is_own:
        raise StateError(
            f"{path} — must be written by this checkpoint alone; got rows that another one has written. "
            "Go on with that checkpoint, choose another sink, or remove the tables and the checkpoint together."
        )
    _require_files(
        path,
        {
            unquote(name): size
            for name, size in zip(*(column.to_pylist() for column in files.columns), strict=True)
        },
    )
    return -1 if done is None else done


def _require_files(path: str, sizes: dict[str, int]) -> None:
    for name, size in sizes.items():
        if "://" not in name and _size(os.path.join(path, name)) != size:
            raise StateError(
                f"{path} — must have all its files as they were written; got none or another {name}. {_RESTORE}"
            )


def _size(file: str) -> int | None:
    try:
        return os.stat(file).st_size
    except (FileNotFoundError, NotADirectoryError):
        return None
