"""Counts the requests to object stores and HDFS that this process asks the libraries for them to make.

Where a library itself repeats one that has failed, that is not known here.
"""

from __future__ import annotations

import threading

PAGE = 1_000  # objects that a store lists by one request


class _Count:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.asked = 0


_count = _Count()


def count(requests: int = 1) -> None:
    """Count requests that are about to be asked for."""
    with _count.lock:
        _count.asked += requests


def count_further_pages(objects: int) -> None:
    """Count the requests that a list of so many objects has taken behind its first one."""
    count(max(0, objects - 1) // PAGE)


def so_far() -> int:
    """How many were counted in this process."""
    with _count.lock:
        return _count.asked
