"""Checks, before a query starts, that a checkpoint is whole and as old as its tables.

Spark itself would go on with whatever is left. `Checkpoint` says in which order a batch writes its files.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from spark_pace.errors import StateError
from spark_pace.io.files import files
from spark_pace.io.files.addresses import AnyPath
from spark_pace.io.files.files import RESTORE
from spark_pace.spark.checkpoint.batch_begin import Begins, read_begin, read_state
from spark_pace.spark.checkpoint.checkpoint import Checkpoint, is_behind, is_commit, is_query


def require_whole(
    checkpoint: Checkpoint, written: Mapping[str, int], tables: Collection[str], layout: int = 0
) -> None:
    """Refuse a checkpoint with which a batch could not be finished, or would read another input than before.

    Args:
        checkpoint: the checkpoint.
        written: the last batch in each existing table, -1 if it has none.
        tables: the names of all tables.
        layout: the number of the checkpoint's layout.

    Raises:
        StateError: a file is missing, damaged or that of another batch, or the checkpoint is older or newer
            than the tables.
    """
    begun, done = checkpoint.last_begun(), checkpoint.last_done()
    if begun - done not in (0, 1):
        must = "must know the offsets of each batch that was done"
        got = f"offsets up to batch {begun}, done up to {done}"
        raise StateError(f"{checkpoint} — {must}; got {got}. {RESTORE}")
    _require_tables(checkpoint, written, tables, begun, done)
    if begun > done:
        _require_planned(checkpoint, begun)
        _require_fitting(checkpoint, begun, layout)  # this batch may have written to its tables already
    _require_note(checkpoint.metadata_file, is_query)
    following = done + 1
    if not following:
        return
    _require_note(checkpoint.commit_of(done), is_commit)
    begin = Begins(checkpoint).of(following)
    _require_fitting(checkpoint, done, layout)
    read_state(checkpoint, following, begin.levels)
    checkpoint.chunks().require_whole(begin.chunks)
    _require_age(checkpoint, begin.tables, written, begun, done)


def _require_age(
    checkpoint: Checkpoint, known: Mapping[str, int], written: Mapping[str, int], begun: int, done: int
) -> None:
    for name, batch in known.items():
        if written[name] != batch and not begun == written[name] > done:
            got = f"batch {batch} as the last of {name} here, batch {written[name]} there"
            raise StateError(f"{checkpoint} — must be as old as its tables; got {got}. {RESTORE}")


def _require_note(path: AnyPath, is_sound: Callable[[bytes], bool]) -> None:
    """Refuse a note of Spark's that is damaged. Of a missing note of the query's id Spark itself decides."""
    content = files.read(path)
    if content is not None and not is_sound(content):
        raise _another_content(path)


def _another_content(path: AnyPath) -> StateError:
    return StateError(f"{path} — must be as Spark wrote it; got another content. {RESTORE}")


def _require_planned(checkpoint: Checkpoint, batch_id: int) -> None:
    """Refuse a batch that would read something else than it has begun with, or nothing new."""
    claimed, is_new = files.read(checkpoint.claim_of(batch_id)), True
    if batch_id:
        before, after = map(checkpoint.offsets_after, (batch_id - 1, batch_id))
        is_new = after != before and is_behind(after, before)
    if not is_new or claimed not in (None, checkpoint.note_of(batch_id)):
        raise _another_content(checkpoint.offsets_of(batch_id))


def _require_fitting(checkpoint: Checkpoint, batch_id: int, layout: int) -> None:
    """Refuse other offsets than a batch has read, and a layout from before it, if it has said what it had."""
    following = read_begin(checkpoint, batch_id + 1)
    if following is None:
        return
    if following.offsets not in (None, checkpoint.offsets_digest(batch_id)):
        raise _another_content(checkpoint.offsets_of(batch_id))
    if layout < following.layout:
        got = f"number {layout}, and number {following.layout} in {checkpoint.sequence(batch_id + 1).name}"
        raise StateError(f"{checkpoint.layout_file} — must be as old as its batches; got {got}. {RESTORE}")


def _require_tables(
    checkpoint: Checkpoint, written: Mapping[str, int], tables: Collection[str], begun: int, done: int
) -> None:
    there = written.get("metrics", -1)
    if not done <= there <= begun:
        last = f"batch {there} as the last of metrics" if there >= 0 else "no batch in metrics"
        got = f"batch {begun} here, {last} there"
        raise StateError(f"{checkpoint} — must be as old as its tables; got {got}. {RESTORE}")
    missing = [name for name in tables if name not in written]
    if missing and (done >= 0 or there >= 0):
        got = f"none named {', '.join(missing)}"
        raise StateError(f"{checkpoint} — must have all its tables; got {got}. {RESTORE}")


def remove_leftovers(checkpoint: Checkpoint) -> None:
    """Remove what a killed job left: unused chunks, and temporary files that keep Spark from beginning."""
    if checkpoint.last_begun() < 0:
        for name in files.names(checkpoint.offsets):
            files.remove(checkpoint.offsets / name)  # temporary files; their names start with a dot
    batch = checkpoint.next_batch()
    # the next batch may have run before, and have written what the one after it begins with
    known = [read_begin(checkpoint, one) for one in (batch, batch + 1)]
    checkpoint.chunks().remove_all_but(
        {name for begin in known if begin is not None for name in begin.chunks}
    )
