"""The host of the intake (`mapInArrow`): takes records of a source, gives frames for the slots."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from spark_pace.core.frames import encode
from spark_pace.core.intake.pack import pack
from spark_pace.core.intake.sift import Past, joined, sift_next
from spark_pace.core.order import Progress, Tick, together
from spark_pace.core.plan.plan import OnBad, Plan
from spark_pace.errors import EventError
from spark_pace.io.bad_records import WHOLE_FILE
from spark_pace.io.event_files import EventsRead
from spark_pace.io.files import contract
from spark_pace.io.files.addresses import AnyPath
from spark_pace.io.metrics import IGNORED
from spark_pace.spark.stages.earlier_batches import earlier_than_batch
from spark_pace.spark.stages.rows import BAD, FRAME, LATE, PROGRESS, SLOT_ROWS, Row, giving_back, to_batches
from spark_pace.spark.stages.side_table_copies import side_tables_of_batch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FRAME_EVENTS = 1 << 18  # events before the predicates are tested; frames of 1 to 4 MB travel fastest
FRAME_BYTES = 256 << 20  # bounds a column of text, which can hold 2 GiB at most

Batches = Iterator[pa.RecordBatch]


# what was read; of a file also its index in the order of files, and what a task must know to read it
Found = tuple[EventsRead, int, str]
Read = Callable[[pa.RecordBatch], Iterator[Found | Tick | None]]


def intake_rows(
    records: DataFrame, plan: Plan, on_bad_record: OnBad, read: Read, side_tables: AnyPath | None
) -> DataFrame:
    """The streaming rows of the intake (`SLOT_ROWS`).

    Args:
        records: the streaming rows of the source.
        plan: the plan.
        on_bad_record: says if bad records become rows or an error.
        read: called in a task with some of `records`; yields what it read, for each file separately if
            earlier files decide which events are late, ticks of the clock, and None at the end of the input.
            It must be picklable.
        side_tables: the folder of the checkpoint with copies of side tables. None: the query is a user's,
            whose tasks are told neither of tables nor of the frontier: only splitters decide what is late.
    """

    def rows(batches: Batches) -> Iterator[Row]:
        before = contract.REQUESTS.so_far
        is_told = side_tables is not None and plan.order.before != "files"
        past = earlier_than_batch().past if is_told else Past()
        intake = TaskIntake(plan, past, on_bad_record, side_tables_of_batch(side_tables, plan.schema))
        finish = False
        for batch in batches:
            for found in read(batch):
                if found is None:
                    finish = True
                elif isinstance(found, Tick):
                    intake.tick(found)
                else:
                    yield from intake.take(*found)
        yield from intake.rows_at_end(finish, contract.REQUESTS.so_far - before)

    return records.mapInArrow(lambda batches: giving_back(to_batches(rows(batches), "slot")), SLOT_ROWS)


@dataclass
class TaskIntake:
    """Makes rows of the records of one task, for every kind of source.

    Records of many small files are put together, so that frames do not become small.

    Attributes:
        plan: the plan.
        past: what is known about the records before the next ones.
        on_bad_record: says if bad records become rows or an error.
        side_tables: the tables to join to events, by name.
    """

    plan: Plan
    past: Past
    on_bad_record: OnBad
    side_tables: Mapping[str, pa.Table] = field(default_factory=dict)
    _waiting: list[pa.Table] = field(default_factory=list)
    _waiting_rows: int = 0
    _waiting_bytes: int = 0
    _progress: list[Progress] = field(default_factory=list)
    _counts: Counter[str] = field(default_factory=Counter)  # the counters `TASKS` of `spark_pace.io.metrics`
    _lacking: dict[str, str] = field(default_factory=dict)
    _absent: list[str] | None = None  # attributes that are null in all records so far; None before the first

    def take(self, read: EventsRead, entry: int = 0, listed: str = "") -> Iterator[Row]:
        """Take what was read; yield rows of late and bad records at once, of frames where events are many.

        Args:
            read: the records.
            entry: the index of their file in the order of files, if earlier files decide what is late.
            listed: what a task must know to read that file.

        Raises:
            EventError: there is a bad record, and the job must stop at one.
        """
        records = read.events
        self._lacking = {**read.lacking, **self._lacking}
        self._look_for_absent(records)
        sifted, self.past = sift_next(self.plan, records, self.past, entry, listed)
        self._progress.append(sifted.progress)
        self._counts.update(
            {
                "records": read.read_rows,
                "bad_records": read.bad_rows,
                "heartbeats": sifted.heartbeats,
                "events": sifted.events.num_rows,
                "late": sifted.late.num_rows,
                IGNORED: read.ignored_rows,
            }
        )
        if read.bad_rows:
            yield self._bad_row(read.bad)
        if sifted.late.num_rows:
            yield 0, LATE, encode(sifted.late)
        self._waiting.append(sifted.events)
        self._waiting_rows += sifted.events.num_rows
        self._waiting_bytes += sifted.events.nbytes
        if self._waiting_rows >= FRAME_EVENTS or self._waiting_bytes >= FRAME_BYTES:
            yield from self._frames()

    def _look_for_absent(self, records: pa.Table) -> None:
        """Note which attributes these records lack too. Once all have had a value, nothing is looked at."""
        if records.num_rows:
            names = self._absent
            if names is None:
                names = [attribute.name for attribute in self.plan.schema.own.fields]
            self._absent = [name for name in names if records[name].null_count == records.num_rows]

    def tick(self, tick: Tick) -> None:
        """Take a tick of the clock."""
        self._progress.append(Progress(ticks=(tick,)))

    def rows_at_end(self, finish: bool = False, asked: int = 0) -> Iterator[Row]:
        """Yield rows of the remaining frames, and the same progress row for every slot.

        So every slot is called in every batch, and all slots have the same frontier.

        Args:
            finish: True if the input ends here.
            asked: the requests of the task to stores.
        """
        yield from self._frames()
        progress = asdict(replace(together(self._progress), finish=finish))
        told = {
            "progress": progress,
            "counts": self._counts,
            "lacking": self._lacking,
            "absent": self._absent,
            "store_requests": asked,
        }
        body = json.dumps(told).encode()
        yield from ((slot, PROGRESS, body) for slot in range(self.plan.slots))

    def _frames(self) -> Iterator[Row]:
        """Yield rows of frames, made of the waiting events, for the slots that need them."""
        if not self._waiting:
            return
        events = pa.concat_tables(self._waiting).unify_dictionaries()
        rows = max(1, min(FRAME_EVENTS, events.num_rows * FRAME_BYTES // max(1, self._waiting_bytes)))
        self._waiting, self._waiting_rows, self._waiting_bytes = [], 0, 0
        for start in range(0, events.num_rows, rows):
            part = joined(events.slice(start, rows).combine_chunks(), self.plan.schema, self.side_tables)
            yield from ((slot, FRAME, encode(frame)) for slot, frame in pack(self.plan, part))

    def _bad_row(self, bad: pa.Table) -> Row:
        if self.on_bad_record == "fail":
            source, offset, reason = (bad[name][0].as_py() for name in ("source", "offset", "reason"))
            where = f"{source} — " if reason.startswith(WHOLE_FILE) else f"{source} row {offset}: "
            do = "Correct it, or set on_bad_record to quarantine."
            raise EventError(f"{where}{reason.removeprefix(WHOLE_FILE).rstrip('.')}. {do}")
        return 0, BAD, encode(bad)
