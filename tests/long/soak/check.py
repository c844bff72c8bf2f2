"""Nothing lost: what was sent against the job's tables, record by record and match by match."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace import read_table
from spark_pace.core.intake.sift import without_late
from spark_pace.core.tables import OFFSET, numbers
from spark_pace.io.event_files import read_events
from spark_pace_bench.check import unequal
from spark_pace_bench.drive import Driven
from tests.long.soak.settings import TOPIC


@dataclass(frozen=True)
class Account:
    """What was produced and what became of it.

    Attributes:
        produced: records that were sent.
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


def check(driven: Driven, tables: Path, sent: Path) -> Account:
    """Compare what was sent with the tables. The job's table says what was late, for only the job knows.

    Args:
        driven: the run.
        tables: the job's.
        sent: a file for each partition, whose line n is offset n.
    """
    schema = driven.run.job.events.schema
    reads = {
        f"{TOPIC}/{path.stem}": read_events(str(path), "json", schema, f"{TOPIC}/{path.stem}")
        for path in sent.iterdir()
    }
    events = pa.concat_tables([read.events for read in reads.values()]).unify_dictionaries()
    late, quarantine, metrics = (read_table(tables, name) for name in ("late", "quarantine", "metrics"))
    sums = {name: pc.sum(metrics[name]).as_py() or 0 for name in ("records", "events", "late", "bad_records")}
    produced = sum(read.read_rows for read in reads.values())
    on_time = without_late(events, late.select(["source", "offset"]))
    bad = [  # the records that are no events; `read.bad` has only the first thousand of them
        (source, int(offset))
        for source, read in reads.items()
        for offset in np.setdiff1d(np.arange(read.read_rows), numbers(read.events, OFFSET))
    ]
    told = sorted(zip(quarantine["source"].to_pylist(), quarantine["offset"].to_pylist(), strict=True))
    differences = [
        *unequal("records read", sums["records"], produced),
        *unequal("events + late + bad", sums["events"] + sums["late"] + sums["bad_records"], produced),
        *unequal("rows of late", late.num_rows, sums["late"]),
        *unequal("positions of quarantined records", told, sorted(bad)),
        *unequal(
            "events at the positions of the late ones", events.num_rows - on_time.num_rows, late.num_rows
        ),
        *driven.differences,
    ]
    return Account(produced, sums["events"], sums["late"], sums["bad_records"], driven.matches, differences)
