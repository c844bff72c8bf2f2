"""What a checkpoint remembers of its source. No Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from spark_pace.errors import StateError
from spark_pace.io.files.files import read_json
from spark_pace.job_file import FilesSource, KafkaSource
from spark_pace.spark.checkpoint.checkpoint import Checkpoint
from spark_pace.spark.sources.files import FilesInput
from spark_pace.spark.sources.input import tie
from spark_pace.spark.sources.kafka import KafkaInput, require_same_ids
from spark_pace.spark.start import require_same_source


def kafka(checkpoint: Path, *topics: str) -> KafkaInput:
    source = KafkaSource("json", "localhost:1", topics, "earliest", None, (), {})
    return KafkaInput(source, Checkpoint(checkpoint), False, "quarantine")


@pytest.mark.parametrize(
    ("most", "options", "expected"),
    [
        (None, {}, 100),
        (30, {}, 30),
        (None, {"minoffsetspertrigger": "250"}, 250),
        (200, {"minOffsetsPerTrigger": "250"}, 200),
        (None, {"minOffsetsPerTrigger": "10"}, 100),
    ],
)
def test_a_cap_stays_within_what_the_job_file_and_the_options_say(
    tmp_path: Path, most: int | None, options: dict[str, str], expected: int
) -> None:
    source = KafkaSource("json", "localhost:1", ("t",), "earliest", most, (), options)
    assert KafkaInput(source, Checkpoint(tmp_path), False, "quarantine").bounded(100) == expected


def test_a_batch_has_read_the_offsets_that_it_has_passed(tmp_path: Path) -> None:
    """Of a compacted topic more than the records; of a new partition, which begins anywhere, the records."""
    before = [{"a": {"0": 5, "1": 10}}, {"rows": 0}]
    after = [{"a": {"0": 25, "1": 10, "2": 1_000}, "b": {"0": 70}}, {"rows": 1}]
    source = kafka(tmp_path, "a", "b")
    assert source.amount(before, after, 7) == 20
    assert source.amount(before, after, 50) == source.amount([], after, 50) == 50


def test_files_weigh_what_is_noted_of_them(tmp_path: Path) -> None:
    source = files(tmp_path, tmp_path)
    assert source.amount([{"entries": 1, "bytes": 10}], [{"entries": 2, "bytes": 35}], 7) == 25
    assert source.amount([], [{"entries": 2, "bytes": 35}], 7) == 35
    assert source.amount([{"entries": 1, "bytes": 10}], [{"entries": 2}], 7) == 0


def test_a_topic_without_an_id_now_or_before_may_be_any() -> None:
    """Old brokers give none; a topic may be new to the job, or no longer asked for."""
    require_same_ids({}, {"a": "1"})
    require_same_ids({"a": "1", "b": "2"}, {"b": "2"})
    with pytest.raises(StateError, match=r"got b, which is a new one, .* \(its id was 2, and is 3\)"):
        require_same_ids({"a": "1", "b": "2"}, {"a": "1", "b": "3"})


def test_the_topics_ids_do_not_keep_a_job_from_its_checkpoint(tmp_path: Path) -> None:
    tie(kafka(tmp_path, "a"), {"topics": ("a",), "servers": "0", "ids": {"a": "1"}})
    require_same_source(kafka(tmp_path, "a", "b"))
    assert read_json(Checkpoint(tmp_path).source_file) == {
        "kind": "kafka",
        "topics": ["a"],
        "servers": "0",
        "ids": {"a": "1"},
    }


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
    tie(source, {})
    require_same_source(source)
    with pytest.raises(
        StateError,
        match=r"must belong to a job that reads kafka; got the checkpoint of one that reads files\.",
    ):
        require_same_source(kafka(tmp_path, "flights"))
