"""The interface of a job's input: a source that is checked, read, and tied to the job's checkpoint.

Each kind of source has its own class in this folder; `spark_pace.spark.start` lists them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from spark_pace.core.intake.sift import LATE_SCHEMA
from spark_pace.core.order import LateFile
from spark_pace.core.plan.plan import OnBad, Plan
from spark_pace.io.files.files import write_json
from spark_pace.spark.checkpoint.checkpoint import Checkpoint

if TYPE_CHECKING:  # tasks import this file, and job files take a parser of YAML and one of SQL
    from spark_pace.job_file import Clock, JobSpec

# looks at the source of a batch, by the batch's number, the offsets before it and after it, and how many rows
# were read: gives how many offsets had no record, and a message about them, as `BatchReport` has both
Look = Callable[[int, list[Any], list[Any], int], tuple[int, dict[str, str]]]


@dataclass(frozen=True)
class Input(ABC):
    """The input of a job.

    Attributes:
        kind: the name of the kind of source in job files and checkpoints.
        reads_in_jvm: True if each event passes through the JVM; else only names of files and frames do.
        source: the source in the job file, with values from the environment.
        checkpoint: the job's checkpoint.
        finish: True if the input ends.
        on_bad_record: says if bad records become rows or an error.
        first_cap: the most that a run's first batch reads, in the unit of `amount`; None: caps never change.
        clock: the clock that is part of the input; None: there is none.
        available_now: True if a run takes what is there when it starts.
    """

    source: Any
    checkpoint: Checkpoint
    finish: bool
    on_bad_record: OnBad
    first_cap: int | None = None
    clock: Clock | None = None
    available_now: bool = False

    kind: ClassVar[str]
    reads_in_jvm: ClassVar[bool] = False

    @property
    def ends(self) -> tuple[bool, ...]:
        """One entry for each query of a run, in order: True if the input ends with that query."""
        return (self.finish,)

    def bounded(self, cap: int) -> int:
        """Adapt a cap to the limits that the job file sets."""
        return cap

    @abstractmethod
    def amount(self, before: list[Any], after: list[Any], records: int) -> int:
        """The amount that a batch has read, in the source's unit.

        Args:
            before: the offsets before the batch; none for the first batch of files.
            after: the offsets after it.
            records: the number of its records.
        """

    @abstractmethod
    def require_readable(self, spark: SparkSession) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Refuse a source that cannot be read, before a query starts. Nothing is written.

        Returns:
            The marks by which the checkpoint recognises this source; those that are `topics` may be added to,
            but not taken away. And the names of all sources of events, empty if they are not known.

        Raises:
            SetupError: the source is not there, or refuses access.
            StateError: the checkpoint belongs to another source.
        """

    def lacks_files(self, spark: SparkSession) -> bool:
        """True if no batch has read a file yet, and there is none; False for what is not made of files."""
        return False

    def watched(self, spark: SparkSession, marks: Mapping[str, Any]) -> AbstractContextManager[Look]:
        """Give a function to be called after each batch is read and before any of it is written.

        It raises `StateError` if the source no longer has these marks. It does nothing for sources whose
        content the checkpoint lists itself.
        """
        return nullcontext(lambda *_: (0, {}))

    def noted(self, key: str) -> dict[str, int] | None:
        """The offset with a number under `key` after the last batch that has begun; None before the first.

        Raises:
            StateError: Spark's note is damaged.
        """
        offsets = self.checkpoint.last_offsets()
        return next((found for found in offsets if isinstance(found.get(key), int)), None)

    @abstractmethod
    def rows(self, spark: SparkSession, plan: Plan, end: bool) -> DataFrame:
        """The streaming rows of the intake (`SLOT_ROWS`); `end`: the input ends with what is there now."""

    def late_in(self, spark: SparkSession, plan: Plan, files: Sequence[LateFile]) -> pa.Table:
        """The late events in these files, in order, as a table of `LATE_SCHEMA`; of no files, none."""
        return LATE_SCHEMA.empty_table()


def waiting_for_all(spec: JobSpec, sources: tuple[str, ...]) -> JobSpec:
    """The job, changed to wait for these sources if it orders by sources and names none to expect."""
    order = spec.events.order
    if not order.by_source or order.expected_sources or spec.events.source_column is not None:
        return spec
    return replace(spec, events=replace(spec.events, order=replace(order, expected_sources=sources)))


def tie(job_input: Input, marks: Mapping[str, Any]) -> None:
    """Write the source and its marks to the checkpoint, so that no job with another source may use it."""
    write_json(job_input.checkpoint.source_file, {"kind": job_input.kind, **marks})
