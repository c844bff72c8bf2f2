"""Host of the intake: names of files in, frames for the slots out (`mapInArrow`)."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.frames import encode
from spark_pace.core.intake import pack
from spark_pace.core.plan import Plan
from spark_pace.errors import EventError
from spark_pace.io.files import read_events
from spark_pace.spark.rows import BAD, FRAME, PROGRESS, Row, to_batches
from spark_pace.spark.source import FINISH

FRAME_EVENTS = 1 << 18  # before the predicates thin them out: frames of 1 to 4 MB cross fastest

Batches = Iterator[pa.RecordBatch]


@dataclass(frozen=True)
class FilesIntake:
    """Reads the files of one task together, so that small files do not make small frames."""

    plan: Plan
    root: str
    format: Literal["json", "csv", "parquet"]
    on_bad_record: Literal["quarantine", "fail"]

    def stage(self) -> Callable[[Batches], Batches]:
        """The function for `mapInArrow`: column `name` to rows of `SLOT_ROWS`."""
        return lambda batches: to_batches(self.rows(name for batch in batches for name in batch.column(0).to_pylist()), "slot")

    def rows(self, names: Iterable[str]) -> Iterator[Row]:
        """Frames and bad records, and at the end one progress row for every slot."""
        progress = TaskProgress()
        waiting: list[pa.Table] = []
        for name in names:
            if name == FINISH:
                progress.finish = True
                continue
            path = os.path.join(self.root, name) if os.path.isdir(self.root) else self.root
            read = read_events(path, self.format, self.plan.schema, name)
            progress.add(read.events, read.bad.num_rows)
            if read.bad.num_rows:
                yield self._bad_row(read.bad)
            waiting.append(read.events)
            if sum(table.num_rows for table in waiting) >= FRAME_EVENTS:
                yield from frame_rows(self.plan, waiting)
                waiting = []
        yield from frame_rows(self.plan, waiting)
        yield from progress.rows(self.plan.slots)

    def _bad_row(self, bad: pa.Table) -> Row:
        if self.on_bad_record == "fail":
            first = bad.slice(0, 1).to_pylist()[0]
            raise EventError(f"{first['source']} row {first['offset']}: {first['reason']}. Correct the record, or set on_bad_record to quarantine.")
        return 0, BAD, encode(bad)


def frame_rows(plan: Plan, tables: list[pa.Table]) -> Iterator[Row]:
    """Tables of events as the frames of the slots that need them."""
    if not tables:
        return
    events = pa.concat_tables(tables).unify_dictionaries()
    for start in range(0, events.num_rows, FRAME_EVENTS):
        part = events.slice(start, FRAME_EVENTS).combine_chunks()
        yield from ((slot, FRAME, encode(frame)) for slot, frame in pack(plan, part))


@dataclass
class TaskProgress:
    """What one task has read; `max_time_us` is over all its events, wanted or not."""

    finish: bool = False
    max_time_us: int | None = None
    events: int = 0
    bad: int = 0

    def add(self, events: pa.Table, bad_rows: int = 0) -> None:
        """Count events and bad records."""
        self.events += events.num_rows
        self.bad += bad_rows
        if events.num_rows:
            latest: int = pc.max(events.column("@time")).as_py()
            self.max_time_us = latest if self.max_time_us is None else max(latest, self.max_time_us)

    def rows(self, slots: int) -> Iterator[Row]:
        """The same row for every slot: so each is called in every batch, and all have one frontier."""
        body = json.dumps(vars(self)).encode()
        return ((slot, PROGRESS, body) for slot in range(slots))
