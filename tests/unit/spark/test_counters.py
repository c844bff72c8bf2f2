"""The counters of a batch: one dataclass names them, all that counts or shows them follows it. No Spark."""

from __future__ import annotations

import json
from dataclasses import fields
from datetime import datetime, timezone

import pyarrow as pa

from spark_pace.core.intake.pack import pack
from spark_pace.core.intake.sift import Past, sift
from spark_pace.core.operate.python_operator import call_here
from spark_pace.core.order import Progress
from spark_pace.core.plan.plan import Plan
from spark_pace.core.split.slot_splitter import SlotSplitter
from spark_pace.io.event_files import table_events
from spark_pace.io.metrics import (
    ALIKE,
    IGNORED,
    LANES,
    METRICS_SCHEMA,
    SLOTS,
    TASKS,
    BatchReport,
    Counts,
    counters_of,
    metrics_row,
)
from spark_pace.job import Summary
from spark_pace.spark.detect import COUNTS
from spark_pace.spark.stages.intake import TaskIntake
from spark_pace.spark.stages.operators import worked_off
from spark_pace.spark.stages.rows import RESULT, WORK

RULES = """
events: {schema: "time TIMESTAMP, x BIGINT", event_time: time}
rules:
  - {name: r, pattern: {sequence: [{a: x > 0}, {b: x > 1}]}, within: 10 s}
"""
TIME = "timestamp[us, tz=UTC]"
WRITTEN = datetime(2024, 1, 1, tzinfo=timezone.utc)
IN_LANES = {"rule_index", "predicted_seconds", "sums"}  # of these the driver makes other counters
IN_SLOTS = {"state_bytes", "store_requests"}  # the host of the splitter counts these


def report(number: int) -> BatchReport:
    """A report in which every counter is another number."""
    counts = {counter.name: number + place for place, counter in enumerate(fields(Counts))}
    return BatchReport(
        **counts, batch_id=1, seconds=2.0, batch_seconds=1.0, matches={"r": 3, "s": 4},
        pending=5, carry=6, open=7,
        state_bytes=8, frontier_us=9, max_time_us=10, idle_sources=11, slowest_source="s",
        idle_names=("t",), unheard_sources=("u",),
        waiting_for=("s",), finished=True, selections=12, operator_seconds=13.0,
        lanes=14, lane_rows=15, distinct_rows=16,
        longest_lane_seconds=17.0, longest_lane_predicted=18.0, over_bound="too much", lookups={"hosts": "a"},
        absent=["x"], store_requests=19, skipped_offsets=20,
    )  # fmt: skip


def test_the_table_has_the_columns_that_it_has_always_had() -> None:
    assert [(column.name, str(column.type)) for column in METRICS_SCHEMA] == [
        ("batch_id", "int64"),
        ("written_at", TIME),
        ("seconds", "double"),
        ("batch_seconds", "double"),
        *((name, "int64") for name in ("records", "events", "late", "bad_records")),
        *((name, "int64") for name in ("heartbeats", "repeats", "quarantined")),
        ("matches", "int64"),
        ("matches_by_rule", "map<string, int64>"),
        *((name, "int64") for name in ("pending", "carry", "open", "state_bytes")),
        ("frontier", TIME),
        ("max_event_time", TIME),
        ("idle_sources", "int64"),
        ("slowest_source", "string"),
        *((name, "list<item: string>") for name in ("idle_names", "unheard_sources")),
        ("finished", "bool"),
        ("selections", "int64"),
        ("operator_seconds", "double"),
        *((name, "int64") for name in ("lanes", "lane_rows", "distinct_rows")),
        *((name, "double") for name in ("longest_lane_seconds", "longest_lane_predicted")),
        ("over_bound", "string"),
        ("lookups", "map<string, string>"),
        ("absent", "list<item: string>"),
        ("store_requests", "int64"),
        ("skipped_offsets", "int64"),
    ]


def test_a_row_of_the_table_says_all_that_the_report_says() -> None:
    (row,) = metrics_row(report(100), WRITTEN).to_pylist()
    shown = ("records", "quarantined", "pending", "state_bytes", "idle_sources", "selections")
    assert [row[name] for name in (*shown, "store_requests", "skipped_offsets")] == [
        100,
        106,
        5,
        8,
        11,
        12,
        19,
        20,
    ]
    assert (row["matches"], row["matches_by_rule"], row["written_at"]) == (7, [("r", 3), ("s", 4)], WRITTEN)
    assert not [name for name, value in row.items() if value is None]


def test_a_run_adds_up_every_sum_of_its_batches() -> None:
    summary = Summary({"r": 0, "s": 1})
    for number in (100, 1_000):
        summary.add(report(number))
    assert [getattr(summary, counter.name) for counter in fields(Counts)] == [
        1_100 + 2 * place for place in range(len(fields(Counts)))
    ]
    assert (summary.matches, summary.batches, summary.still_open) == ({"r": 6, "s": 9}, 2, 7)


def test_every_counter_is_counted_where_its_mark_says(plan: Plan) -> None:
    intake = TaskIntake(plan, Past(), "fail")
    table = pa.table({"time": [datetime(2024, 1, 1)], "x": [1]})
    list(intake.take(table_events(table, plan.schema, "s")))
    assert set(intake._counts) == {*counters_of(TASKS), IGNORED}
    stats = SlotSplitter(plan, 0).step([], Progress()).stats
    assert {*counters_of(SLOTS), *counters_of(ALIKE)} - stats.keys() == IN_SLOTS
    assert stats.keys() >= set(COUNTS)


def test_each_lane_that_is_worked_off_tells_its_selections_and_seconds(plan: Plan) -> None:
    """Three events of the first component open a selection each, whatever becomes of it."""
    table = table_events(
        pa.table({"time": [datetime(2024, 1, 1, 0, 0, second) for second in range(4)], "x": [1, 1, 0, 1]}),
        plan.schema, "s",
    ).events  # fmt: skip
    splitter = SlotSplitter(plan, 0)
    frames = [frame for _, frame in pack(plan, sift(plan, table, Past(splitter.frontier_us)).events)]
    lanes = splitter.step(frames, Progress(4, finish=True)).lanes
    rows = [row for lane in lanes for row in worked_off(plan, lane, call_here)]
    assert [kind for _, kind, _ in rows] == [RESULT, WORK] * len(lanes)
    work = [json.loads(body) for _, kind, body in rows if kind == WORK]
    assert [set(lane) for lane in work] == [{*counters_of(LANES), *IN_LANES}] * len(lanes)
    assert sum(lane["selections"] for lane in work) == 3
    assert all(0 < lane["operator_seconds"] < 60 for lane in work)
