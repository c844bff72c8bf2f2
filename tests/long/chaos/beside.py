"""Work that goes on beside a block of code."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def beside(work: Callable[[], None], end: Callable[[], None]) -> Iterator[None]:
    """Work in a thread while the block runs; behind it call `end`, which makes it stop, and wait for that."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield
    finally:
        end()
        thread.join()
