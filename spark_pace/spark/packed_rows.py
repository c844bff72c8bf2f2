"""The rows of a row pattern: the tasks that read them sort and pack them, for those that search them.

The search is the least part of the work. Spark takes many times as long to sort rows and to hand them to
Python. So each task hands the rows that it reads to Python, sorts them there and packs them as frames, one
for each bucket of partitions; a task that searches unpacks and merges the frames of its buckets. Numbers are
sorted quicker than rows, and frames are moved quicker. Without ``PARTITION BY`` there is one bucket.

The plan is lazy and reads its input once. Each task takes some hundredths of a second to begin, so partitions
of a small input are put together before (`spark_pace.spark.row_patterns.in_few_tasks`), as Spark does it with
small files. Rows that are equal in ``ORDER BY`` come in the order in which tasks read them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from spark_pace.core.frames import decode, encode
from spark_pace.core.hashes import hash_nullable
from spark_pace.core.match.row_patterns.rows import sorted_table, typed
from spark_pace.core.plan.row_pattern import RowPattern
from spark_pace.core.tables import Ints, concat

_ENOUGH_BUCKETS = 512  # more would make frames small where rows are few
_BUCKETS_OF_TASK = 8
AT_ONCE_ROWS = 1 << 20  # rows of whole buckets that a task searches at a time, about
FRAME_BYTES = 32 << 20  # of the rows that are sorted and packed at a time, about
# Spark bounds what it hands to Python at a time by rows, 10,000 unless it is told otherwise
PIECE_BYTES = 1 << 13
PLACES = ("bucket", "task", "frame", "piece")  # where a piece belongs, in the order that `unpacked` needs
PIECES = ", ".join([*(f"{name} INT" for name in PLACES), "bytes BINARY"])
_SCHEMA = pa.schema([*((name, pa.int32()) for name in PLACES), ("bytes", pa.binary())])

Batches = Iterator[pa.RecordBatch]


def buckets_for(tasks: int) -> int:
    """How many buckets spread the partitions over so many tasks.

    Spark gives a bucket to a task by a hash: of as many buckets as tasks, few tasks would get nearly all.
    """
    return max(tasks, min(_BUCKETS_OF_TASK * tasks, _ENOUGH_BUCKETS))


def packed(plan: RowPattern, names: Sequence[str], buckets: int, task: int, batches: Batches) -> Batches:
    """The rows that a task reads as pieces of sorted frames (`PIECES`).

    Args:
        plan: the plan.
        names: the names of the columns.
        buckets: how many buckets the partitions are put into.
        task: the number of the task, in the order of the input.
        batches: the rows, in the order of the input.
    """
    for number, table in enumerate(_gathered(batches)):
        rows = sorted_table(table.rename_columns(list(names)), (), plan.order)
        pieces = []
        for bucket, part in _in_buckets(rows, plan.partition, buckets):
            frame = encode(part)
            for piece, at in enumerate(range(0, len(frame), PIECE_BYTES)):
                pieces.append((bucket, task, number, piece, frame[at : at + PIECE_BYTES]))
        arrays = [
            pa.array(cells, one.type) for cells, one in zip(zip(*pieces, strict=True), _SCHEMA, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(arrays, schema=_SCHEMA)


def _gathered(batches: Batches) -> Iterator[pa.Table]:
    waiting: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        waiting.append(batch)
        size += batch.nbytes
        if size >= FRAME_BYTES:
            yield pa.Table.from_batches(waiting)
            waiting, size = [], 0
    if any(batch.num_rows for batch in waiting):
        yield pa.Table.from_batches(waiting)


def _in_buckets(rows: pa.Table, partition: Sequence[str], buckets: int) -> Iterator[tuple[int, pa.Table]]:
    """The buckets that have rows, and these rows, which stay in their order."""
    if buckets == 1:
        yield 0, rows
        return
    of = _buckets(rows, partition, buckets)
    together = np.argsort(of, kind="stable")
    rows, bounds = rows.take(pa.array(together)), np.searchsorted(of[together], np.arange(buckets + 1))
    for bucket in np.flatnonzero(np.diff(bounds)).tolist():
        yield bucket, rows.slice(bounds[bucket], bounds[bucket + 1] - bounds[bucket])


def _buckets(rows: pa.Table, partition: Sequence[str], buckets: int) -> Ints:
    """The bucket of each row, one for all rows of a partition, in the least type, which is sorted fastest."""
    hashes = np.zeros(rows.num_rows, np.uint64)
    for name in partition:
        hashes = hashes * np.uint64(31) + hash_nullable(typed(rows, name))  # null is a key too
    return (hashes % np.uint64(buckets)).astype(np.min_scalar_type(buckets))  # type: ignore[no-any-return]


def unpacked(plan: RowPattern, batches: Batches) -> Iterator[pa.Table]:
    """All rows of some buckets at a time, the rows of each partition together and sorted.

    Args:
        plan: the plan.
        batches: the pieces of some buckets, sorted by `PLACES`.
    """
    frames: list[pa.Table] = []
    bucket = rows = 0
    for of, frame in _frames(batches):
        if of != bucket and rows >= AT_ONCE_ROWS:
            yield _merged(plan, frames)
            rows = 0
        frames.append(frame)
        bucket, rows = of, rows + frame.num_rows
    if frames:
        yield _merged(plan, frames)


def _merged(plan: RowPattern, frames: list[pa.Table]) -> pa.Table:
    rows = concat(frames)
    frames.clear()  # frees their memory
    return sorted_table(rows, plan.partition, plan.order)


def _frames(batches: Batches) -> Iterator[tuple[int, pa.Table]]:
    """The frames, each with its bucket."""
    parts: list[bytes] = []
    last = (0, 0, 0)
    for batch in batches:
        for *frame, _, part in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            if parts and last != tuple(frame):
                yield last[0], decode(b"".join(parts))
                parts = []
            last = (frame[0], frame[1], frame[2])
            parts.append(part)
    if parts:
        yield last[0], decode(b"".join(parts))
