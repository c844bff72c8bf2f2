"""What a job reads: the running source, checked, and tied to the job's checkpoint.

Each kind of source has a class of its own in this folder; `spark_pace.spark.sources.kinds` names them all.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from spark_pace.core.order.order import LateFile
from spark_pace.core.plan.plan import OnBad, Plan
from spark_pace.spark.checkpoint.checkpoint import Checkpoint
from spark_pace.spark.checkpoint.files import write_json

if TYPE_CHECKING:  # tasks import this file, and job files take a parser of YAML and one of SQL
    from spark_pace.job_file import JobSpec


@dataclass(frozen=True)
class Input(ABC):
    """The running source of a job.

    Attributes:
        kind: its name in job files and checkpoints.
        lasting: the fields of the source, tuples of names, that may grow over the life of a checkpoint but
            not shrink.
        reads_in_jvm: whether the JVM handles each event; else only names of files and frames pass through it.
        source: what the job file says, with the environment's values in.
        checkpoint: the job's checkpoint.
        finish: whether the input ends.
        on_bad_record: whether bad records become rows or an error.
        first_cap: the most that a run's first batch reads, in the unit of `amount`; None: no cap changes.
    """

    source: Any
    checkpoint: Checkpoint
    finish: bool
    on_bad_record: OnBad
    first_cap: int | None = None

    kind: ClassVar[str]
    lasting: ClassVar[tuple[str, ...]] = ()
    reads_in_jvm: ClassVar[bool] = False

    @property
    def ends(self) -> tuple[bool, ...]:
        """One entry for each query that a run starts, in order: whether the input ends with that query."""
        return (self.finish,)

    def bounded(self, cap: int) -> int:
        """A cap within the limits that the job file sets; `cap` itself where Spark does not keep to it."""
        return cap

    @abstractmethod
    def amount(self, before: list[Any], after: list[Any], records: int) -> int:
        """How much a batch has read.

        Args:
            before: the offsets after the batch before it; none before the first batch.
            after: those after it.
            records: how many it had.
        """

    @abstractmethod
    def require_readable(self, spark: SparkSession) -> dict[str, Any]:
        """Refuse what cannot be read, before a query starts. Writes nothing.

        Returns:
            by what the checkpoint will know this source again, beside the fields that last.

        Raises:
            SetupError: the source is not there, or refuses us.
            StateError: the checkpoint does not fit it.
        """

    def watched(
        self, spark: SparkSession, marks: Mapping[str, Any]
    ) -> AbstractContextManager[Callable[[], None]]:
        """What is called after each batch is read, before any of it is written.

        It raises `StateError` if the source is no longer the one with these marks. It does nothing where the
        checkpoint itself follows what is read.
        """
        return nullcontext(lambda: None)

    def expected_sources(self, spark: SparkSession) -> tuple[str, ...]:
        """The names of all sources that events may come from; empty where that is not known."""
        return ()

    @abstractmethod
    def rows(self, spark: SparkSession, plan: Plan, end: bool) -> DataFrame:
        """The streaming rows of the intake (`SLOT_ROWS`); `end`: the input ends with what is there now."""

    @abstractmethod
    def late_in(self, spark: SparkSession, plan: Plan, files: Sequence[LateFile]) -> pa.Table:
        """The late events of files of the input that have some, in their order, as a `LATE_SCHEMA` table."""


def waiting_for_all(spec: JobSpec, job_input: Input, spark: SparkSession) -> JobSpec:
    """The job that waits for all known sources, if it orders by sources and does not say which it expects."""
    order = spec.events.order
    if not order.by_source or order.expected_sources or spec.events.source_column is not None:
        return spec
    order = replace(order, expected_sources=job_input.expected_sources(spark))
    return replace(spec, events=replace(spec.events, order=order))


def tie(job_input: Input, marks: Mapping[str, Any]) -> None:
    """Tie the checkpoint to this source, with these marks: no job that reads another one may continue it."""
    names = {field: list(getattr(job_input.source, field)) for field in job_input.lasting}
    write_json(job_input.checkpoint.source_file, {"kind": job_input.kind, **names, **marks})
