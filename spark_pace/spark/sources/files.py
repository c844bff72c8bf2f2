"""The input from files of a folder, on a disk or on HDFS, or of a prefix in an object store.

A streaming source gives their names, and the tasks of the intake read them. What was read so far can be read
again in the same order.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from spark_pace.core.frames import decode, encode
from spark_pace.core.intake.sift import LATE_SCHEMA, Past, sift
from spark_pace.core.order import LateFile, Tick
from spark_pace.core.plan.plan import Plan
from spark_pace.core.plan.rule import EventSchema
from spark_pace.errors import SetupError, StateError
from spark_pace.io.event_files import EventsRead, read_source_file
from spark_pace.io.files import files
from spark_pace.io.files.addresses import AnyPath, path_at
from spark_pace.io.files.files import RESTORE
from spark_pace.spark.checkpoint.checkpoint import Checkpoint
from spark_pace.spark.checkpoint.layout import id_of
from spark_pace.spark.sources.end_source import Ticks
from spark_pace.spark.sources.file_names import (
    FILE_NAMES,
    READ_BYTES,
    FileNames,
    FileNamesReader,
    FilesToRead,
    Table,
)
from spark_pace.spark.sources.input import Input
from spark_pace.spark.sources.manifest import FINISH, Manifest, require_readable, tick_of
from spark_pace.spark.sources.read_limits import reader_option
from spark_pace.spark.stages.intake import Batches, Found, intake_rows
from spark_pace.spark.stages.rows import LATE, SLOT_ROWS, Row, giving_back, to_batches

if TYPE_CHECKING:
    from spark_pace.job_file import FilesSource, Format


@dataclass(frozen=True)
class FilesRead:
    """What batches have read.

    Attributes:
        parts: the names of the files and the ticks of the clock, in order.
        ended: True if the input has ended with them.
    """

    parts: tuple[str | Tick, ...]
    ended: bool


def read_by_batches(path: AnyPath) -> FilesRead:
    """What the batches that are done have read, by the checkpoint at `path` of a job that reads files.

    Raises:
        SetupError: there is no such checkpoint, or no batch of it has read a file.
    """
    checkpoint = Checkpoint(path)
    done = checkpoint.last_done()
    count = sum(offset["entries"] for offset in checkpoint.offsets_after(done)) if done >= 0 else 0
    entries = Manifest(checkpoint.manifest_file, id_of(checkpoint)).entries[:count]
    ticks = [(entry, tick_of(entry)) for entry in entries if entry != FINISH]
    if all(time_us is not None for _, time_us in ticks):
        must, do = "must be of a job that has read a file", "Run the job first, or leave out --as-read."
        raise SetupError(f"{path} — {must}; got none. {do}")
    parts = tuple(entry if time_us is None else Tick(time_us) for entry, time_us in ticks)
    return FilesRead(parts, FINISH in entries)


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
        self, spark: SparkSession, plan: Plan, end: bool, table: Table | None = None
    ) -> DataFrame:
        """The streaming rows of the intake.

        Args:
            spark: the session.
            plan: the plan.
            end: True if the input ends with what is there now.
            table: the table whose files they are; None: a folder of files.
        """
        spark.dataSource.register(FileNames)
        of = FilesToRead(
            self.path(spark),
            self.checkpoint.manifest_file,
            spark.sparkContext.defaultParallelism,
            end,
            self.source.max_files_per_trigger,
            self.first_cap,
            Ticks.of(self.clock),
            id_of(self.checkpoint),
            table,
        )
        noted = partial(self.noted, "entries")
        option = reader_option(partial(FileNamesReader, of), noted, self.available_now)
        names = spark.readStream.format(FILE_NAMES).options(**option).load()
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


def _read(read: ReadFile, files: pa.RecordBatch) -> Iterator[Found | Tick | None]:
    """In a task: yield the events of each file, the ticks, and None at the end of the input."""
    for entry, text in zip(files["entry"].to_pylist(), files["name"].to_pylist(), strict=True):
        name = json.loads(text)
        if (time_us := tick_of(name)) is not None:
            yield Tick(time_us, entry)
        else:
            yield None if name == FINISH else (read(name), entry, text)


def _late_rows(plan: Plan, read: ReadFile, files: Batches) -> Batches:
    """In a task: make a row `LATE` for each file; its number is the file's index in the order of files."""

    def rows() -> Iterator[Row]:
        for batch in files:
            for entry, text, frontier_us in zip(*(column.to_pylist() for column in batch), strict=True):
                yield entry, LATE, encode(sift(plan, read(json.loads(text)).events, Past(frontier_us)).late)

    return giving_back(to_batches(rows(), "slot"))


@dataclass(frozen=True)
class FilesInput(FilesByName):
    """Reads the files of a place, in the order of their names."""

    source: FilesSource

    kind: ClassVar[str] = "files"

    def require_readable(self, spark: SparkSession) -> dict[str, Any]:
        """Refuse a place that cannot be listed, a manifest without what was read, files after the end."""
        place, checkpoint = self.path(spark), self.checkpoint
        files.require_source(place)
        require_readable(checkpoint.manifest_file, place, entries_read(checkpoint), id_of(checkpoint))
        return {}

    def lacks_files(self, spark: SparkSession) -> bool:
        """True if no batch has read a file yet, and there is none."""
        if entries_read(self.checkpoint):
            return False
        return next(files.listing(self.path(spark)).look(""), None) is None

    def rows(self, spark: SparkSession, plan: Plan, end: bool) -> DataFrame:
        """The rows of the intake, from the files."""
        return self.events_of_files(spark, plan, end)

    def reading(self, spark: SparkSession, plan: Plan) -> ReadFile:
        """What reads a file by its name."""
        most_bad = self.source.max_bad_records_per_file
        return partial(_read_file, self.path(spark), self.source.format, plan.schema.own, most_bad)


def _read_file(place: AnyPath, format: Format, schema: EventSchema, most_bad: int, name: str) -> EventsRead:
    """In a task: read the file of a name."""
    return read_source_file(place, name, format, schema, most_bad)
