"""Host of the intake: names of files in, frames for the slots out (`mapInArrow`)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import Literal

import pyarrow as pa

from spark_pace.core.frames import encode
from spark_pace.core.intake.pack import pack
from spark_pace.core.intake.sift import sift
from spark_pace.core.order.order import Progress, together
from spark_pace.core.plan.plan import OnBad, Plan
from spark_pace.errors import EventError
from spark_pace.io.files import WHOLE_FILE, read_source_file
from spark_pace.spark.sources.files import FINISH
from spark_pace.spark.stages.frontier import frontier_of_batch
from spark_pace.spark.stages.rows import BAD, FRAME, LATE, PROGRESS, Row, to_batches

FRAME_EVENTS = 1 << 18  # before the predicates thin them out: frames of 1 to 4 MB cross fastest
FRAME_BYTES = 256 << 20  # a column of text cannot hold more than 2 GiB

Batches = Iterator[pa.RecordBatch]


@dataclass(frozen=True)
class FilesIntake:
    """Reads the files of one task together, so that small files do not make small frames."""

    plan: Plan
    root: str
    format: Literal["json", "csv", "parquet"]
    on_bad_record: OnBad

    def stage(self) -> Callable[[Batches], Batches]:
        """The function for `mapInArrow`: column `name` to rows of `SLOT_ROWS`."""
        return lambda batches: to_batches(
            self.rows(json.loads(name) for batch in batches for name in batch.column(0).to_pylist()), "slot"
        )

    def rows(self, names: Iterable[str]) -> Iterator[Row]:
        """The rows of `TaskIntake`."""
        intake = TaskIntake(self.plan, frontier_of_batch(), self.on_bad_record)
        finish = False
        for name in names:
            if name == FINISH:
                finish = True
                continue
            read = read_source_file(self.root, name, self.format, self.plan.schema)
            yield from intake.take(read.events, read.bad)
        yield from intake.rows_at_end(finish)


@dataclass
class TaskIntake:
    """What one task makes of its records, whatever source they come from.

    Attributes:
        plan: the plan.
        frontier_us: that held when the batch began: events below it are late.
        on_bad_record: whether bad records become rows or an error.
    """

    plan: Plan
    frontier_us: int
    on_bad_record: OnBad
    _waiting: list[pa.Table] = field(default_factory=list)
    _waiting_rows: int = 0
    _waiting_bytes: int = 0
    _progress: Progress = field(default_factory=Progress)
    _counts: Counter[str] = field(
        default_factory=lambda: Counter(records=0, events=0, late=0, heartbeats=0, bad_records=0)
    )

    def take(self, records: pa.Table, bad: pa.Table | None = None) -> Iterator[Row]:
        """Take records in; gives frames as soon as there are enough events, late events, and bad records.

        Args:
            records: valid ones: ``@time, @source, @offset`` and the schema's attributes.
            bad: those that are no events, as `spark_pace.io.files.BAD_SCHEMA`; None: there are none.

        Raises:
            EventError: there is a bad record, and the job is to stop at one.
        """
        bad_rows = 0 if bad is None else bad.num_rows
        sifted = sift(self.plan, records, self.frontier_us)
        self._progress = together([self._progress, sifted.progress])
        self._counts.update(
            records=records.num_rows + bad_rows, bad_records=bad_rows, heartbeats=sifted.heartbeats
        )
        self._counts.update(events=sifted.events.num_rows, late=sifted.late.num_rows)
        if bad_rows:
            yield self._bad_row(bad)
        if sifted.late.num_rows:
            yield 0, LATE, encode(sifted.late)
        self._waiting.append(sifted.events)
        self._waiting_rows += sifted.events.num_rows
        self._waiting_bytes += sifted.events.nbytes
        if self._waiting_rows >= FRAME_EVENTS or self._waiting_bytes >= FRAME_BYTES:
            yield from self._frames()

    def rows_at_end(self, finish: bool = False) -> Iterator[Row]:
        """What is left, and the same progress row for every slot: so each is called in every batch, and all have one frontier.

        Args:
            finish: the input is bounded and ends here.
        """
        yield from self._frames()
        progress = asdict(replace(self._progress, finish=finish))
        body = json.dumps({"progress": progress, "counts": self._counts}).encode()
        yield from ((slot, PROGRESS, body) for slot in range(self.plan.slots))

    def _frames(self) -> Iterator[Row]:
        """The events that wait, as the frames of the slots that need them."""
        if not self._waiting:
            return
        events = pa.concat_tables(self._waiting).unify_dictionaries()
        rows = max(1, min(FRAME_EVENTS, events.num_rows * FRAME_BYTES // max(1, self._waiting_bytes)))
        self._waiting, self._waiting_rows, self._waiting_bytes = [], 0, 0
        for start in range(0, events.num_rows, rows):
            part = events.slice(start, rows).combine_chunks()
            yield from ((slot, FRAME, encode(frame)) for slot, frame in pack(self.plan, part))

    def _bad_row(self, bad: pa.Table) -> Row:
        if self.on_bad_record == "fail":
            first = bad.slice(0, 1).to_pylist()[0]
            if first["reason"].startswith(WHOLE_FILE):
                wrong = first["reason"].removeprefix(WHOLE_FILE).rstrip(".")
                raise EventError(
                    f"{first['source']} — {wrong}. Put a good file of that name in its place, or set on_bad_record to quarantine."
                )
            raise EventError(
                f"{first['source']} row {first['offset']}: {first['reason']}. Correct the record, or set on_bad_record to quarantine."
            )
        return 0, BAD, encode(bad)
