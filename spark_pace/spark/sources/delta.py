"""A Delta table as the input of a job: the files that its commits have added, in commit order."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from spark_pace.core.order.order import LateFile
from spark_pace.core.plan.plan import OnBad, Plan
from spark_pace.core.plan.rule import EventSchema
from spark_pace.io.delta_log import DeltaLog
from spark_pace.io.table_files import read_table_file, require_columns
from spark_pace.spark.checkpoint.checkpoint import Checkpoint
from spark_pace.spark.checkpoint.files import read_json, remove
from spark_pace.spark.sources.files import bytes_between, entries_read, late_rows, name_rows
from spark_pace.spark.sources.manifest import FINISH, Manifest, require_ended, require_known
from spark_pace.spark.sources.table_commits import TableCommits, another_table, file_of
from spark_pace.spark.stages.intake import InputFile, intake_rows

if TYPE_CHECKING:  # tasks import this file, and job files take a parser of YAML and one of SQL
    from spark_pace.job_file import DeltaSource


@dataclass(frozen=True)
class DeltaInput:
    """Reads what is appended to a table, file by file. The end comes in the same query, after the last."""

    source: DeltaSource
    checkpoint: Checkpoint
    finish: bool
    on_bad_record: OnBad
    first_cap: int | None = None

    kind: ClassVar[str] = "delta"
    lasting: ClassVar[tuple[str, ...]] = ()
    reads_in_jvm: ClassVar[bool] = False

    @property
    def ends(self) -> tuple[bool, ...]:
        """One query."""
        return (self.finish,)

    def bounded(self, cap: int) -> int:
        """Return `cap` as it is: the source itself bounds the number of files."""
        return cap

    def amount(self, before: list[Any], after: list[Any], records: int) -> int:
        """What the files of a batch weigh, in bytes; 0 if that was not noted."""
        return bytes_between(before, after)

    def require_readable(self, spark: SparkSession) -> dict[str, Any]:
        """Refuse a table that cannot be read, another one than before, and commits that do not append."""
        read = entries_read(self.checkpoint)
        log = DeltaLog(self.source.path)
        table_id = log.metadata().table_id
        known = (read_json(self.checkpoint.source_file) or {}).get("table", table_id)
        if known != table_id:
            raise another_table(log, known, table_id)
        manifest = require_known(self.checkpoint.manifest_file, read)
        commits = TableCommits(self.source.path, table_id, self.source.from_version, manifest.entries[:read])
        new = commits.new()
        if FINISH in manifest.entries:
            require_ended(manifest, Path(self.source.path), new)
        return {"table": table_id}

    def watched(
        self, spark: SparkSession, marks: Mapping[str, Any]
    ) -> AbstractContextManager[Callable[[], None]]:
        """Nothing to refuse: the source follows the table's log."""
        return nullcontext(lambda: None)

    def expected_sources(self, spark: SparkSession) -> tuple[str, ...]:
        """Not known: the path of a file names no source."""
        return ()

    def rows(self, spark: SparkSession, plan: Plan, end: bool) -> DataFrame:
        """See `Input`. Before the first batch, a manifest may have a part of what an earlier start found."""
        if not self.checkpoint.has_batches():
            remove(self.checkpoint.manifest_file)
        metadata = DeltaLog(self.source.path).metadata()
        require_columns(self.source.path, metadata, plan.schema.own)
        options = {"table": metadata.table_id}
        if self.source.from_version is not None:
            options["from_version"] = str(self.source.from_version)
        names = name_rows(spark, self, end, options)
        read = partial(_read, self.source.path, plan.schema.own, self.source.max_bad_records_per_file)
        return intake_rows(names, plan, self.on_bad_record, read, self.checkpoint.side_tables)

    def late_in(self, spark: SparkSession, plan: Plan, files: Sequence[LateFile]) -> pa.Table:
        """See `Input`. The manifest says more of a file than the name that its events have."""
        entries = Manifest(self.checkpoint.manifest_file).entries
        told = [(file.entry, entries[file.entry], file.frontier_us) for file in files]
        return late_rows(spark, plan, told, partial(_events, self.source.path, plan.schema.own))


def _read(
    folder: str, schema: EventSchema, most_bad: int, names: pa.RecordBatch
) -> Iterator[InputFile | None]:
    """In a task: the events of each file; None for the end of the input."""
    for place, name in zip(names["entry"].to_pylist(), names["name"].to_pylist(), strict=True):
        entry = json.loads(name)
        if entry == FINISH:
            yield None
        else:
            yield InputFile(place, read_table_file(folder, file_of(entry), schema, most_bad))


def _events(folder: str, schema: EventSchema, entry: str) -> pa.Table:
    return read_table_file(folder, file_of(entry), schema).events
