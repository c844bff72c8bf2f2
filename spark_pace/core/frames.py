"""Encodes tables as bytes, to send them from stage to stage and to store state.

A *frame* is one Arrow IPC stream; a *parcel* is a JSON header followed by frames. Spark moves both without
reading them.
"""

from __future__ import annotations

import json
import mmap
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, Protocol

import pyarrow as pa

from spark_pace import ways

_ALIGNED = 64  # bytes


class Sink(Protocol):
    """Something that bytes are written to, such as a file."""

    def write(self, piece: Any, /) -> Any:
        """Write a piece, which is any object that ``memoryview`` accepts."""


class TableStore(Protocol):
    """A store for large tables beside the state. What is stored under a name never changes."""

    def put(self, write: Callable[[Sink], None]) -> str:
        """Store the bytes that a function writes; return their name, which is equal for equal bytes."""

    def get(self, name: str) -> memoryview:
        """The bytes stored under a name, mapped into memory if possible.

        Raises:
            StateError: nothing is stored under the name.
        """


def or_empty(table: pa.Table | None) -> pa.Table:
    """The table, or a table without columns in place of None, so that it can be stored."""
    return pa.table({}) if table is None else table


def or_none(table: pa.Table) -> pa.Table | None:
    """The table, or None if it is the one that `or_empty` makes for None."""
    return table if table.num_columns else None


def encode(table: pa.Table, compression: Literal["zstd", "lz4"] = "zstd") -> bytes:
    """Encode a table as a frame, compressed unless it is small; lz4 is faster, zstd gives fewer bytes."""
    sink = pa.BufferOutputStream()
    codec = compression if ways.is_compressed(table.nbytes) else None
    _write_stream(table, sink, pa.ipc.IpcWriteOptions(compression=codec))
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def decode(frame: bytes | memoryview) -> pa.Table:
    """Decode a frame; every column of the table has one chunk."""
    with pa.ipc.open_stream(pa.py_buffer(frame)) as reader:
        return reader.read_all().unify_dictionaries().combine_chunks()


def let_go(view: memoryview) -> None:
    """Free the memory of a mapped file; parts that are used later are read again."""
    if isinstance(view.obj, mmap.mmap):
        view.obj.madvise(mmap.MADV_DONTNEED)


def encode_parcel(header: dict[str, Any], tables: Sequence[pa.Table | bytes | memoryview]) -> bytes:
    """Encode a header of JSON values, and tables or frames, as a parcel."""
    frames = [encode(table) if isinstance(table, pa.Table) else table for table in tables]
    return b"".join([_head(header, map(len, frames)), *frames])


def write_mappable(header: dict[str, Any], tables: Sequence[pa.Table], sink: Sink) -> None:
    """Write a parcel without compression, so that only the parts of a mapped file that are used are read."""
    sizes = []
    for table in tables:
        measure = pa.MockOutputStream()
        _write_stream(table, measure)
        sizes.append(measure.size())
    sink.write(_head(header, sizes))
    for table in tables:
        _write_stream(table, pa.PythonFile(sink, "w"))


def _write_stream(
    table: pa.Table, file: pa.NativeFile, options: pa.ipc.IpcWriteOptions | None = None
) -> None:
    with pa.ipc.new_stream(file, table.schema, options=options) as writer:
        writer.write_table(table)


def _head(header: dict[str, Any], sizes: Iterable[int]) -> bytes:
    """The bytes before the frames of a parcel: the length of the header, and the header.

    Their number is a multiple of 64, so that numbers in the frames are aligned if the frames' sizes are
    multiples of 64 too.
    """
    text = json.dumps({**header, "frame_bytes": list(sizes)}).encode()
    text += b" " * (-(len(text) + 4) % _ALIGNED)
    return len(text).to_bytes(4, "big") + text


def decode_header(parcel: bytes | memoryview) -> dict[str, Any]:
    """Decode the header of a parcel."""
    view = memoryview(parcel)
    length = int.from_bytes(view[:4], "big")
    header: dict[str, Any] = json.loads(bytes(view[4 : 4 + length]))
    return header


def frames_of(parcel: bytes | memoryview) -> tuple[dict[str, Any], list[memoryview]]:
    """Decode the header of a parcel, and return its frames as they are."""
    view = memoryview(parcel)
    header = decode_header(view)
    start = 4 + int.from_bytes(view[:4], "big")
    frames = []
    for length in header["frame_bytes"]:
        frames.append(view[start : start + length])
        start += length
    return header, frames


def decode_parcel(parcel: bytes | memoryview) -> tuple[dict[str, Any], list[pa.Table]]:
    """Decode the header and the tables of a parcel."""
    header, frames = frames_of(parcel)
    return header, [decode(frame) for frame in frames]
