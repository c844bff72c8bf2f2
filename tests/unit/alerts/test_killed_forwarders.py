"""A process that sends is killed again and again: nothing is lost, and what comes twice says so."""

from __future__ import annotations

import os
import random
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa

from spark_pace.io.delta_tables import DeltaTables
from tests.support.alerts import (
    LATE_SCHEMA,
    TIME,
    Server,
    job_tables,
    match_rows,
    numbers_of,
    pager,
    running,
    sent_by,
)
from tests.support.commands import FORKED

KILLS = 8


def forward(folder: Path, target: dict[str, Any]) -> None:
    """In a process of its own: send until all is sent."""
    with running(folder, target) as alerts:
        sent_by(alerts)


def write(tables: DeltaTables, batch: int, chance: random.Random, numbers: Counter[str]) -> None:
    """A batch with some matches of each rule, and perhaps a late event."""
    runs = []
    for rule in ("a", "b"):
        count = chance.randrange(6)
        runs.append((rule, range(numbers[rule], numbers[rule] + count)))
        numbers[rule] += count
    tables.append("matches", match_rows(*runs), batch)
    late = {"event_time": TIME, "source": "in", "offset": batch, "reason": "late", "event": "{}"}
    tables.append("late", pa.Table.from_pylist([late] * chance.randrange(2), LATE_SCHEMA), batch)


def test_a_process_killed_at_any_moment_loses_nothing_and_marks_what_comes_twice(tmp_path: Path) -> None:
    tables, chance, numbers = job_tables(tmp_path / "out"), random.Random(1), Counter[str]()
    with Server().running() as server:
        target = pager(server, batch=3, tables=["matches", "late"])
        with running(tmp_path, target):
            pass  # the cursor begins before the first row
        for kill in range(KILLS):
            for batch in range(4 * kill, 4 * kill + 4):
                write(tables, batch, chance, numbers)
            process = FORKED.Process(target=forward, args=(tmp_path, target))
            process.start()
            posts = len(server.posts) + chance.randrange(1, 6)
            server.wait_for(lambda server, posts=posts: len(server.posts) >= posts)  # type: ignore[misc]
            assert process.pid is not None
            os.kill(process.pid, signal.SIGKILL)
            process.join()
            process.close()
        forward(tmp_path, target)
        alerts = server.alerts
    matches = [alert for alert in alerts if alert["table"] == "matches"]
    assert {rule: numbers_of(matches, rule) for rule in numbers} == {
        rule: list(range(count)) for rule, count in numbers.items()
    }
    seen = set[str]()
    for alert in alerts:
        assert alert["repeat"] or alert["id"] not in seen
        seen.add(alert["id"])
    repeated = sum(alert["repeat"] for alert in alerts)
    assert 0 < repeated <= 3 * KILLS
