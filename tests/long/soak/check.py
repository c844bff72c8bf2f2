"""Nothing lost: the producer's ledgers against the job's tables, record by record and match by match."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.jobs import ORDER
from spark_pace import read_table
from spark_pace.core.columns import OFFSET, SOURCE
from spark_pace.core.local import run
from spark_pace.core.order.order import OrderSpec
from spark_pace.core.plan.plan import build_plan
from spark_pace.io.files import EventsRead, read_events
from spark_pace.job_file import read_job
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
    bad = pa.concat_tables([read.bad for read in reads])
    late, quarantine, metrics = (
        read_table(settings.tables, name) for name in ("late", "quarantine", "metrics")
    )
    sums = {name: pc.sum(metrics[name]).as_py() or 0 for name in ("records", "events", "late", "bad_records")}
    produced = events.num_rows + bad.num_rows
    on_time = _without(events, late)
    differences = [
        *_unequal("records read", sums["records"], produced),
        *_unequal("events + late + bad", sums["events"] + sums["late"] + sums["bad_records"], produced),
        *_unequal("rows of late", late.num_rows, sums["late"]),
        *_unequal("positions of quarantined records", _positions(quarantine), _positions(bad)),
        *_unequal(
            "events at the positions of the late ones", events.num_rows - on_time.num_rows, late.num_rows
        ),
    ]
    matches = read_table(settings.tables, "matches").sort_by(ORDER)
    differences += _other_matches(settings, on_time, matches)
    return Account(produced, sums["events"], sums["late"], sums["bad_records"], matches.num_rows, differences)


def _read(settings: Settings, partition: int) -> EventsRead:
    schema = read_job(settings.job_file).events.schema
    return read_events(str(settings.ledger(partition)), "json", schema, f"{TOPIC}/{partition}")


def _positions(rows: pa.Table) -> list[tuple[str, int]]:
    return sorted(zip(rows["source"].to_pylist(), rows["offset"].to_pylist(), strict=True))


def _without(events: pa.Table, late: pa.Table) -> pa.Table:
    """Events less those at the positions of the late ones."""
    aside = (
        late.select(["source", "offset"])
        .rename_columns([SOURCE, OFFSET])
        .cast(pa.schema([(SOURCE, pa.string()), (OFFSET, pa.int64())]))
    )
    keys = pa.table(
        {
            SOURCE: events[SOURCE].cast(pa.string()),
            OFFSET: events[OFFSET],
            "row": pa.array(range(events.num_rows)),
        }
    )
    kept = keys.join(aside, [SOURCE, OFFSET], join_type="left anti")["row"]
    return events.take(kept.take(pc.sort_indices(kept)))


def _other_matches(settings: Settings, events: pa.Table, found: pa.Table) -> list[str]:
    """How the job's matches differ from the core's over the same events in one piece."""
    expected = run(build_plan(read_job(settings.job_file).rules, order=OrderSpec()), [events]).matches
    found = found.select(expected.column_names).cast(expected.schema)
    differing = _unequal("matches", found.num_rows, expected.num_rows)
    if not differing and not found.combine_chunks().equals(expected.combine_chunks()):
        rows = zip(found.to_pylist(), expected.to_pylist(), strict=True)
        differing = [
            f"match {number}: got {ours}; expected {theirs}"
            for number, (ours, theirs) in enumerate(rows)
            if ours != theirs
        ][:10]
    return differing


def _unequal(what: str, got: object, expected: object) -> list[str]:
    if got == expected:
        return []
    shown = [str(len(value)) if isinstance(value, list) else str(value) for value in (got, expected)]
    return [f"{what}: got {shown[0]}, expected {shown[1]}"]
