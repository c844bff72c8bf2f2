"""What a checkpoint tells of the job: whether it runs, which batch is under way, how far its sources are."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Literal

from spark_pace.io.files.store_path import AnyPath
from spark_pace.spark.checkpoint.batch_begin import read_begin
from spark_pace.spark.checkpoint.checkpoint import Checkpoint
from spark_pace.spark.checkpoint.files_note import FilesNote, read_note
from spark_pace.spark.checkpoint.lock import holder
from spark_pace.watching.seen import Seen

Word = Literal["runs", "finished", "stopped", "unknown"]


@dataclass(frozen=True)
class Running:
    """The state of a checkpoint.

    Attributes:
        process: the number of the process of this machine that runs the job; None if none does.
        since: when that process began.
        batch: the batch that has begun and is not done; None if none is.
        began: when that batch began first.
        reached: the greatest event time of each source, in microseconds since 1970; empty unless the stream
            is ordered by sources and a batch is done.
        note: in what the job's files differ from what runs, as it has noted; None if they do not.
    """

    process: str | None
    since: datetime | None
    batch: int | None
    began: datetime | None
    reached: dict[str, int] = field(default_factory=dict)
    note: FilesNote | None = None


def running(folder: AnyPath) -> Running:
    """The state of the checkpoint in a folder.

    Raises:
        StateError: a file of it is damaged.
    """
    checkpoint = Checkpoint(folder)
    holding = holder(checkpoint)
    process, since = (None, None) if holding is None else (holding[0], _time(holding[1]))
    batch, began = under_way(checkpoint)
    begin = read_begin(checkpoint, checkpoint.next_batch())
    note = None if process is None else read_note(checkpoint)
    return Running(process, since, batch, began, {} if begin is None else begin.reached, note)


def under_way(checkpoint: Checkpoint) -> tuple[int | None, datetime | None]:
    """(the batch that has begun and is not done, when it began first), both None if none is.

    Raises:
        StateError: a file of the checkpoint is missing.
    """
    done = checkpoint.last_done()  # first: a batch that is done between the two looks is not under way
    begun = max(checkpoint.begun(), default=-1)
    at = checkpoint.begun_at(begun) if begun > done else None
    return (None, None) if at is None else (begun, _time(at))


def state_word(seen: Seen, state: Running | None) -> Word:
    """`runs` on this machine, has `finished` its input, or is `stopped`; `unknown` without its checkpoint."""
    if state is not None and state.process is not None:
        return "runs"
    if seen.last is not None and seen.last["finished"]:
        return "finished"
    return "unknown" if state is None else "stopped"


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, timezone.utc)
