"""What Spark tells a Python source of a batch: since 4.2 where it begins and how much it may read.

Before, a source is asked for its newest offset. It is told neither that, nor that a run takes what is there
now. `reader_option` gives such a Spark a reader that knows both.
"""

from __future__ import annotations

import pickle
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

try:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadLimit,
        ReadMaxBytes,
        ReadMaxFiles,
        SupportsTriggerAvailableNow,
    )
except ImportError:

    class ReadLimit:  # type: ignore[no-redef]
        """A limit; this Spark has none."""

    class ReadAllAvailable(ReadLimit):  # type: ignore[no-redef]
        """No limit."""

    class ReadMaxBytes(ReadLimit):  # type: ignore[no-redef]
        """A limit that this Spark never gives, as are those of files."""

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """A source that is told of a run which takes what is there now; not by this Spark."""

    ReadMaxFiles = ReadMaxBytes  # type: ignore[misc, assignment]

TELLS_LIMITS = ReadLimit.__module__ != __name__
__all__ = ["ReadAllAvailable", "ReadLimit", "ReadMaxBytes", "ReadMaxFiles", "SupportsTriggerAvailableNow"]
READER = "reader_secret"  # Spark shows no option with such a name


def reader_option(
    make: Callable[[], Any], noted: Callable[[], dict[str, int] | None], available_now: bool
) -> dict[str, str]:
    """The option that tells a source its reader, and an older Spark where its first batch begins.

    Args:
        make: makes the reader; it is picklable.
        noted: gives the source's offset after the last batch that has begun; None before the first batch.
        available_now: True if the run takes what is there now.
    """
    told = make if TELLS_LIMITS else partial(_UnlimitedReader, make, noted(), available_now)
    return {READER: b64encode(pickle.dumps(told)).decode()}


def reader_of(options: Mapping[str, str]) -> DataSourceStreamReader:
    """The reader that the options of a source name, as the Spark here asks it."""
    return pickle.loads(b64decode(options[READER]))()  # type: ignore[no-any-return]


class _UnlimitedReader(DataSourceStreamReader):
    """Asks a reader as Spark 4.2 does, for a Spark that asks for the newest offset alone."""

    def __init__(self, make: Callable[[], Any], noted: dict[str, int] | None, available_now: bool) -> None:
        """Begin at the offset `noted`; None: where the reader begins."""
        self._reader = make()
        self._last: dict[str, int] = noted or self._reader.initialOffset()
        self._available_now = available_now
        self._prepared = False

    def initialOffset(self) -> dict[str, int]:
        """The offset before all rows."""
        return self._reader.initialOffset()  # type: ignore[no-any-return]

    def latestOffset(self) -> dict[str, int]:  # type: ignore[override]  # as Spark before 4.2 calls it
        """The end of the next batch: of all that is there in a run that takes what is there now.

        Such a Spark asks only once in such a run, which has one batch for it.
        """
        if not self._available_now:
            self._last = self._next()
        elif not self._prepared:
            self._prepared = True
            self._reader.prepareForTriggerAvailableNow()
            while (end := self._next()) != self._last:
                self._last = end
        return self._last

    def _next(self) -> dict[str, int]:
        return self._reader.latestOffset(self._last, ReadAllAvailable())  # type: ignore[no-any-return]

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        """The tasks of a batch."""
        return self._reader.partitions(start, end)  # type: ignore[no-any-return]

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        """The rows of a task."""
        return self._reader.read(partition)  # type: ignore[no-any-return]
