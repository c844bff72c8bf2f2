"""Chunks as bytes: a state holds small ones itself, and of larger ones only the names.

So the bytes of a state do not follow what is carried.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import pyarrow as pa

from spark_pace.core.frames import decode, frames_of, mappable_parcel
from spark_pace.core.split.carry.carry import is_small
from spark_pace.core.split.carry.chunk import Chunk, times_of
from spark_pace.errors import StateError


class ChunkStore(Protocol):
    """Where the bytes of large chunks are. What is stored under a name never changes."""

    def put(self, pieces: Sequence[bytes | memoryview]) -> str:
        """Store some bytes, given in pieces. The name that is returned is the same for the same bytes."""

    def get(self, name: str) -> memoryview:
        """The bytes of that name, mapped into memory where that can be.

        Raises:
            StateError: there are none.
        """


def put_beside(store: ChunkStore, chunk: Chunk) -> None:
    """Store a chunk if it is not small, and give it its name."""
    if chunk.name is None and not is_small(chunk.weight):
        events = pa.table({}) if chunk.events is None else chunk.events
        chunk.name = store.put(mappable_parcel({"times_us": chunk.times_us}, [chunk.keys, events]))


def described(chunk: Chunk) -> dict[str, Any]:
    """What a state says of a chunk; without a name, the state holds the chunk itself."""
    return {"name": chunk.name, "dead": chunk.dead}


def inline_chunk(*frames: memoryview) -> Chunk:
    """The chunk of these two frames of a state."""
    keys, events = map(decode, frames)
    return Chunk(keys, _some(events), times_of(events), frames)


def stored_chunk(store: ChunkStore | None, name: str) -> Chunk:
    """The chunk of that name. Nothing but its header is read now.

    Raises:
        StateError: it is not there, or it is not whole.
    """
    if store is None:
        raise StateError(f"chunk {name} — must be in a folder of chunks; got a state without one.")
    try:
        header, frames = frames_of(store.get(name))
        keys, events = map(decode, frames)
        times = header["times_us"]
    except (ValueError, KeyError, pa.ArrowException) as error:
        must, do = "must be as this program wrote it", "Restore the whole checkpoint."
        raise StateError(f"chunk {name} — {must}; got damaged bytes. {do}") from error
    return Chunk(keys, _some(events), None if times is None else (times[0], times[1]), name=name)


def _some(events: pa.Table) -> pa.Table | None:
    return events if events.num_columns else None
