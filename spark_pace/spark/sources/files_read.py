"""What a job has read so far, for a replay in the same order."""

from __future__ import annotations

from dataclasses import dataclass

from spark_pace.core.order import Tick
from spark_pace.errors import SetupError
from spark_pace.io.files.addresses import AnyPath
from spark_pace.spark.checkpoint.checkpoint import Checkpoint
from spark_pace.spark.checkpoint.layout import id_of
from spark_pace.spark.sources.manifest import FINISH, Manifest, tick_of


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
    ticks = [(entry, tick_of(entry)) for entry in entries if entry != FINISH]
    if all(time_us is not None for _, time_us in ticks):
        must, do = "must be of a job that has read a file", "Run the job first, or leave out --as-read."
        raise SetupError(f"{path} — {must}; got none. {do}")
    parts = tuple(entry if time_us is None else Tick(time_us) for entry, time_us in ticks)
    return FilesRead(parts, FINISH in entries)
