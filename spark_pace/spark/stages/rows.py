"""The rows that go from stage to stage of the query: a number, a kind, and a body of a few MB at most.

- intake to splitter: `FRAME`, `PROGRESS`, `LATE`, `BAD`;
- splitter to operators: `LANE` (or `RESULT` and `WORK` for lanes that the splitter worked off), `LATE`,
  `BAD`, `STATS`;
- operators to merger: `RESULT` and `WORK` in place of `LANE`, and the others.

Who makes them lets its process keep memory that it has freed, because the next batch needs as much again. The
arrays of a batch have megabytes each. By default the allocators of numpy and Arrow return such memory to the
system when it is freed, and the system clears every page that it hands out again. On a virtual machine, where
the host takes part in that, this can take longer than the work on the arrays.

It works with the allocator of glibc from 2.33 on (`mallopt` in its manual). With another allocator, or if the
environment configures the allocation, nothing is changed.
"""

from __future__ import annotations

import ctypes
import os
import resource
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

FRAME = "frame"  # events of one slot
PROGRESS = "progress"  # JSON: what one intake task has read, sent to every slot
BAD = "bad"  # records that are no events
LANE = "lane"  # selections for one operator instance
RESULT = "result"  # the result of a lane
WORK = "work"  # JSON: how much an operator worked off, and in what time
LATE = "late"  # events below the frontier
STATS = "stats"  # JSON: counts of one slot

SLOT_ROWS = "slot int, kind string, body binary"
PART_ROWS = "part int, kind string, body binary"
BATCH_BYTES = 32 << 20  # the size of the bodies in one Arrow batch, about

Row = tuple[int, str, bytes]


def to_batches(rows: Iterable[Row], number: str) -> Iterator[pa.RecordBatch]:
    """Pack rows into Arrow batches, below Spark's and Arrow's limits; `number` names the first column."""
    taken: list[Row] = []
    size = 0
    for row in rows:
        taken.append(row)
        size += len(row[2])
        if size >= BATCH_BYTES:
            yield _batch(taken, number)
            taken, size = [], 0
    if taken:
        yield _batch(taken, number)


def bodies(rows: pa.Table | pa.RecordBatch, kind: str) -> list[bytes]:
    """The bodies of the rows of a kind."""
    return rows.filter(pc.equal(rows.column("kind"), kind)).column("body").to_pylist()  # type: ignore[no-any-return]


def _batch(rows: list[Row], number: str) -> pa.RecordBatch:
    schema = pa.schema([(number, pa.int32()), ("kind", pa.string()), ("body", pa.binary())])
    columns = zip(zip(*rows, strict=True), schema.types, strict=True)
    return pa.record_batch([pa.array(column, kind) for column, kind in columns], schema=schema)


T = TypeVar("T")

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # constants of malloc.h
_LARGEST = 32 << 20  # the largest array that is kept, in bytes; glibc allows no more
_MOST_KEPT = 256 << 20  # bytes
_CHOSEN = ("ARROW_DEFAULT_MEMORY_POOL", "MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES")


class _Told(ctypes.Structure):
    """glibc's ``struct mallinfo2``."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
            *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
        )
    )


def keep_freed() -> None:
    """Let this process, and processes forked from it, keep freed memory; `give_back` bounds how much."""
    if _is_chosen():
        return
    with suppress(AttributeError, OSError, TypeError):
        libc = ctypes.CDLL(None)
        libc.mallinfo2  # noqa: B018 - `give_back` needs it
        if libc.mallopt(_MMAP_THRESHOLD, _LARGEST) and libc.mallopt(_TRIM_THRESHOLD, _MOST_KEPT):
            pa.set_memory_pool(pa.system_memory_pool())


def _is_chosen() -> bool:
    return any(name in os.environ for name in _CHOSEN)


def giving_back(rows: Iterable[T]) -> Iterator[T]:
    """Yield the rows; after the last one, when their arrays are gone, call `give_back`."""
    yield from rows
    give_back()


def give_back() -> None:
    """Return free memory to the system if it is more than a usual batch needs; call it after each batch.

    glibc itself returns free memory at the end of its heap, but none before a block that is in use. It still
    counts what was returned here as free, so free memory is bounded by resident memory minus memory in use.
    """
    if _is_chosen() or pa.default_memory_pool().backend_name != "system":
        return
    with suppress(AttributeError, OSError, TypeError):
        libc = ctypes.CDLL(None)
        libc.mallinfo2.restype = _Told
        told = libc.mallinfo2()
        if min(told.fordblks, _resident() - told.uordblks) > _MOST_KEPT:
            libc.malloc_trim(0)


def _resident() -> int:
    """The resident memory of this process, in bytes."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * resource.getpagesize()
