"""Whether machine code is made for a search, by how much there is to search."""

from __future__ import annotations

from datetime import datetime, timedelta

import pyarrow as pa
import pytest

from spark_pace import ways
from spark_pace.cli.kernels import KERNELS
from spark_pace.io.replay import replay_table
from spark_pace.machine_code import kernel
from spark_pace.rules import load_rules


def test_few_events_with_many_candidates_are_worth_machine_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 210 events in one window each search may try thousands of candidates; of 9 it cannot."""
    asked: list[tuple[int, float]] = []

    def is_made_now(numbers: int, steps: float) -> bool:
        asked.append((numbers, steps))
        return False

    monkeypatch.setattr(ways, "is_made_now", is_made_now)
    monkeypatch.setattr(kernel, "kept_code", lambda name: None)
    for one in KERNELS:
        monkeypatch.setattr(one, "runs", {})
    pattern = "pattern: {sequence: [{a: type = 'a'}, {b: type = 'b'}, {c: type = 'c'}]}"
    rules = load_rules(
        'events: {schema: "time TIMESTAMP, type STRING, x DOUBLE", event_time: time}\n'
        f"rules: [{{name: r, {pattern}, where: a.x + b.x < c.x, within: 1 d, context: 'latest, zero'}}]\n"
    )
    most = {}
    for count in (9, 210):
        times = [datetime(2024, 1, 1) + timedelta(seconds=number) for number in range(count)]
        types = ["abc"[number % 3] for number in range(count)]
        x = [5.0] * (count - 1) + [11.0]  # a match at the last event
        asked.clear()
        replay_table(rules, pa.table({"time": times, "type": types, "x": x}))
        assert max(numbers for numbers, _ in asked) < ways.FEW_NUMBERS
        most[count] = max(steps for _, steps in asked)
    assert most[9] < ways.FEW_STEPS < most[210]
