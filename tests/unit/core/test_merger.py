"""The matches of a batch as the merger hands them on: lane behind lane, and none is lost."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.local_run import LocalRun, run
from spark_pace.core.order import OrderSpec
from spark_pace.core.plan.plan import build_plan
from spark_pace.rules import load_rules

RULES = """
events: {schema: "time TIMESTAMP, type STRING", event_time: time}
rules:
  - {name: first, pattern: {sequence: [a: type = 'a', b: type = 'b']}, within: 1 s}
  - {name: late, pattern: {sequence: [a: type = 'a', c: type = 'c']}, within: 1 s}
  - {name: never, pattern: {sequence: [a: type = 'a', b: type = 'z']}, within: 1 s}
  - {name: second, pattern: {sequence: [b: type = 'b', a: type = 'a']}, within: 1 s}
"""
TYPES = ["a", "b"] * 8_000 + ["a", "c"] * 3_000


def test_a_batch_has_the_lanes_of_all_rules_one_behind_the_other() -> None:
    rules = load_rules(RULES)
    count = len(TYPES)
    time = pa.array(np.arange(count) * 1_000)
    events = pa.table({
        "@time": time,
        "@source": pa.DictionaryArray.from_arrays(np.zeros(count, np.int32), ["events"]),
        "@offset": np.arange(count),
        "time": time.view(pa.timestamp("us")),
        "type": TYPES,
    })  # fmt: skip
    step = LocalRun(build_plan(rules, order=OrderSpec(), lanes=3)).step(events, finish=True)
    assert step.matches["events"].num_chunks == 8
    assert all(len(chunk) for column in step.matches.columns for chunk in column.chunks)
    expected = run(build_plan(rules, order=OrderSpec()), [events]).matches
    found = {one["values"]: one["counts"] for one in pc.value_counts(expected["rule"]).to_pylist()}
    assert found == {"first": 8_000, "late": 3_499, "second": 8_000}  # late: in one second before the first c
    assert step.matches.combine_chunks().equals(expected)
