"""What a checkpoint tells those who watch its job: whether it runs, what is under way, how far it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone

from spark_pace.io.files.addresses import AnyPath, StorePath
from spark_pace.spark.checkpoint.batch_begin import read_begin
from spark_pace.spark.checkpoint.checkpoint import Checkpoint, FilesNote, read_note
from spark_pace.spark.checkpoint.layout import checkpoint_in, id_of, read_layout
from spark_pace.spark.checkpoint.lock import Holder, holder


@dataclass(frozen=True)
class Running:
    """The state of a checkpoint.

    Attributes:
        process: the number of the process that runs the job, as `holder` gives it; None if none is known.
        since: when that process began.
        batch: the batch that has begun and is not done; None if none is.
        began: when that batch began first.
        reached: the greatest event time of each source, in microseconds since 1970; empty unless the stream
            is ordered by sources and a batch is done.
        note: in what the job's files differ from what runs, as it has noted; None if they do not.
        renewed: of a checkpoint in a store, when the lease of the process was renewed; None on a disk.
        absent: what is known where no process runs the job, behind "The job".
    """

    process: str | None
    since: datetime | None
    batch: int | None
    began: datetime | None
    reached: dict[str, int] = field(default_factory=dict)
    note: FilesNote | None = None
    renewed: datetime | None = None
    absent: str = "does not run on this machine"


def running(folder: AnyPath) -> Running:
    """The state of the checkpoint in a folder.

    Raises:
        StateError: a file of it is damaged, or it is of another version.
    """
    checkpoint = Checkpoint(folder)
    read_layout(checkpoint)  # in another version every other file may differ
    found = holder(checkpoint)
    batch, began = under_way(checkpoint)
    begin = read_begin(checkpoint, checkpoint.next_batch())
    state = Running(None, None, batch, began, {} if begin is None else begin.reached)
    if found is not None and found.holds:
        renewed = None if found.renewed is None else _time(found.renewed)
        note = read_note(checkpoint)
        return replace(state, process=found.process, since=_time(found.began), note=note, renewed=renewed)
    if not isinstance(folder, StorePath):
        return state
    return replace(state, absent=_without_lease(found))


def checkpoint_of_tables(sink: str) -> AnyPath | None:
    """The place of the checkpoint that lies among the tables of a job; None unless one does."""
    found = checkpoint_in(sink)
    return None if found is None else found.path


def cursors(folder: AnyPath, targets: Sequence[str]) -> tuple[str, list[AnyPath]]:
    """(the id of the checkpoint in a folder, the files that say how far these targets of alerts have come).

    Raises:
        StateError: as in `running`.
    """
    checkpoint = Checkpoint(folder)
    return id_of(checkpoint), [checkpoint.alert_cursor(target) for target in targets]


def _without_lease(last: Holder | None) -> str:
    """What a lease tells that nobody holds: a process that has lost its one may be cut off and live."""
    if last is None or last.renewed is None:
        return "does not run: nobody holds the lease of its checkpoint"
    at = f"{_time(last.renewed):%Y-%m-%d %H:%M:%SZ}"
    return f"is not known to run: process {last.process} has not renewed its lease since {at}"


def under_way(checkpoint: Checkpoint) -> tuple[int | None, datetime | None]:
    """(the batch that has begun and is not done, when it began first), both None if none is.

    Raises:
        StateError: a file of the checkpoint is missing.
    """
    done = checkpoint.last_done()  # first: a batch that is done between the two looks is not under way
    begun = max(checkpoint.begun(), default=-1)
    at = checkpoint.begun_at(begun) if begun > done else None
    return (None, None) if at is None else (begun, _time(at))


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, timezone.utc)
