"""What one task of the intake makes of its files. No Spark."""

from __future__ import annotations

import json
import time
from datetime import datetime, timedelta

import pyarrow as pa

from spark_pace.core.frames import decode
from spark_pace.core.intake.sift import Past
from spark_pace.core.order import OrderSpec
from spark_pace.core.plan.plan import build_plan
from spark_pace.core.tables import SOURCE
from spark_pace.io.event_files import table_events
from spark_pace.rules import load_rules
from spark_pace.spark.stages.intake import TaskIntake
from spark_pace.spark.stages.rows import FRAME, PROGRESS

RULES = """
events: {schema: "time TIMESTAMP, x BIGINT, y STRING", event_time: time}
rules:
  - {name: r, pattern: {sequence: [{a: x >= 0}, {b: x < 0}]}, within: 10 s}
"""
FILES = 3_000
MOST_CPU_SECONDS = 20  # it takes two; where each file counts all that wait before it, minutes


def test_a_task_takes_thousands_of_small_files_and_joins_them_to_one_frame() -> None:
    rules = load_rules(RULES)
    intake = TaskIntake(build_plan(rules, order=OrderSpec(before="files")), Past(), "fail")
    began = time.process_time()
    rows = []
    for number in range(FILES):
        table = pa.table({"time": [datetime(2024, 1, 1) + timedelta(seconds=number)], "x": [number]})
        table = table.append_column("y", pa.nulls(1, pa.string()))
        rows += intake.take(table_events(table, rules[0].schema, f"{number}.json"), number)
    rows += intake.rows_at_end()
    assert time.process_time() - began < MOST_CPU_SECONDS
    (frame,) = [decode(body) for _, kind, body in rows if kind == FRAME]
    assert frame[SOURCE].to_pylist() == [f"{number}.json" for number in range(FILES)]
    (absent,) = [json.loads(body)["absent"] for _, kind, body in rows if kind == PROGRESS]
    assert absent == ["y"]
    (told,) = [json.loads(body)["progress"] for _, kind, body in rows if kind == PROGRESS]
    assert [(file["entry"], file["name"]) for file in told["files"]] == [
        (number, f"{number}.json") for number in range(FILES)
    ]
