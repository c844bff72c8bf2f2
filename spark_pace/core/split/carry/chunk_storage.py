"""Chunks as bytes: a state holds small chunks itself, but only the names of larger ones.

So the bytes that a batch writes do not grow with what is carried.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import pyarrow as pa

from spark_pace import ways
from spark_pace.core.frames import TableStore, decode, decode_parcel, or_empty, or_none, write_mappable
from spark_pace.core.split.carry.chunk import Chunk, ranges_of
from spark_pace.errors import StateError


def put_beside(store: TableStore, chunk: Chunk) -> None:
    """Store a chunk if it is not small, and give it its name."""
    if chunk.name is None and ways.is_stored_apart(chunk.weight):
        tables = [chunk.keys, or_empty(chunk.events)]
        chunk.name = store.put(partial(write_mappable, {"ranges": chunk.ranges}, tables))


def described(chunk: Chunk) -> dict[str, Any]:
    """A chunk's entry in the header of a state; if the name is None, the state holds the chunk itself."""
    return {"name": chunk.name, "dead": chunk.dead}


def inline_chunk(*frames: memoryview) -> Chunk:
    """Read the chunk from two frames of a state: its keys and its events."""
    keys, events = map(decode, frames)
    return Chunk(keys, or_none(events), ranges_of(keys, events), frames)


def stored_chunk(store: TableStore | None, name: str) -> Chunk:
    """Open the chunk that is stored under a name; only its header is read now.

    Raises:
        StateError: it is missing or damaged.
    """
    header, (keys, events), mapped = stored_tables(store, name)
    return Chunk(keys, or_none(events), header["ranges"], name=name, mapped=mapped)


def stored_tables(store: TableStore | None, name: str) -> tuple[dict[str, Any], list[pa.Table], memoryview]:
    """Open what is stored under a name: the header, the tables, and the bytes of both.

    Raises:
        StateError: it is missing or damaged.
    """
    if store is None:
        do = "Go on with it in the job that made it."
        raise StateError(f"{name} — must be in the folder of a checkpoint; got a state without one. {do}")
    try:
        mapped = store.get(name)
        return *decode_parcel(mapped), mapped
    except (ValueError, KeyError, pa.ArrowException) as error:
        must, do = "must be as this program wrote it", "Restore the whole checkpoint."
        raise StateError(f"waiting/{name} — {must}; got damaged bytes. {do}") from error
