"""The clock of a job that reads Kafka says what keeps it from ticking, but not that the JVM has ended."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JError

from spark_pace.errors import StateError
from spark_pace.spark.checkpoint.checkpoint import Checkpoint
from spark_pace.spark.sources.kafka import KafkaClock, Offsets, Watch
from spark_pace.spark.sources.own_sources import Ticks


@pytest.mark.parametrize(
    ("text", "is_told"),
    [("org does not exist in the JVM", False), ("org.apache.Client.ends does not exist in the JVM", True)],
)
def test_only_what_the_job_does_not_tell_itself_is_told(
    text: str, is_told: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    asked = 0

    def ends() -> Offsets:
        nonlocal asked
        asked += 1
        if asked == 2:
            clock.stopped.set()
        raise Py4JError(text)

    clock = KafkaClock(Ticks(1_000, 0), Checkpoint(tmp_path), ends)
    clock.tick()
    assert asked == 2
    assert len(caplog.messages) == is_told
    assert all(f"got: {text}. It stands." in one for one in caplog.messages)


def test_where_a_first_batch_begins_must_be_noted(tmp_path: Path) -> None:
    client: Any = SimpleNamespace(described=lambda seconds: [])
    watch, after = Watch(client, {}, Checkpoint(tmp_path)), [{"t": {"0": 5}}]
    assert watch(0, [{"t": {"0": 2}}], after, 3) == (0, {})
    with pytest.raises(StateError, match="sources/0/0 — must be as Spark wrote it; got no file"):
        watch(0, [], after, 3)
