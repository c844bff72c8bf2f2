"""The source of a job as the query needs it: checked, with the environment's values in, and tied to its checkpoint."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from pyspark.sql import DataFrame, SparkSession

from spark_pace.core.plan.plan import OnBad, Plan
from spark_pace.errors import SetupError, StateError
from spark_pace.job_file import FilesSource, JobSpec, KafkaSource
from spark_pace.job_file.secrets import Secrets
from spark_pace.spark.checkpoint.checkpoint import Checkpoint
from spark_pace.spark.checkpoint.durable import RESTORE, damaged, read_json, write_json
from spark_pace.spark.pipeline import Input, read_files
from spark_pace.spark.sources.files import require_readable
from spark_pace.spark.sources.kafka import Topics, read_kafka
from spark_pace.spark.sources.kafka_check import partitions_of


class Source(Protocol):
    """One of the kinds of source.

    `ends` has an entry for each query of a run, one after the other: whether the input ends with it.
    """

    @property
    def ends(self) -> tuple[bool, ...]:
        """See above."""

    def require_same(self) -> None:
        """Refuse a checkpoint that belongs to another source."""

    def check(self, spark: SparkSession) -> tuple[str, ...]:
        """Refuse what cannot be read, before a query starts; gives the names of the sources to expect, if known."""

    def tie(self) -> None:
        """Tie the checkpoint to this source: no other may go on with it."""

    def rows(self, spark: SparkSession, plan: Plan, end: bool) -> DataFrame:
        """The rows of the intake, streaming."""


def source_of(spec: JobSpec, checkpoint: Checkpoint, secrets: Secrets) -> Source:
    """The job's source.

    Raises:
        SetupError: there are no files, or a variable of the environment is missing.
    """
    on_bad = spec.events.on_bad_record
    if isinstance(spec.source, KafkaSource):
        kafka = spec.source
        topics = Topics(
            servers=secrets.resolve(kafka.servers, "source.servers"),
            topics=kafka.topics,
            format=kafka.format,
            columns=kafka.columns,
            starting_offsets=kafka.starting_offsets,
            max_offsets=kafka.max_offsets_per_trigger,
            options=secrets.resolve_all(kafka.options, "source.options"),
            on_bad_record=on_bad,
        )
        return KafkaInput(topics, checkpoint, spec.finish)
    path = local_path(spec.source.path, "source.path")
    if not path.exists():
        raise SetupError(
            f"{path} — must be a file or a directory of events; got nothing there. Put the events there, or correct source.path."
        )
    return FilesInput(spec.source, path, checkpoint, spec.finish, on_bad)


def local_path(path: str, key: str) -> Path:
    """A path of this machine.

    Raises:
        SetupError: it is an address.
    """
    local = path.removeprefix("file://")
    if "://" in local:
        raise SetupError(
            f"{key} — must be on a file system that is mounted here; got {path}. Mount it, or choose another place."
        )
    return Path(os.path.abspath(local))


@dataclass(frozen=True)
class FilesInput:
    """Files: the end comes in the same query, behind the last of them."""

    source: FilesSource
    path: Path
    checkpoint: Checkpoint
    finish: bool
    on_bad_record: OnBad

    @property
    def ends(self) -> tuple[bool, ...]:
        """One query."""
        return (self.finish,)

    def require_same(self) -> None:
        """Refuse another kind of source's checkpoint."""
        _require_same_source(self.checkpoint, self._identity)

    def check(self, spark: SparkSession) -> tuple[str, ...]:
        """Refuse a manifest that does not know what was read, and files that came after the end."""
        offsets = self.checkpoint.last_offsets()
        read: list[int] = [
            offset["entries"]
            for offset in offsets
            if isinstance(offset, dict) and isinstance(offset.get("entries"), int)
        ]
        if len(read) != len(offsets) or len(read) > 1:
            raise StateError(
                f"{self.checkpoint.offsets} — must be as Spark wrote it; got other offsets than of files: {offsets}. {RESTORE}"
            )
        require_readable(self.checkpoint.manifest_file, self.path, *read)
        return ()

    def tie(self) -> None:
        """See `Source`."""
        write_json(self.checkpoint.source_file, self._identity)

    def rows(self, spark: SparkSession, plan: Plan, end: bool) -> DataFrame:
        """The rows of the intake, streaming."""
        files = Input(
            str(self.path), self.source.format, self.source.max_files_per_trigger, end, self.on_bad_record
        )
        return read_files(spark, plan, files, self.checkpoint.manifest_file)

    @property
    def _identity(self) -> dict[str, Any]:
        return {"kind": "files"}


@dataclass(frozen=True)
class KafkaInput:
    """Topics: first what is there by batches of the wanted size, then the end together with what came meanwhile."""

    topics: Topics
    checkpoint: Checkpoint
    finish: bool

    @property
    def ends(self) -> tuple[bool, ...]:
        """A query for the end where there is one."""
        return (False, True) if self.finish else (False,)

    def require_same(self) -> None:
        """Refuse another source's checkpoint."""
        _require_same_source(self.checkpoint, self._identity)

    def check(self, spark: SparkSession) -> tuple[str, ...]:
        """Refuse brokers that do not answer, and topics that are not there."""
        return partitions_of(spark, self.topics)

    def tie(self) -> None:
        """See `Source`."""
        write_json(self.checkpoint.source_file, self._identity)

    def rows(self, spark: SparkSession, plan: Plan, end: bool) -> DataFrame:
        """The rows of the intake, streaming."""
        return read_kafka(spark, plan, self.topics, end=end)

    @property
    def _identity(self) -> dict[str, Any]:
        return {"kind": "kafka", "topics": list(self.topics.topics)}


def _require_same_source(checkpoint: Checkpoint, source: dict[str, Any]) -> None:
    """Refuse a checkpoint that holds the offsets of another kind of source, or of topics that are no longer named."""
    path = checkpoint.source_file
    stored = read_json(path)
    if stored is None and checkpoint.manifest_file.exists():
        stored = {"kind": "files"}
    if stored is None and checkpoint.last_begun() >= 0:
        raise StateError(f"{path} — must be there where batches are; got no file. {RESTORE}")
    if stored is not None and not (
        stored.get("kind") == "files"
        or (stored.get("kind") == "kafka" and isinstance(stored.get("topics"), list))
    ):
        raise damaged(path, f"another kind of source, {str(stored)[:100]}")
    if stored is not None and stored["kind"] != source["kind"]:
        raise StateError(
            f"{checkpoint} — must belong to a job that reads {source['kind']}; got the checkpoint of one that reads {stored['kind']}. "
            "Use a new checkpoint with a sink of its own."
        )
    gone = [topic for topic in (stored or {}).get("topics", []) if topic not in source["topics"]]
    if gone:
        raise StateError(
            f"{checkpoint} — must go on with its topics; got a job without {', '.join(gone)}. Name them again, or use a new checkpoint with a sink of its own."
        )
