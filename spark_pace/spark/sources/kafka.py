"""Topics of Kafka as the source of a query: Spark's connector reads, the intake parses whole columns of values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_pace.core.plan.plan import OnBad, Plan
from spark_pace.io.records import Records, read_records
from spark_pace.spark.sources.end import END_SOURCE, EndSource
from spark_pace.spark.stages.frontier import frontier_of_batch
from spark_pace.spark.stages.intake import TaskIntake
from spark_pace.spark.stages.rows import SLOT_ROWS, Row, to_batches

_HEADERS = "headers."
_PLACE = (
    "value",
    "topic",
    "partition",
    "offset",
)  # columns that every record has; those after them are attributes
_PARTITIONS = 1 << 32  # more than a topic can have

Batches = Iterator[pa.RecordBatch]


@dataclass(frozen=True)
class Topics:
    """What a job reads of Kafka.

    Attributes:
        servers: ``host:port``, several with commas.
        topics: their names.
        format: of the values.
        columns: (attribute, the record's own column that it is taken from).
        starting_offsets: where a new checkpoint begins.
        max_offsets: most records of a batch.
        options: of Spark's connector and, with ``kafka.`` before them, of Kafka's client.
        on_bad_record: whether a bad record is kept apart or stops the job.
    """

    servers: str
    topics: tuple[str, ...]
    format: Literal["json", "csv", "columns"]
    columns: tuple[tuple[str, str], ...]
    starting_offsets: Literal["earliest", "latest"]
    max_offsets: int | None
    options: dict[str, str]
    on_bad_record: OnBad

    @property
    def client_options(self) -> dict[str, str]:
        """What Kafka's client is told."""
        own = {key[6:]: value for key, value in self.options.items() if key.startswith("kafka.")}
        return {**own, "bootstrap.servers": self.servers}


def read_kafka(spark: SparkSession, plan: Plan, source: Topics, *, end: bool) -> DataFrame:
    """The rows of the intake (`SLOT_ROWS`), streaming.

    Args:
        spark: the session.
        plan: the plan.
        source: what to read.
        end: the input ends with what is there now; then a batch takes all of that.
    """
    spark.dataSource.register(EndSource)
    options = {
        **source.options,
        "kafka.bootstrap.servers": source.servers,
        "subscribe": ",".join(source.topics),
        "startingOffsets": source.starting_offsets,
        "failOnDataLoss": "true",
        "includeHeaders": str(any(column.startswith(_HEADERS) for _, column in source.columns)).lower(),
    }
    if source.max_offsets is not None and not end:
        options["maxOffsetsPerTrigger"] = str(source.max_offsets)
    records = spark.readStream.format("kafka").options(**options).load()
    records = records.select(
        *_PLACE, *(_own_column(column).alias(f"@{attribute}") for attribute, column in source.columns)
    )
    ends = spark.readStream.format(END_SOURCE).option("end", str(end).lower()).load()
    ends = ends.select(*(F.lit(None).cast(field.dataType).alias(field.name) for field in records.schema))
    intake = KafkaIntake(plan, source.format, source.on_bad_record)
    return records.union(ends).mapInArrow(intake.stage(), SLOT_ROWS)


def _own_column(name: str) -> Column:
    """A column of the record; of headers with one name, the last counts, as in Kafka's own API."""
    if not name.startswith(_HEADERS):
        return F.col(name)
    key = name.removeprefix(_HEADERS)
    named = F.filter("headers", lambda header: header["key"] == F.lit(key))
    return F.try_element_at(F.transform(named, lambda header: header["value"]), F.lit(-1))


@dataclass(frozen=True)
class KafkaIntake:
    """Makes frames of the records of one task."""

    plan: Plan
    format: Literal["json", "csv", "columns"]
    on_bad_record: OnBad

    def stage(self) -> Callable[[Batches], Batches]:
        """The function for `mapInArrow`: records to rows of `SLOT_ROWS`."""
        return lambda batches: to_batches(self.rows(batches), "slot")

    def rows(self, batches: Batches) -> Iterator[Row]:
        """The rows of `TaskIntake`; a row without a topic is the end of the input."""
        intake = TaskIntake(self.plan, frontier_of_batch(), self.on_bad_record)
        finish = False
        for batch in batches:
            if batch.column("topic").null_count:
                finish = True
                continue
            read = read_records(_records(batch), self.format, self.plan.schema)
            yield from intake.take(read.events, read.bad)
        yield from intake.rows_at_end(finish)


def _records(batch: pa.RecordBatch) -> Records:
    own = {name[1:]: batch.column(name) for name in batch.schema.names[len(_PLACE) :]}
    return Records(
        batch.column("value"),
        _sources(batch.column("topic"), batch.column("partition")),
        batch.column("offset"),
        own,
    )


def _sources(topics: pa.Array, partitions: pa.Array) -> pa.DictionaryArray:
    """``topic/partition`` of each record, without a text for each record."""
    names = topics.dictionary_encode()
    both = pa.compute.add(
        pa.compute.multiply(names.indices.cast(pa.int64()), _PARTITIONS), partitions.cast(pa.int64())
    ).dictionary_encode()
    texts = [
        f"{names.dictionary[code // _PARTITIONS]}/{code % _PARTITIONS}"
        for code in both.dictionary.to_pylist()
    ]
    return pa.DictionaryArray.from_arrays(both.indices, pa.array(texts, pa.string()))
