"""The rows of a row pattern without ``PARTITION BY``: all tasks sort and pack them, one task searches them.

The search is the least part of the work. Spark takes many times as long to sort the rows and to hand them to
Python, and one partition would be one task. Here each task hands the rows that it reads to Python, sorts
them there and packs them as frames. The last task unpacks these, merges them and searches. That takes half
the processor time, too, because numbers are sorted quicker than rows, and frames are moved quicker.

The plan is lazy and reads its input once. Each task takes some hundredths of a second to begin, so partitions
of a small input are put together before (`spark_pace.spark.row_patterns.in_few_tasks`), as Spark does it with
small files. Rows that are equal in ``ORDER BY`` come in the order in which tasks read them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import pyarrow as pa

from spark_pace.core.frames import decode, encode
from spark_pace.core.match.row_patterns.rows import sorted_table
from spark_pace.core.plan.row_pattern import RowPattern
from spark_pace.core.tables import in_chunks

FRAME_BYTES = 32 << 20  # of the rows that are sorted and packed at a time, about
# Spark bounds what it hands to Python at a time by rows, 10,000 unless it is told otherwise
PIECE_BYTES = 1 << 13
PIECES = "task INT, frame INT, piece INT, bytes BINARY"
_FIELDS = [("task", pa.int32()), ("frame", pa.int32()), ("piece", pa.int32()), ("bytes", pa.binary())]

Batches = Iterator[pa.RecordBatch]


def packed(plan: RowPattern, names: tuple[str, ...], task: int, batches: Batches) -> Batches:
    """The rows that a task reads as pieces of sorted frames (`PIECES`).

    Args:
        plan: the plan.
        names: the names of the columns.
        task: the number of the task, in the order of the input.
        batches: the rows, in the order of the input.
    """
    for number, table in enumerate(_gathered(batches)):
        frame = encode(sorted_table(table.rename_columns(list(names)), (), plan.order))
        pieces = [frame[at : at + PIECE_BYTES] for at in range(0, len(frame), PIECE_BYTES)]
        columns = [task] * len(pieces), [number] * len(pieces), range(len(pieces)), pieces
        arrays = [pa.array(column, kind) for column, (_, kind) in zip(columns, _FIELDS, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=pa.schema(_FIELDS))


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


def unpacked(plan: RowPattern, batches: Batches) -> pa.Table | None:
    """All rows, sorted; None if there are none.

    Args:
        plan: the plan.
        batches: the pieces of all tasks, in any order.
    """
    frames = list(_frames(batches))
    if not frames:
        return None
    rows = in_chunks(frames).combine_chunks()
    frames.clear()  # frees their memory
    return sorted_table(rows, (), plan.order)


def _frames(batches: Batches) -> Iterator[pa.Table]:
    """The frames in the order of the input."""
    pieces: dict[tuple[int, int], dict[int, bytes]] = defaultdict(dict)
    for batch in batches:
        for task, frame, piece, part in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            pieces[task, frame][piece] = part
    for frame in sorted(pieces):
        parts = pieces.pop(frame)
        yield decode(b"".join(parts[piece] for piece in range(len(parts))))
