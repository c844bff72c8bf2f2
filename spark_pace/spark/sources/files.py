"""The input from files: of a folder, on a disk or on HDFS, of a prefix in an object store, of a Delta table.

A streaming source gives their names, and the tasks of the intake read them. What was read so far can be read
again in the same order. Of a table it is the files that its commits add, in commit order.
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
from spark_pace.errors import SetupError
from spark_pace.io.delta_log import DeltaLog
from spark_pace.io.event_files import EventsRead, read_source_file, read_table_file, require_columns
from spark_pace.io.files import files
from spark_pace.io.files.addresses import AnyPath, path_at
from spark_pace.io.files.files import read_json
from spark_pace.spark.checkpoint.checkpoint import Checkpoint
from spark_pace.spark.checkpoint.layout import id_of
from spark_pace.spark.sources.input import Input
from spark_pace.spark.sources.manifest import (
    FINISH,
    Manifest,
    TableCommits,
    another_table,
    file_of,
    require_ended,
    require_known,
    tick_of,
)
from spark_pace.spark.sources.own_sources import (
    OWN_SOURCE,
    READ_BYTES,
    FileNamesReader,
    FilesToRead,
    OwnSource,
    Ticks,
    reader_option,
)
from spark_pace.spark.stages.intake import Batches, Found, intake_rows
from spark_pace.spark.stages.rows import LATE, SLOT_ROWS, Row, giving_back, to_batches

if TYPE_CHECKING:  # tasks import this file, and job files take a parser of YAML and one of SQL
    from spark_pace.job_file import DeltaSource, FilesSource


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
    times_us = {entry: tick_of(entry) for entry in entries if entry != FINISH}
    if None not in times_us.values():
        must, do = "must be of a job that has read a file", "Run the job first, or leave out --as-read."
        raise SetupError(f"{path} — {must}; got none. {do}")
    parts = tuple(entry if time_us is None else Tick(time_us) for entry, time_us in times_us.items())
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

    def entries_read(self) -> int:
        """The number of entries of the manifest that have been read by batches that have begun."""
        return (self.noted("entries") or {"entries": 0})["entries"]

    def path(self, spark: SparkSession) -> AnyPath:
        """Where the source lies; a store is reached by the settings of Spark, or by the environment."""
        settings = dict(spark.sparkContext.getConf().getAll()) if "://" in self.source.path else {}
        return path_at(self.source.path, settings)

    def table(self, spark: SparkSession, plan: Plan) -> dict[str, Any]:
        """The fields of `FilesToRead` about the table whose files they are; empty for a folder of files."""
        return {}

    def rows(self, spark: SparkSession, plan: Plan, end: bool) -> DataFrame:
        """The rows of the intake, from the files."""
        spark.dataSource.register(OwnSource)
        of = FilesToRead(
            self.path(spark),
            self.checkpoint.manifest_file,
            spark.sparkContext.defaultParallelism,
            end,
            self.source.max_files_per_trigger,
            self.first_cap,
            None if self.clock is None else Ticks(self.clock.every_us, self.clock.slack_us),
            id_of(self.checkpoint),
            **self.table(spark, plan),
        )
        noted = partial(self.noted, "entries")
        option = reader_option(partial(FileNamesReader, of), noted, self.available_now)
        names = spark.readStream.format(OWN_SOURCE).options(**option).load()
        read = partial(_read, self.reading(spark, plan))
        return intake_rows(names, plan, self.on_bad_record, read, self.checkpoint.side_tables)


def _read(read: ReadFile, files: pa.RecordBatch) -> Iterator[Found | Tick | None]:
    """In a task: yield the events of each file, the ticks, and None at the end of the input."""
    for entry, text in zip(*(column.to_pylist() for column in files.columns), strict=True):
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

    def require_readable(self, spark: SparkSession) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Refuse a place that cannot be listed, a manifest without what was read, files after the end."""
        place, checkpoint = self.path(spark), self.checkpoint
        files.require_source(place)
        manifest = require_known(checkpoint.manifest_file, self.entries_read(), id_of(checkpoint))
        require_ended(manifest, str(place), files.listing(place).look(""))
        return {}, ()

    def lacks_files(self, spark: SparkSession) -> bool:
        """True if no batch has read a file yet, and there is none."""
        return not self.entries_read() and not any(files.listing(self.path(spark)).look(""))

    def reading(self, spark: SparkSession, plan: Plan) -> ReadFile:
        """What reads a file by its name."""
        return partial(
            read_source_file,
            self.path(spark),
            format=self.source.format,
            schema=plan.schema.own,
            most_bad=self.source.max_bad_records_per_file,
        )


@dataclass(frozen=True)
class DeltaInput(FilesByName):
    """Reads the rows appended to a table, file by file, in the order of its commits."""

    source: DeltaSource

    kind: ClassVar[str] = "delta"

    def require_readable(self, spark: SparkSession) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Refuse a table that cannot be read, is not the one of before, or has commits that do not append."""
        read, own_id = self.entries_read(), id_of(self.checkpoint)
        log = DeltaLog(self.path(spark))
        table_id = log.metadata().table_id
        known = (read_json(self.checkpoint.source_file) or {}).get("table", table_id)
        if known != table_id:
            raise another_table(log, known, table_id)
        manifest = require_known(self.checkpoint.manifest_file, read, own_id)
        position = read_json(self.checkpoint.log_position_file, own_id)
        entries = manifest.entries if read else []
        new = TableCommits(log.folder, table_id, self.source.from_version, entries, position).new()
        require_ended(manifest, self.source.path, new)
        return {"table": table_id}, ()

    def table(self, spark: SparkSession, plan: Plan) -> dict[str, Any]:
        """The table. A manifest before the first batch may be incomplete, so it is removed."""
        if not self.checkpoint.begun():
            files.remove(self.checkpoint.log_position_file)
            files.remove_appended(self.checkpoint.manifest_file)
        log = DeltaLog(self.path(spark))
        metadata = log.metadata()
        require_columns(log.folder, metadata, plan.schema.own)
        position = self.checkpoint.log_position_file
        return {
            "table_id": metadata.table_id,
            "from_version": self.source.from_version,
            "position": position,
        }

    def reading(self, spark: SparkSession, plan: Plan) -> ReadFile:
        """What reads a file by its entry of the manifest."""
        return partial(
            _read_table_file, self.path(spark), plan.schema.own, self.source.max_bad_records_per_file
        )


def _read_table_file(folder: AnyPath, schema: EventSchema, most_bad: int, entry: str) -> EventsRead:
    """In a task: read the file of an entry of the manifest."""
    return read_table_file(folder, file_of(entry), schema, most_bad)
