"""Reads the checkpoints of a Delta table's log. A checkpoint replaces the commits before it.

A checkpoint of version 1 is one Parquet file or several. A checkpoint of version 2 is one file of Parquet or
JSON, with a unique name or with the name of version 1; its actions about files may be in other files, the
sidecars.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from spark_pace.io.files import files
from spark_pace.io.files.addresses import AnyPath

LOG = "_delta_log"
SIDECARS = f"{LOG}/_sidecars"
_OF_FILES = ("add", "remove")  # only these are in sidecars
_NAME = re.compile(
    r"(\d{20})\.checkpoint(?:\.parquet|\.\d{10}\.(\d{10})\.parquet|\.[\da-f-]{36}\.(?:parquet|json))"
)


@dataclass(frozen=True)
class TableCheckpoint:
    """A checkpoint that has all its parts.

    Attributes:
        version: the last commit that it replaces.
        names: the names of its files, without the sidecars.
    """

    version: int
    names: tuple[str, ...]


def last_checkpoint(names: Iterable[str]) -> TableCheckpoint | None:
    """Return the last checkpoint among the files of a log; None if there is none."""
    found: dict[tuple[int, str], list[str]] = {}
    for match in filter(None, map(_NAME.fullmatch, sorted(names))):
        version, parts = int(match[1]), match[2]
        found.setdefault((version, parts or match[0]), []).append(match[0])
    whole = [
        TableCheckpoint(version, tuple(files))
        for (version, parts), files in found.items()
        if not parts.isdigit() or len(files) == int(parts)
    ]
    return max(whole, key=lambda one: one.version, default=None)


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
    sidecars = {unquote(action["sidecar"]["path"]) for action in _actions(table, LOG, names, ["sidecar"])}
    yield from _actions(table, LOG, names, kinds)
    if any("/" in name for name in sidecars):
        raise ValueError(f"a part of a checkpoint in another folder, {min(sidecars)}")
    if not {*kinds}.isdisjoint(_OF_FILES):
        yield from _actions(table, SIDECARS, sorted(sidecars), kinds)


def _actions(
    table: AnyPath, folder: str, names: Iterable[str], kinds: Collection[str]
) -> Iterator[dict[str, Any]]:
    for name in names:
        yield from (_of_json if name.endswith(".json") else _of_parquet)(table, f"{folder}/{name}", kinds)


def _of_json(table: AnyPath, name: str, kinds: Collection[str]) -> Iterator[dict[str, Any]]:
    for line in files.content_of(table / name).decode().split("\n"):
        action = json.loads(line) if line else {}
        if not action.keys().isdisjoint(kinds):
            yield action


def _of_parquet(table: AnyPath, name: str, kinds: Collection[str]) -> Iterator[dict[str, Any]]:
    import pyarrow.parquet as pq  # Spark's process for sources imports this module, and mostly reads commits

    with pq.ParquetFile(files.open_file(table / name)) as file:
        rows = file.read(columns=[kind for kind in kinds if kind in file.schema_arrow.names])
    for kind in rows.column_names:
        yield from ({kind: told} for told in rows[kind].drop_null().to_pylist())
