"""What a checkpoint remembers of its source. No Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from spark_pace.errors import StateError
from spark_pace.job_file import FilesSource, KafkaSource
from spark_pace.spark.checkpoint.checkpoint import Checkpoint
from spark_pace.spark.sources.files import FilesInput
from spark_pace.spark.sources.input import require_same_source, tie
from spark_pace.spark.sources.kafka import KafkaInput


def kafka(checkpoint: Path, *topics: str) -> KafkaInput:
    source = KafkaSource("json", "localhost:1", topics, "earliest", None, (), {})
    return KafkaInput(source, Checkpoint(checkpoint), False, "quarantine")


def files(folder: Path, checkpoint: Path) -> FilesInput:
    source = FilesSource("json", str(folder), None)
    return FilesInput(source, Checkpoint(checkpoint), False, "quarantine")


def test_a_misspelt_topic_does_not_bind_the_checkpoint(tmp_path: Path) -> None:
    """It is refused by Kafka a moment later; then its name is corrected."""
    require_same_source(kafka(tmp_path, "flihgts"))
    require_same_source(kafka(tmp_path, "flights"))
    assert list(tmp_path.iterdir()) == []


def test_a_source_that_was_found_binds_the_checkpoint(tmp_path: Path) -> None:
    source = files(tmp_path / "in", tmp_path)
    require_same_source(source)
    source.require_readable(cast(Any, None))
    tie(source)
    require_same_source(source)
    with pytest.raises(
        StateError,
        match=r"must belong to a job that reads kafka; got the checkpoint of one that reads files\.",
    ):
        require_same_source(kafka(tmp_path, "flights"))
