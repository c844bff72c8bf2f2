"""The input from a Delta table: the files that its commits add, in commit order."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from pyspark.sql import DataFrame, SparkSession

from spark_pace.core.plan.plan import Plan
from spark_pace.core.plan.rule import EventSchema
from spark_pace.io.delta_log import DeltaLog
from spark_pace.io.event_files import EventsRead
from spark_pace.io.files.addresses import AnyPath
from spark_pace.io.files.files import read_json, remove, remove_appended
from spark_pace.io.table_files import read_table_file, require_columns
from spark_pace.spark.checkpoint.layout import id_of
from spark_pace.spark.sources.file_names import Table
from spark_pace.spark.sources.files import FilesByName, ReadFile, entries_read
from spark_pace.spark.sources.manifest import (
    FINISH,
    TableCommits,
    another_table,
    file_of,
    read_position,
    require_ended,
    require_known,
)

if TYPE_CHECKING:  # tasks import this file, and job files take a parser of YAML and one of SQL
    from spark_pace.job_file import DeltaSource


@dataclass(frozen=True)
class DeltaInput(FilesByName):
    """Reads the rows appended to a table, file by file, in the order of its commits."""

    source: DeltaSource

    kind: ClassVar[str] = "delta"

    def require_readable(self, spark: SparkSession) -> dict[str, Any]:
        """Refuse a table that cannot be read, is not the one of before, or has commits that do not append."""
        read, own_id = entries_read(self.checkpoint), id_of(self.checkpoint)
        log = self._log(spark)
        table_id = log.metadata().table_id
        known = (read_json(self.checkpoint.source_file) or {}).get("table", table_id)
        if known != table_id:
            raise another_table(log, known, table_id)
        manifest = require_known(self.checkpoint.manifest_file, read, own_id)
        position = read_position(self.checkpoint.log_position_file, own_id) if read else None
        entries = manifest.entries if read else []
        new = TableCommits(log.folder, table_id, self.source.from_version, entries, position).new()
        if FINISH in manifest.entries:
            require_ended(manifest, self.source.path, new)
        return {"table": table_id}

    def rows(self, spark: SparkSession, plan: Plan, end: bool) -> DataFrame:
        """The rows of the intake. A manifest before the first batch may be incomplete, so it is removed."""
        if not self.checkpoint.has_batches():
            remove(self.checkpoint.log_position_file)
            remove_appended(self.checkpoint.manifest_file)
        log = self._log(spark)
        metadata = log.metadata()
        require_columns(log.folder, metadata, plan.schema.own)
        table = Table(metadata.table_id, self.source.from_version, self.checkpoint.log_position_file)
        return self.events_of_files(spark, plan, end, table)

    def _log(self, spark: SparkSession) -> DeltaLog:
        return DeltaLog(self.path(spark))

    def reading(self, spark: SparkSession, plan: Plan) -> ReadFile:
        """What reads a file by its entry of the manifest."""
        return partial(_read, self.path(spark), plan.schema.own, self.source.max_bad_records_per_file)


def _read(folder: AnyPath, schema: EventSchema, most_bad: int, entry: str) -> EventsRead:
    """In a task: read the file of an entry of the manifest."""
    return read_table_file(folder, file_of(entry), schema, most_bad)
