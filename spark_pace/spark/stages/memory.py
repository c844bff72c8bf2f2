"""Lets a process keep memory that it has freed, for the next batch needs as much again.

The arrays of a batch are megabytes each. By default the allocators of numpy and of Arrow give such memory
back to the system as soon as it is freed, and the system clears every page that is taken anew. On a virtual
machine, whose host has a part in that, it can take longer than the work on the arrays.

The allocator is that of glibc, from 2.33 on (`mallopt` in its manual). With another one, or where the
environment says how memory is to be allocated, nothing changes.
"""

from __future__ import annotations

import ctypes
import os
import resource
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TypeVar

import pyarrow as pa

T = TypeVar("T")

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of malloc.h
_LARGEST = 32 << 20  # bytes of an array that is kept; glibc takes no more
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
    """Let this process, and those that are forked from it, keep what they free; see `give_back`."""
    if _is_chosen():
        return
    with suppress(AttributeError, OSError, TypeError):
        libc = ctypes.CDLL(None)
        libc.mallinfo2  # noqa: B018 - without it nothing would bound what is kept
        if libc.mallopt(_MMAP_THRESHOLD, _LARGEST) and libc.mallopt(_TRIM_THRESHOLD, _MOST_KEPT):
            pa.set_memory_pool(pa.system_memory_pool())


def _is_chosen() -> bool:
    return any(name in os.environ for name in _CHOSEN)


def giving_back(rows: Iterable[T]) -> Iterator[T]:
    """Pass the rows on. Behind the last one, when the arrays that made them are gone, give memory back."""
    yield from rows
    give_back()


def give_back() -> None:
    """Give all free memory back if it is more than a usual batch needs: call it behind each batch.

    glibc gives back by itself what is free at the end of its heap, but not what lies in front of a block that
    is still in use. It goes on to count as free what was given back here: so what is free is taken to be no
    more than what is in memory and not in use.
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
    """The bytes of this process that are in memory."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * resource.getpagesize()
