"""The streaming source `spark_pace_end`: one row for the end of the input, beside sources without an end.

A query has it from its first start on, because Spark refuses a checkpoint if a source was added or removed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

END_SOURCE = "spark_pace_end"


class EndSource(DataSource):
    """A source of one row, which marks the end of the input.

    The row comes if the option ``end`` is ``true``, unless an earlier run had it.
    """

    @classmethod
    def name(cls) -> str:
        """The name that `readStream.format` takes."""
        return END_SOURCE

    def schema(self) -> str:
        """The column of the row; its value is never used."""
        return "ended boolean"

    def streamReader(self, schema: StructType) -> EndReader:
        """The reader that Spark keeps for the query."""
        return EndReader(self.options.get("end") == "true")


class EndReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Gives the row. Its offset is the number of rows given, 0 or 1, so the checkpoint remembers the end."""

    def __init__(self, end: bool) -> None:
        """Give the row in this run if `end`."""
        self._end = end

    def prepareForTriggerAvailableNow(self) -> None:
        """Do nothing, because nothing comes later."""

    def initialOffset(self) -> dict[str, int]:
        """The offset before the end."""
        return {"rows": 0}

    def getDefaultReadLimit(self) -> ReadLimit:
        """No limit, because there is only one row."""
        return ReadAllAvailable()

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        """The offset after the row if the input ends in this run."""
        return {"rows": 1} if self._end else start

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        """One task for the row."""
        return [InputPartition(0)] * (end["rows"] - start["rows"])

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        """The row."""
        yield (True,)
