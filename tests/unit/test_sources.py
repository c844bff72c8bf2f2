"""What a checkpoint remembers of its source. No Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from spark_pace.errors import StateError
from spark_pace.job_file import FilesSource
from spark_pace.spark.checkpoint.checkpoint import Checkpoint
from spark_pace.spark.sources.kafka import Topics
from spark_pace.spark.sources.source import FilesInput, KafkaInput


def kafka(checkpoint: Path, *topics: str) -> KafkaInput:
    return KafkaInput(
        Topics("localhost:1", topics, "json", (), "earliest", None, {}, "quarantine"),
        Checkpoint(checkpoint),
        False,
    )


def files(folder: Path, checkpoint: Path) -> FilesInput:
    return FilesInput(
        FilesSource("json", str(folder), None), folder, Checkpoint(checkpoint), False, "quarantine"
    )


def test_a_misspelt_topic_does_not_bind_the_checkpoint(tmp_path: Path) -> None:
    """It is refused by Kafka a moment later; then its name is corrected."""
    kafka(tmp_path, "flihgts").require_same()
    kafka(tmp_path, "flights").require_same()
    assert list(tmp_path.iterdir()) == []


def test_a_source_that_was_found_binds_the_checkpoint(tmp_path: Path) -> None:
    source = files(tmp_path / "in", tmp_path)
    source.require_same()
    source.check(cast(Any, None))
    source.tie()
    source.require_same()
    with pytest.raises(
        StateError,
        match=r"must belong to a job that reads kafka; got the checkpoint of one that reads files\.",
    ):
        kafka(tmp_path, "flights").require_same()
