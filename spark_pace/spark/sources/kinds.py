"""The table of all kinds of sources, and the check that a checkpoint belongs to the job's source."""

from __future__ import annotations

from spark_pace.errors import StateError
from spark_pace.io.files.files import RESTORE, damaged, read_json
from spark_pace.job_file import DeltaSource, FilesSource, JobSpec, KafkaSource
from spark_pace.job_file.secrets import Secrets
from spark_pace.spark.checkpoint.checkpoint import Checkpoint
from spark_pace.spark.sources.delta import DeltaInput
from spark_pace.spark.sources.files import FilesInput
from spark_pace.spark.sources.input import Input
from spark_pace.spark.sources.kafka import KafkaInput

_INPUTS: dict[type, type[Input]] = {
    FilesSource: FilesInput,
    KafkaSource: KafkaInput,
    DeltaSource: DeltaInput,
}
# the most that a first batch reads, so that a small input is one batch: bytes of files, records of Kafka
_FIRST_CAPS = {FilesInput.kind: 32 << 20, KafkaInput.kind: 100_000, DeltaInput.kind: 32 << 20}
_LASTING = {kind.kind: kind.lasting for kind in _INPUTS.values()}


def input_of(spec: JobSpec, checkpoint: Checkpoint, secrets: Secrets) -> Input:
    """Make the input of a job.

    Raises:
        SetupError: there are no files, or a variable of the environment is missing.
    """
    source = spec.source.resolved(secrets)
    kind = _INPUTS[type(source)]
    first_cap = None if spec.admission is None else _FIRST_CAPS[kind.kind]
    events = spec.events
    available_now = spec.trigger_us == "available_now"
    return kind(source, checkpoint, spec.finish, events.on_bad_record, first_cap, events.clock, available_now)


def require_same_source(job_input: Input) -> None:
    """Refuse a checkpoint of another kind of source, or one of topics that the job no longer names.

    Raises:
        StateError: the checkpoint belongs to another source, or its `source.json` is damaged or missing.
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
