"""Fixes what a batch reads, before any task of it runs: ``claims/N`` has Spark's note of it once more.

So a note that was changed since then is refused. In a store, Spark looks whether its note of a batch is
there, and then writes it. A job that was paused between the two, and has lost its lease meanwhile, writes
over the note of the job that went on. But the store lets nobody write over a claim: whoever finds another
content there has lost the checkpoint, and ends before its tasks begin. At a start there, Spark's notes are
mended by the claims.

The class of Spark that writes its files to S3 (`AbortableStreamBasedCheckpointFileManager`) only logs that a
file was refused, and goes on as if it were there. Notes are written again (`mend_notes`); a state cannot be,
so its batch must not be done without it.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from spark_pace.errors import SetupError, StateError
from spark_pace.io.files import files
from spark_pace.io.files.addresses import StorePath
from spark_pace.io.files.contract import OtherFileError
from spark_pace.io.files.files import RESTORE
from spark_pace.spark.checkpoint.batch_begin import read_begin
from spark_pace.spark.checkpoint.checkpoint import Checkpoint
from spark_pace.spark.checkpoint.spark_notes import COMMIT, began_at, offsets_in


def claim(checkpoint: Checkpoint, batch_id: int, planned: Callable[[int], bytes | None]) -> bytes:
    """Claim a batch for what this job is about to read in it.

    Args:
        checkpoint: the checkpoint.
        batch_id: the batch.
        planned: gives Spark's note of what the batch reads, from its memory; None if Spark has none there.

    Returns:
        Spark's note.

    Raises:
        StateError: Spark has none.
        SetupError: another job has claimed it, to read something else.
    """
    path = checkpoint.claim_of(batch_id)
    if not isinstance(path, StorePath):  # on a disk nobody else can have it, and a start has compared them
        noted = checkpoint.note_of(batch_id)
        if files.read(path) != noted:  # a machine that stops may lose a note and keep its claim
            files.write(path, noted)
        return noted
    note = planned(batch_id)
    if note is None:
        must, do = "must be planned by the query that runs it", "Start the job again."
        raise StateError(f"{checkpoint.offsets_of(batch_id)} — {must}; got no such note. {do}")
    try:
        files.write_new(path, note)
    except OtherFileError:
        must, got = "must be run by one job", f"batch {batch_id} with another input by another job"
        do = "Let that job run; start this one again if it has ended."
        raise SetupError(f"{checkpoint} — {must}; got {got}. {do}") from None
    return note


def mend_notes(checkpoint: Checkpoint) -> None:
    """Write Spark's notes of the last batches anew, where another job has changed them or they are missing.

    A batch only begins once
    the batch before it is done. The notes of the last two that are done are needed; a third may be under way.

    Raises:
        StateError: what was claimed is damaged.
    """
    if not isinstance(checkpoint.path, StorePath):
        return
    last = sorted({*checkpoint.begun(), *checkpoint.claimed()})[-3:]
    for batch_id in last[-2:]:
        _mend_offsets(checkpoint, batch_id)
    done = files.names(checkpoint.commits)
    for batch_id in last[:-1]:
        if str(batch_id) not in done:
            files.write(checkpoint.commit_of(batch_id), COMMIT)


def _mend_offsets(checkpoint: Checkpoint, batch_id: int) -> None:
    """Write Spark's note of what a batch reads as it was claimed.

    All notes of a query are of as many sources, and what a batch has written says which note it was of.
    """
    claimed = files.read(checkpoint.claim_of(batch_id))
    noted = files.read(checkpoint.offsets_of(batch_id))
    if claimed is None or claimed == noted:
        return
    before = files.read(checkpoint.offsets_of(batch_id - 1)) if batch_id else None
    following = read_begin(checkpoint, batch_id + 1)
    known = None if following is None else following.offsets
    if known not in (None, checkpoint.offsets_digest(batch_id, claimed)) or not _may_replace(
        claimed, before or noted or b""
    ):
        must, got = "must be the note that Spark had of this batch", "another content"
        raise StateError(f"{checkpoint.claim_of(batch_id)} — {must}; got {got}. {RESTORE}")
    files.write(checkpoint.offsets_of(batch_id), claimed)


def _may_replace(claimed: bytes, other: bytes) -> bool:
    """True if this is a note of Spark's, of as many sources as another note of the query is."""
    sources = _sources(claimed)
    return sources > 0 and began_at(claimed) is not None and _sources(other) in (0, sources)


def _sources(note: bytes) -> int:
    """Of how many sources a note of Spark's is; 0 if it is none."""
    try:
        return len(offsets_in(note.decode()))
    except ValueError:
        return 0


def require_states(checkpoint: Checkpoint, batch_id: int, slots: int) -> None:
    """Refuse to go on behind a batch whose states have not reached S3; elsewhere Spark itself does.

    S3 is asked for a list, by one request for each thousand files.

    Args:
        checkpoint: the checkpoint.
        batch_id: the batch, whose tasks have ended.
        slots: how many have a state.

    Raises:
        SetupError: one is not there.
    """
    path = checkpoint.path / "state" / "0"
    if not isinstance(path, StorePath) or not path.is_in_s3:
        return
    of_batch = re.compile(rf"(\d+)/{batch_id + 1}(?:_[^/.]*)?\.\w+")
    found = map(of_batch.fullmatch, files.listing(path).look(""))
    there = len({file[1] for file in found if file})
    if there < slots:
        must = f"must have Spark's state of batch {batch_id} for each of {slots} slots"
        got = f"it for {there}: the store has refused the others"
        do = "Start the job again: it does the batch again."
        raise SetupError(f"{checkpoint.path / 'state'} — {must}; got {got}. {do}")
