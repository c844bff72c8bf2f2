"""The streaming source `spark_pace_end`: the end of the input, and the ticks of a clock, beside Kafka.

Kafka's connector gives neither. A query has this source from its first start on, because Spark refuses a
checkpoint if a source was added or removed.

A tick is part of the input: it is noted in the checkpoint before a batch reads it, so that a batch that runs
again, and a job that is started again, read the same ticks at the same places.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from spark_pace.io.files.addresses import AnyPath
from spark_pace.io.files.files import read_json
from spark_pace.spark.sources.read_limits import (
    ReadAllAvailable,
    ReadLimit,
    SupportsTriggerAvailableNow,
    reader_of,
)

if TYPE_CHECKING:
    from spark_pace.job_file import Clock


@dataclass(frozen=True)
class Ticks:
    """The times at which a clock ticks: the multiples of `every_us`, each `slack_us` after it has passed."""

    every_us: int
    slack_us: int

    @staticmethod
    def of(clock: Clock | None) -> Ticks | None:
        """The ticks of a job's clock."""
        return None if clock is None else Ticks(clock.every_us, clock.slack_us)

    def due_us(self) -> int:
        """The last tick that is due by the clock of this machine."""
        return self._us() // self.every_us * self.every_us

    def seconds_to_next(self) -> float:
        """The seconds until the next tick is due."""
        return (self.every_us - self._us() % self.every_us) / 1e6

    def _us(self) -> int:
        return time.time_ns() // 1000 - self.slack_us


END_SOURCE = "spark_pace_end"
ROWS = "rows"  # in offsets
TICK = "tick_us"  # in offsets and in the file: the time of the last tick, in microseconds since 1970
_NEVER = -(1 << 63)


class EndSource(DataSource):
    """A source with a row for each tick, and one for the end of the input; its option is `reader_option`."""

    @classmethod
    def name(cls) -> str:
        """The name that `readStream.format` takes."""
        return END_SOURCE

    def schema(self) -> str:
        """The column of a row: the time of a tick; null marks the end."""
        return "tick_us bigint"

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """The reader that Spark keeps for the query."""
        return reader_of(self.options)


@dataclass
class EndPartition(InputPartition):
    """A row: the time of a tick; None marks the end."""

    tick_us: int | None


class EndReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Gives the rows.

    Its offset is ``{"rows": n}``, 1 behind the end and else 0, with the time of the last tick as `TICK` once
    there is one. So the checkpoint remembers both.
    """

    def __init__(self, end: bool, clock: AnyPath | None, checkpoint_id: str = "") -> None:
        """Give the end in this run if `end`, and each tick that is written to the file `clock`."""
        self._checkpoint_id = checkpoint_id
        self._end = end
        self._clock = clock

    def prepareForTriggerAvailableNow(self) -> None:
        """Do nothing, because nothing comes later."""

    def initialOffset(self) -> dict[str, int]:
        """The offset before the end."""
        return {ROWS: 0}

    def getDefaultReadLimit(self) -> ReadLimit:
        """No limit, because there are few rows."""
        return ReadAllAvailable()

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        """The offset after the newest tick, and after the end if the input ends in this run."""
        noted = None if self._clock is None else read_json(self._clock, self._checkpoint_id)
        tick = {TICK: noted[TICK]} if noted is not None and noted[TICK] > start.get(TICK, _NEVER) else {}
        return {**start, **tick, **({ROWS: 1} if self._end else {})}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        """One task for each row."""
        ticks = [end[TICK]] if TICK in end and end[TICK] != start.get(TICK) else []
        return [*map(EndPartition, ticks), *[EndPartition(None)] * (end[ROWS] - start[ROWS])]

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        """The row."""
        assert isinstance(partition, EndPartition)
        yield (partition.tick_us,)
