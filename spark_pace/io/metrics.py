"""The counters of a batch, and the table `metrics`, which has a row of them for each batch.

To add a counter, add a field here and the line that counts it. The field's mark says where it is counted:

- `TASKS`: in each task of the intake (`spark_pace.spark.stages.intake`); the batch's number is the sum;
- `SLOTS`: in each slot (`spark_pace.core.split.slot_splitter`); the sum as well;
- `ALIKE`: in each slot, always the same number;
- `LANES`: for each lane (`spark_pace.spark.stages.operators`); the sum as well;
- none: in the merger (`spark_pace.spark.stages.merger`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Annotated, Any, get_args, get_type_hints

import pyarrow as pa

from spark_pace.core.tables import UTC_TIME
from spark_pace.errors import counted, one_line

ENOUGH_RECORDS = 1_000  # of fewer it is not told that none has an attribute
TASKS = "tasks"
SLOTS = "slots"
ALIKE = "alike"
LANES = "lanes"
IGNORED = "ignored"  # what tasks count beside the counters: rows that are no records


@dataclass(kw_only=True)
class Counts:
    """The counters that can be added up: those of one batch, or of a whole run."""

    records: Annotated[int, TASKS] = 0  # all records: the sum of the next four and `repeats`
    events: Annotated[int, TASKS] = 0  # events that are neither late nor repeats, used by a rule or not
    late: Annotated[int, TASKS] = 0  # events below the frontier
    bad_records: Annotated[int, TASKS] = 0  # records that are no events
    heartbeats: Annotated[int, TASKS] = 0  # records that only tell how far their source is
    # Events equal to an earlier one. They are found when they are released, perhaps batches after they were
    # read; then they are subtracted from that batch's `events`, so the sum holds in every batch.
    repeats: Annotated[int, ALIKE] = 0
    quarantined: int = 0  # bad records, and selections that an operator failed on

    def add_counts(self, others: Counts) -> None:
        """Add other counters to these."""
        for counter in fields(Counts):
            setattr(self, counter.name, getattr(self, counter.name) + getattr(others, counter.name))


@dataclass(kw_only=True)
class BatchReport(Counts):
    """The counts and times of a batch."""

    batch_id: int  # Spark's number of the batch
    seconds: float  # since the row of the batch before was written, or the job began
    # since Spark began the batch, in the try that wrote its row: without the wait for the trigger
    batch_seconds: float
    matches: dict[str, int]  # new matches of each rule that has any
    pending: Annotated[int, SLOTS]  # events above the frontier
    carry: Annotated[int, SLOTS]  # events kept for selections that are still open
    open: Annotated[int, SLOTS]  # selections that are still open
    state_bytes: Annotated[int, SLOTS]  # compressed state
    frontier_us: int | None  # since 1970; None before the first event and after the end of the input
    max_time_us: int | None  # greatest event time of the batch; None without events
    idle_sources: Annotated[int, ALIKE]  # the number of sources that lag too far behind to hold the frontier
    slowest_source: str | None  # the source that holds the frontier; None unless it follows the sources
    idle_names: tuple[str, ...]  # the names of idle sources, the slowest first; of many the first five
    unheard_sources: tuple[str, ...]  # expected sources that have sent nothing yet; of many the first five
    # if events wait and the frontier stood still: the sources that hold it, the slowest first
    waiting_for: tuple[str, ...]
    finished: bool  # the batch was the end of the input
    # selections that operators worked on; an open one counts in each batch in which they do
    selections: Annotated[int, LANES]
    operator_seconds: Annotated[float, LANES]  # the time of operators, added over all lanes
    lanes: Annotated[int, SLOTS]  # the number of lanes for operators
    lane_rows: Annotated[int, SLOTS]  # events in these lanes
    distinct_rows: Annotated[int, SLOTS]  # likewise, without those that an earlier lane of the rule has too
    longest_lane_seconds: float  # the longest time that operators took for a lane
    longest_lane_predicted: float | None  # the longest time predicted for a lane; None if none was
    over_bound: str | None  # why no cut into lanes was predicted to keep `latency_bound`; else None
    lookups: dict[str, str]  # the version of each side table that the batch has joined
    # attributes that are null in every record of the batch; None if it has none
    absent: list[str] | None = None
    # to object stores, as far as this program's own code asks for them: those of the batch's tasks, and those
    # of the driver since the row of the batch before; without Spark's, delta-rs's, and looks for new files
    store_requests: Annotated[int, SLOTS] = 0
    # of Kafka: offsets without a record, which was compacted away or belongs to a transaction
    skipped_offsets: int = 0
    # for each attribute that the header of a CSV file lacks, the message about it; other messages that are
    # given once in a run, under a name with @
    lacking: dict[str, str] = field(default_factory=dict)
    # of `batch_seconds`: until tasks have found all (`tasks`), until it is in order (`merger`), and `tables`
    stage_seconds: dict[str, float] = field(default_factory=dict)
    newest_us: int | None = None  # greatest event time of the run until then; of `Summary.add`
    # messages about attributes that records lack, which no earlier batch of the run gave; of `Summary.add`
    warnings: list[str] = field(default_factory=list)


@dataclass
class AlertCounts:
    """How the alerts of one target stand since the job was started.

    Attributes:
        target: its name.
        waiting: rows that are not sent yet.
        sent: alerts that it has accepted.
        refused: alerts that it will never accept; they are in the table `alerts_refused`.
        failures: how often it has not accepted a message.
        failure: the last failure in one line; None if there was none.
        is_failing: True from a failure to the next message that it accepts.
    """

    target: str
    waiting: int = 0
    sent: int = 0
    refused: int = 0
    failures: int = 0
    failure: str | None = None
    is_failing: bool = False


def null_in_all(parts: Iterable[Iterable[str] | None]) -> set[str] | None:
    """The attributes that are null in every record of all parts of an input.

    Args:
        parts: the attributes that are null in every record of each part; None for a part without records.

    Returns:
        None if no part has records.
    """
    known = [set(part) for part in parts if part is not None]
    return set.intersection(*known) if known else None


def null_in_every_record(names: str, do: str = "") -> str:
    """The message about attributes that no record has."""
    what = "null in every record; a name in the schema that no record has?"
    return one_line(f"{names}: {what} {do}".rstrip())


def none_in_time(lost: Counts) -> str:
    """The message about records that are all late or bad."""
    told = []
    if lost.late:
        told.append(
            f"{lost.late:,} came late and are in the table late: delay is too short, what sends them is "
            "behind, or one event was of a time to come."
        )
    if lost.bad_records:
        told.append(f"{lost.bad_records:,} could not be read and are in the table quarantine, with reasons.")
    return f"no rule has seen the last {counted(lost.records, 'record')}: {' '.join(told)}"


_TYPES = get_type_hints(BatchReport)
_MARKED = get_type_hints(BatchReport, include_extras=True)
_ARROW: dict[Any, pa.DataType] = {
    int: pa.int64(),
    float: pa.float64(),
    bool: pa.bool_(),
    str | None: pa.string(),
}
_ARROW |= {float | None: pa.float64(), tuple[str, ...]: pa.list_(pa.string())}
_ARROW |= {list[str] | None: pa.list_(pa.string()), dict[str, str]: pa.map_(pa.string(), pa.string())}
# the fields that have no column of their name, each with the columns in its place
_OTHERS = {
    "batch_id": {"batch_id": pa.int64(), "written_at": UTC_TIME},
    "matches": {"matches": pa.int64(), "matches_by_rule": pa.map_(pa.string(), pa.int64())},
    "frontier_us": {"frontier": UTC_TIME},
    "max_time_us": {"max_event_time": UTC_TIME},
    "waiting_for": {},
    "lacking": {},
    "stage_seconds": {},
    "newest_us": {},
    "warnings": {},
}
_FIRST = ["batch_id", "seconds", "batch_seconds"]


def counters_of(mark: str) -> list[str]:
    """The names of the counters with this mark."""
    return [field.name for field in fields(BatchReport) if mark in get_args(_MARKED[field.name])]


def _schema() -> pa.Schema:
    names = [field.name for field in fields(BatchReport) if field.name not in _FIRST]
    columns: dict[str, pa.DataType] = {}
    for name in _FIRST + names:
        columns |= _OTHERS[name] if name in _OTHERS else {name: _ARROW[_TYPES[name]]}
    return pa.schema(list(columns.items()))


METRICS_SCHEMA = _schema()


def metrics_row(report: BatchReport, written_at: datetime) -> pa.Table:
    """The row of a batch in the table `metrics`, with the columns of `METRICS_SCHEMA`."""
    values = {
        **vars(report),
        "written_at": written_at,
        "matches": sum(report.matches.values()),
        "matches_by_rule": list(report.matches.items()),
        "frontier": report.frontier_us,
        "max_event_time": report.max_time_us,
        "lookups": list(report.lookups.items()),
    }
    return pa.table(
        [pa.array([values[column.name]], column.type) for column in METRICS_SCHEMA], schema=METRICS_SCHEMA
    )
