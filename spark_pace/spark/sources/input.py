"""What a job reads: one class for each kind of source, checked, and tied to the job's checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, ClassVar, Protocol

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from spark_pace.core.order.order import LateFile
from spark_pace.core.plan.plan import OnBad, Plan
from spark_pace.errors import StateError
from spark_pace.job_file import DeltaSource, FilesSource, JobSpec, KafkaSource
from spark_pace.job_file.secrets import Secrets
from spark_pace.spark.checkpoint.checkpoint import Checkpoint
from spark_pace.spark.checkpoint.files import RESTORE, damaged, read_json, write_json
from spark_pace.spark.sources.delta import DeltaInput
from spark_pace.spark.sources.files import FilesInput
from spark_pace.spark.sources.kafka import KafkaInput


class Input(Protocol):
    """The running source of a job.

    Attributes:
        kind: its name in job files and checkpoints.
        lasting: the fields of the source, tuples of names, that may grow over the life of a checkpoint but
            not shrink.
        reads_in_jvm: whether the JVM handles each event; else only names of files and frames pass through it.
        source: what the job file says, with the environment's values in.
        checkpoint: the job's checkpoint.
        first_cap: the most that a run's first batch reads, in the unit of `amount`; None: no cap changes.
    """

    kind: ClassVar[str]
    lasting: ClassVar[tuple[str, ...]]
    reads_in_jvm: ClassVar[bool]

    def __init__(
        self,
        source: Any,
        checkpoint: Checkpoint,
        finish: bool,
        on_bad_record: OnBad,
        first_cap: int | None = None,
    ) -> None:
        """Take what the job file says; `finish`: the input ends."""

    @property
    def source(self) -> Any:
        """See above."""

    @property
    def checkpoint(self) -> Checkpoint:
        """See above."""

    @property
    def first_cap(self) -> int | None:
        """See above."""

    @property
    def ends(self) -> tuple[bool, ...]:
        """One entry for each query that a run starts, in order: whether the input ends with that query."""

    def bounded(self, cap: int) -> int:
        """A cap within the limits that the job file sets."""

    def amount(self, before: list[Any], after: list[Any], records: int) -> int:
        """How much a batch has read.

        Args:
            before: the offsets after the batch before it; none before the first batch.
            after: those after it.
            records: how many it had.
        """

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

        It raises `StateError` if the source is no longer the one with these marks.
        """

    def expected_sources(self, spark: SparkSession) -> tuple[str, ...]:
        """The names of all sources that events may come from; empty where that is not known."""

    def rows(self, spark: SparkSession, plan: Plan, end: bool) -> DataFrame:
        """The streaming rows of the intake (`SLOT_ROWS`); `end`: the input ends with what is there now."""

    def late_in(self, spark: SparkSession, plan: Plan, files: Sequence[LateFile]) -> pa.Table:
        """The late events of files of the input that have some, in their order, as a `LATE_SCHEMA` table."""


_INPUTS: dict[type, type[Input]] = {
    FilesSource: FilesInput,
    KafkaSource: KafkaInput,
    DeltaSource: DeltaInput,
}
# what a first batch may read, so that a small input is one batch: bytes of files, records of Kafka
_FIRST_CAPS = {FilesInput.kind: 32 << 20, KafkaInput.kind: 100_000, DeltaInput.kind: 32 << 20}
_LASTING = {kind.kind: kind.lasting for kind in _INPUTS.values()}


def input_of(spec: JobSpec, checkpoint: Checkpoint, secrets: Secrets) -> Input:
    """What the job reads.

    Raises:
        SetupError: there are no files, or a variable of the environment is missing.
    """
    source = spec.source.resolved(secrets)
    kind = _INPUTS[type(source)]
    first_cap = None if spec.admission is None else _FIRST_CAPS[kind.kind]
    return kind(source, checkpoint, spec.finish, spec.events.on_bad_record, first_cap)


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


def require_same_source(job_input: Input) -> None:
    """Refuse a checkpoint of another kind of source, or one of topics that the job no longer names.

    Raises:
        StateError: the checkpoint belongs to another source, or its file about that is damaged or missing.
    """
    checkpoint = job_input.checkpoint
    path = checkpoint.source_file
    stored = read_json(path)
    if stored is None and checkpoint.last_begun() >= 0:
        raise StateError(f"{path} — must be there where batches are; got no file. {RESTORE}")
    if stored is None:
        return
    kind = stored.get("kind")
    if kind not in list(_LASTING) or not all(isinstance(stored.get(field), list) for field in _LASTING[kind]):
        raise damaged(path, f"another kind of source, {str(stored)[:100]}")
    if kind != job_input.kind:
        must = f"must belong to a job that reads {job_input.kind}"
        got = f"the checkpoint of one that reads {kind}"
        do = "Use a new checkpoint with a sink of its own."
        raise StateError(f"{checkpoint} — {must}; got {got}. {do}")
    for field in job_input.lasting:
        gone = [name for name in stored[field] if name not in getattr(job_input.source, field)]
        if gone:
            must, got = f"must go on with its {field}", f"a job without {', '.join(gone)}"
            do = "Name them again, or use a new checkpoint with a sink of its own."
            raise StateError(f"{checkpoint} — {must}; got {got}. {do}")
