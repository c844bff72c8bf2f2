"""Nothing lost: the producer's ledgers against the job's tables, record by record and match by match."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace import read_table
from spark_pace.core.intake.sift import without_late
from spark_pace.core.tables import OFFSET, numbers
from spark_pace.io.event_files import EventsRead, read_events
from spark_pace.job_file import read_job
from spark_pace_bench.check import differing_matches, unequal
from tests.long.soak.settings import TOPIC, Settings


@dataclass(frozen=True)
class Account:
    """What was produced and what became of it.

    Attributes:
        produced: records in the ledgers.
        events: on time, by the job's metrics; late and bad likewise.
        matches: in the table.
        differences: sentences; empty where nothing is lost and nothing too many.
    """

    produced: int
    events: int
    late: int
    bad: int
    matches: int
    differences: list[str]


def check(settings: Settings) -> Account:
    """Compare the ledgers with the tables. The job's table says what was late, for only the job knows."""
    reads = [_read(settings, partition) for partition in range(settings.partitions)]
    events = pa.concat_tables([read.events for read in reads]).unify_dictionaries()
    bad = [position for number, read in enumerate(reads) for position in _bad_positions(number, read)]
    late, quarantine, metrics = (
        read_table(settings.tables, name) for name in ("late", "quarantine", "metrics")
    )
    sums = {name: pc.sum(metrics[name]).as_py() or 0 for name in ("records", "events", "late", "bad_records")}
    produced = sum(read.read_rows for read in reads)
    on_time = without_late(events, late.select(["source", "offset"]))
    differences = [
        *unequal("records read", sums["records"], produced),
        *unequal("events + late + bad", sums["events"] + sums["late"] + sums["bad_records"], produced),
        *unequal("rows of late", late.num_rows, sums["late"]),
        *unequal("positions of quarantined records", _positions(quarantine), sorted(bad)),
        *unequal(
            "events at the positions of the late ones", events.num_rows - on_time.num_rows, late.num_rows
        ),
    ]
    _, matches, differing = differing_matches(read_job(settings.job_file), events, settings.tables)
    differences += differing
    return Account(produced, sums["events"], sums["late"], sums["bad_records"], matches, differences)


def _read(settings: Settings, partition: int) -> EventsRead:
    schema = read_job(settings.job_file).events.schema
    return read_events(str(settings.ledger(partition)), "json", schema, f"{TOPIC}/{partition}")


def _bad_positions(partition: int, read: EventsRead) -> list[tuple[str, int]]:
    """Where the records are that are no events; `read.bad` has only the first thousand of them."""
    every = np.arange(read.read_rows)
    return [
        (f"{TOPIC}/{partition}", int(offset)) for offset in np.setdiff1d(every, numbers(read.events, OFFSET))
    ]


def _positions(rows: pa.Table) -> list[tuple[str, int]]:
    return sorted(zip(rows["source"].to_pylist(), rows["offset"].to_pylist(), strict=True))
