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
        """Frames and bad records, and at the end one progress row for every slot; none for no names."""
        progress = _Progress()
        waiting: list[pa.Table] = []
        for name in names:
            progress.started = True
            if name == FINISH:
                progress.finish = True
                continue
            path = os.path.join(self.root, name) if os.path.isdir(self.root) else self.root
            read = read_events(path, self.format, self.plan.schema, name)
            progress.add(read.events, read.bad)
            if read.bad.num_rows:
                yield self._bad_row(read.bad)
            waiting.append(read.events)
            if sum(table.num_rows for table in waiting) >= FRAME_EVENTS:
                yield from self._frames(waiting)
                waiting = []
        yield from self._frames(waiting)
        if progress.started:
            yield from ((slot, PROGRESS, progress.body()) for slot in range(self.plan.slots))

    def _frames(self, tables: list[pa.Table]) -> Iterator[Row]:
        if not tables:
            return
        events = pa.concat_tables(tables).unify_dictionaries()
        for start in range(0, events.num_rows, FRAME_EVENTS):
            part = events.slice(start, FRAME_EVENTS).combine_chunks()
            yield from ((slot, FRAME, encode(frame)) for slot, frame in pack(self.plan, part))

    def _bad_row(self, bad: pa.Table) -> Row:
        if self.on_bad_record == "fail":
            first = bad.slice(0, 1).to_pylist()[0]
            raise EventError(f"{first['source']} row {first['offset']}: {first['reason']}. Correct the record, or set on_bad_record to quarantine.")
        return 0, BAD, encode(bad)


@dataclass
class _Progress:
    """What one task has read; `max_time_us` is over all events, wanted or not."""

    started: bool = False
    finish: bool = False
    max_time_us: int | None = None
    events: int = 0
    bad: int = 0

    def add(self, events: pa.Table, bad: pa.Table) -> None:
        self.events += events.num_rows
        self.bad += bad.num_rows
        if events.num_rows:
            latest: int = pc.max(events.column("@time")).as_py()
            self.max_time_us = latest if self.max_time_us is None else max(latest, self.max_time_us)

    def body(self) -> bytes:
        return json.dumps({"finish": self.finish, "max_time_us": self.max_time_us, "events": self.events, "bad": self.bad}).encode()
