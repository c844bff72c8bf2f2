"""The input from the files of a folder, on a disk or on HDFS, or of a prefix in an object store."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from pyspark.sql import DataFrame, SparkSession

from spark_pace.core.plan.plan import Plan
from spark_pace.core.plan.rule import EventSchema
from spark_pace.io.event_files import EventsRead, read_source_file
from spark_pace.io.files import files
from spark_pace.io.files.addresses import AnyPath
from spark_pace.spark.checkpoint.layout import id_of
from spark_pace.spark.sources.files_by_name import FilesByName, ReadFile, entries_read
from spark_pace.spark.sources.manifest import require_readable

if TYPE_CHECKING:  # tasks import this file, and job files take a parser of YAML and one of SQL
    from spark_pace.job_file import FilesSource, Format


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
        return self.events_of_files(spark, plan, end, {})

    def reading(self, spark: SparkSession, plan: Plan) -> ReadFile:
        """What reads a file by its name."""
        most_bad = self.source.max_bad_records_per_file
        return partial(_read, self.path(spark), self.source.format, plan.schema.own, most_bad)


def _read(place: AnyPath, format: Format, schema: EventSchema, most_bad: int, name: str) -> EventsRead:
    """In a task: read the file of a name."""
    return read_source_file(place, name, format, schema, most_bad)
