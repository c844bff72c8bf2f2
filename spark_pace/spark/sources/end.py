"""The streaming source `spark_pace_end`: one row, the end of the input, for sources that cannot tell it.

It stands in a query from its first day, because Spark refuses a checkpoint whose query has lost or won a
source.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

END_SOURCE = "spark_pace_end"


class EndSource(DataSource):
    """A source of one row, which says that the input ends here.

    The row comes with the option ``end`` = ``true``, unless an earlier run had it.
    """

    @classmethod
    def name(cls) -> str:
        """The name that `readStream.format` takes."""
        return END_SOURCE

    def schema(self) -> str:
        """The column of the row, which says nothing more."""
        return "ended boolean"

    def streamReader(self, schema: StructType) -> EndReader:
        """The reader that Spark keeps for the query."""
        return EndReader(self.options.get("end") == "true")


class EndReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Gives the row. Its offset is the number of rows given, 0 or 1: so the checkpoint remembers the end."""

    def __init__(self, end: bool) -> None:
        """Say whether the input ends in this run."""
        self._end = end

    def prepareForTriggerAvailableNow(self) -> None:
        """Nothing comes later."""

    def initialOffset(self) -> dict[str, int]:
        """The input has not ended."""
        return {"rows": 0}

    def getDefaultReadLimit(self) -> ReadLimit:
        """There is only one row."""
        return ReadAllAvailable()

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        """The end, once."""
        return {"rows": 1} if self._end else start

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        """One task for the row."""
        return [InputPartition(0)] * (end["rows"] - start["rows"])

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        """The row."""
        yield (True,)
