"""Decides when a process reads plain JSON by machine code: once it has read enough for loading it to pay.

Loading it takes some milliseconds and llvmlite. Spark's workers are forked from a process that has loaded it.
Where there is none, a process that reads very much has it made. Until then pyarrow reads.
"""

from __future__ import annotations

from functools import cache

from spark_pace import ways
from spark_pace.io.text.scan import NOTHING, scan


class CompiledReader:
    """The compiled reader of a process, loaded once it pays."""

    def __init__(self) -> None:
        """Start without the reader."""
        self._read_bytes = 0
        self._is_ready = False

    def is_ready_for(self, size: int) -> bool:
        """True if `scan` can read `size` bytes more; False while loading it does not pay."""
        self._read_bytes += size
        if not self._is_ready and ways.is_loaded(self._read_bytes):
            self.load(ways.is_worth_compiling(self._read_bytes))
        return self._is_ready

    def load(self, is_made_now: bool = False) -> None:
        """Load the compiled reader now, for this process and processes forked from it, if it can be had."""
        self._is_ready = scan.is_ready(NOTHING, is_made_now)


@cache
def compiled_reader() -> CompiledReader:
    """The compiled reader of this process."""
    return CompiledReader()
