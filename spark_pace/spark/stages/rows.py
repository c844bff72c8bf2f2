"""The rows that go from stage to stage of the query: a number, a kind, and a body of a few MB at most.

- intake to splitter: `FRAME`, `PROGRESS`, `LATE`, `BAD`;
- splitter to operators: `LANE` (or `RESULT` and `WORK` for lanes that the splitter worked off), `LATE`,
  `BAD`, `STATS`;
- operators to merger: `RESULT` and `WORK` in place of `LANE`, and the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

FRAME = "frame"  # events of one slot
PROGRESS = "progress"  # JSON: what one intake task has read, sent to every slot
BAD = "bad"  # records that are no events
LANE = "lane"  # selections for one operator instance
RESULT = "result"  # the result of a lane
WORK = "work"  # JSON: how much an operator worked off, and in what time
LATE = "late"  # events below the frontier
STATS = "stats"  # JSON: counts of one slot

SLOT_ROWS = "slot int, kind string, body binary"
PART_ROWS = "part int, kind string, body binary"
BATCH_BYTES = 32 << 20  # the size of the bodies in one Arrow batch, about

Row = tuple[int, str, bytes]


def to_batches(rows: Iterable[Row], number: str) -> Iterator[pa.RecordBatch]:
    """Pack rows into Arrow batches, below Spark's and Arrow's limits; `number` names the first column."""
    taken: list[Row] = []
    size = 0
    for row in rows:
        taken.append(row)
        size += len(row[2])
        if size >= BATCH_BYTES:
            yield _batch(taken, number)
            taken, size = [], 0
    if taken:
        yield _batch(taken, number)


def _batch(rows: list[Row], number: str) -> pa.RecordBatch:
    numbers, kinds, bodies = zip(*rows, strict=True)
    schema = pa.schema([(number, pa.int32()), ("kind", pa.string()), ("body", pa.binary())])
    columns = [pa.array(numbers, pa.int32()), pa.array(kinds), pa.array(bodies, pa.binary())]
    return pa.record_batch(columns, schema=schema)
