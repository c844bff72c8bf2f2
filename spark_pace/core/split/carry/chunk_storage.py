"""Chunks as bytes: a state holds small ones itself, and of larger ones only the names.

So a batch does not write more bytes where more is carried.
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
    """What a state says of a chunk; if the name is None, the state holds the chunk itself."""
    return {"name": chunk.name, "dead": chunk.dead}


def inline_chunk(*frames: memoryview) -> Chunk:
    """The chunk of these two frames of a state."""
    keys, events = map(decode, frames)
    return Chunk(keys, or_none(events), ranges_of(keys, events), frames)


def stored_chunk(store: TableStore | None, name: str) -> Chunk:
    """The chunk that is stored under a name; nothing but its header is read now.

    Raises:
        StateError: it is not there, or it is not whole.
    """
    header, (keys, events), mapped = stored_tables(store, name)
    return Chunk(keys, or_none(events), header["ranges"], name=name, mapped=mapped)


def stored_tables(store: TableStore | None, name: str) -> tuple[dict[str, Any], list[pa.Table], memoryview]:
    """What is stored under a name: a header, tables, and the bytes of both.

    Raises:
        StateError: it is not there, or it is not whole.
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
