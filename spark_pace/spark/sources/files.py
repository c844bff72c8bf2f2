"""Files as the input of a job: a streaming source gives their names, the tasks of the intake read them."""

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

from spark_pace.core.frames import decode, encode
from spark_pace.core.intake.late import LATE_SCHEMA
from spark_pace.core.intake.sift import Past, sift
from spark_pace.core.order.order import LateFile
from spark_pace.core.plan.plan import OnBad, Plan
from spark_pace.core.plan.rule import EventSchema
from spark_pace.errors import StateError
from spark_pace.io.files import read_source_file
from spark_pace.spark.checkpoint.checkpoint import Checkpoint
from spark_pace.spark.checkpoint.files import RESTORE
from spark_pace.spark.sources.file_names import FILE_NAMES, READ_BYTES, FileNames
from spark_pace.spark.sources.manifest import FINISH, require_readable
from spark_pace.spark.stages.intake import Batches, InputFile, intake_rows
from spark_pace.spark.stages.memory import giving_back
from spark_pace.spark.stages.rows import LATE, SLOT_ROWS, Row, to_batches

if TYPE_CHECKING:  # tasks import this file, and job files take a parser of YAML and one of SQL
    from spark_pace.job_file import FilesSource
    from spark_pace.spark.sources.delta import DeltaInput


@dataclass(frozen=True)
class FilesInput:
    """Reads files in the order of their names. The end comes in the same query, after the last file."""

    source: FilesSource
    checkpoint: Checkpoint
    finish: bool
    on_bad_record: OnBad
    first_cap: int | None = None

    kind: ClassVar[str] = "files"
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
        """Refuse a manifest that does not know what was read, and files that came after the end."""
        read = entries_read(self.checkpoint)
        require_readable(self.checkpoint.manifest_file, Path(self.source.path), read)
        return {}

    def watched(
        self, spark: SparkSession, marks: Mapping[str, Any]
    ) -> AbstractContextManager[Callable[[], None]]:
        """Nothing to refuse: the manifest knows the files."""
        return nullcontext(lambda: None)

    def expected_sources(self, spark: SparkSession) -> tuple[str, ...]:
        """Not known: the path of a file names no source."""
        return ()

    def rows(self, spark: SparkSession, plan: Plan, end: bool) -> DataFrame:
        """See `Input`."""
        names = name_rows(spark, self, end, {})
        most_bad = self.source.max_bad_records_per_file
        read = partial(_read, self.source.path, self.source.format, plan.schema.own, most_bad)
        return intake_rows(names, plan, self.on_bad_record, read, self.checkpoint.side_tables)

    def late_in(self, spark: SparkSession, plan: Plan, files: Sequence[LateFile]) -> pa.Table:
        """See `Input`. The tasks read the files once more, for only now it is known what is late in them."""
        told = [(file.entry, file.name, file.frontier_us) for file in files]
        events = partial(_events, self.source.path, self.source.format, plan.schema.own)
        return late_rows(spark, plan, told, events)


def entries_read(checkpoint: Checkpoint) -> int:
    """How many entries of the manifest the batches that have begun have read.

    Raises:
        StateError: a batch has read something else.
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


def bytes_between(before: list[Any], after: list[Any]) -> int:
    """What the files between two offsets weigh; 0 if that was not noted."""
    start, end = (sum(offset.get(READ_BYTES, 0) for offset in offsets) for offsets in (before, after))
    return int(max(0, end - start))


def name_rows(
    spark: SparkSession, files: FilesInput | DeltaInput, end: bool, more: Mapping[str, str]
) -> DataFrame:
    """The streaming rows of `FileNames`; `more`: options beside those that all kinds of files have."""
    spark.dataSource.register(FileNames)
    options = {
        "root": files.source.path,
        "manifest": str(files.checkpoint.manifest_file),
        "tasks": str(spark.sparkContext.defaultParallelism),
        "finish": str(end).lower(),
        **more,
    }
    if files.source.max_files_per_trigger is not None:
        options["max_files"] = str(files.source.max_files_per_trigger)
    if files.first_cap is not None:
        options["first_bytes"] = str(files.first_cap)
    return spark.readStream.format(FILE_NAMES).options(**options).load()


def late_rows(
    spark: SparkSession,
    plan: Plan,
    files: Sequence[tuple[int, str, int]],
    events: Callable[[str], pa.Table],
) -> pa.Table:
    """The late events of files, as a `LATE_SCHEMA` table.

    Args:
        spark: the session.
        plan: the plan.
        files: of each its place in the order of the files, its name, and the frontier before it.
        events: in a task: those in the file of a name. Spark pickles it.
    """
    # from tuples: a driver on a worker of a standalone cluster may not use Arrow (`docs/cluster.md`)
    names = spark.createDataFrame(list(files), "entry long, name string, frontier_us long")
    rows = names.mapInArrow(partial(_late_rows, plan, events), SLOT_ROWS).toArrow()
    return pa.concat_tables([LATE_SCHEMA.empty_table(), *map(decode, rows["body"].to_pylist())])


def _read(
    root: str, format: str, schema: EventSchema, most_bad: int, files: pa.RecordBatch
) -> Iterator[InputFile | None]:
    """In a task: the events of each file; None for the end of the input."""
    for entry, name in zip(files["entry"].to_pylist(), files["name"].to_pylist(), strict=True):
        name = json.loads(name)
        if name == FINISH:
            yield None
        else:
            read = read_source_file(root, name, format, schema, most_bad)
            yield InputFile(entry, read)


def _events(root: str, format: str, schema: EventSchema, name: str) -> pa.Table:
    return read_source_file(root, name, format, schema).events


def _late_rows(plan: Plan, events: Callable[[str], pa.Table], files: Batches) -> Batches:
    """In a task: a row `LATE` for each file; its number is the file's place in the order of the files."""

    def rows() -> Iterator[Row]:
        for batch in files:
            for entry, name, frontier_us in zip(*(column.to_pylist() for column in batch), strict=True):
                yield entry, LATE, encode(sift(plan, events(name), Past(frontier_us)).late)

    return giving_back(to_batches(rows(), "slot"))
