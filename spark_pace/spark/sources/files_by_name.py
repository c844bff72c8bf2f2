"""The input from files: a streaming source gives their names, and the tasks of the intake read them."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from spark_pace.core.frames import decode, encode
from spark_pace.core.intake.sift import LATE_SCHEMA, Past, sift
from spark_pace.core.order import LateFile, Tick
from spark_pace.core.plan.plan import Plan
from spark_pace.errors import StateError
from spark_pace.io.event_files import EventsRead
from spark_pace.io.files.addresses import AnyPath, path_at, secret_of
from spark_pace.io.files.files import RESTORE
from spark_pace.spark.checkpoint.checkpoint import Checkpoint
from spark_pace.spark.checkpoint.layout import id_of
from spark_pace.spark.sources.file_names import (
    CHECKPOINT,
    CHECKPOINT_ID,
    FILE_NAMES,
    READ_BYTES,
    STORE,
    FileNames,
)
from spark_pace.spark.sources.input import Input
from spark_pace.spark.sources.manifest import FINISH, tick_of
from spark_pace.spark.sources.read_limits import begin_options
from spark_pace.spark.sources.ticks import clock_options
from spark_pace.spark.stages.intake import Batches, InputFile, intake_rows
from spark_pace.spark.stages.memory import giving_back
from spark_pace.spark.stages.rows import LATE, SLOT_ROWS, Row, to_batches

ReadFile = Callable[[str], EventsRead]  # reads the file of an entry of the manifest


class FilesByName(Input):
    """Reads files in the order of the manifest; the end of the input follows in the same query."""

    @abstractmethod
    def reading(self, spark: SparkSession, plan: Plan) -> ReadFile:
        """What reads a file, in a task; it is picklable."""

    def late_in(self, spark: SparkSession, plan: Plan, files: Sequence[LateFile]) -> pa.Table:
        """The late events in these files, which tasks read again: only now late events are known."""
        told = [(file.entry, file.listed, file.frontier_us) for file in files]
        # from tuples: without `conf/spark-defaults.conf` a driver on a worker may make no frame from Arrow
        names = spark.createDataFrame(told, "entry long, name string, frontier_us long")
        read = partial(_late_rows, plan, self.reading(spark, plan))
        rows = names.mapInArrow(read, SLOT_ROWS).toArrow()
        return pa.concat_tables([LATE_SCHEMA.empty_table(), *map(decode, rows["body"].to_pylist())])

    def amount(self, before: list[Any], after: list[Any], records: int) -> int:
        """The weight of a batch's files, in bytes; 0 if it was not noted."""
        start, end = (sum(offset.get(READ_BYTES, 0) for offset in offsets) for offsets in (before, after))
        return int(max(0, end - start))

    def path(self, spark: SparkSession) -> AnyPath:
        """Where the source lies; a store is reached by the settings of Spark, or by the environment."""
        settings = dict(spark.sparkContext.getConf().getAll()) if "://" in self.source.path else {}
        return path_at(self.source.path, settings)

    def events_of_files(
        self, spark: SparkSession, plan: Plan, end: bool, more: Mapping[str, str]
    ) -> DataFrame:
        """The streaming rows of the intake.

        Args:
            spark: the session.
            plan: the plan.
            end: True if the input ends with what is there now.
            more: further options of `FileNames`.
        """
        spark.dataSource.register(FileNames)
        options = {
            "root": self.source.path,
            STORE: secret_of(self.path(spark)),
            "manifest": str(self.checkpoint.manifest_file),
            CHECKPOINT: secret_of(self.checkpoint.path),
            CHECKPOINT_ID: id_of(self.checkpoint),
            "tasks": str(spark.sparkContext.defaultParallelism),
            "finish": str(end).lower(),
            **clock_options(self.clock),
            **begin_options(partial(self.noted, "entries"), self.available_now),
            **more,
        }
        if self.source.max_files_per_trigger is not None:
            options["max_files"] = str(self.source.max_files_per_trigger)
        if self.first_cap is not None:
            options["first_bytes"] = str(self.first_cap)
        names = spark.readStream.format(FILE_NAMES).options(**options).load()
        read = partial(_read, self.reading(spark, plan))
        return intake_rows(names, plan, self.on_bad_record, read, self.checkpoint.side_tables)


def entries_read(checkpoint: Checkpoint) -> int:
    """The number of entries of the manifest that have been read by batches that have begun.

    Raises:
        StateError: a batch has read something else than files.
    """
    offsets = checkpoint.last_offsets()
    read: list[int] = [
        offset["entries"]
        for offset in offsets
        if isinstance(offset, dict) and isinstance(offset.get("entries"), int)
    ]
    if len(read) != len(offsets) or len(read) > 1:
        must, got = "must be as Spark wrote it", f"other offsets than of files: {offsets}"
        raise StateError(f"{checkpoint.offsets} — {must}; got {got}. {RESTORE}")
    return sum(read)


def _read(read: ReadFile, files: pa.RecordBatch) -> Iterator[InputFile | Tick | None]:
    """In a task: yield the events of each file, the ticks, and None at the end of the input."""
    for entry, text in zip(files["entry"].to_pylist(), files["name"].to_pylist(), strict=True):
        name = json.loads(text)
        if (time_us := tick_of(name)) is not None:
            yield Tick(time_us, entry)
        else:
            yield None if name == FINISH else InputFile(entry, text, read(name))


def _late_rows(plan: Plan, read: ReadFile, files: Batches) -> Batches:
    """In a task: make a row `LATE` for each file; its number is the file's index in the order of files."""

    def rows() -> Iterator[Row]:
        for batch in files:
            for entry, text, frontier_us in zip(*(column.to_pylist() for column in batch), strict=True):
                yield entry, LATE, encode(sift(plan, read(json.loads(text)).events, Past(frontier_us)).late)

    return giving_back(to_batches(rows(), "slot"))
