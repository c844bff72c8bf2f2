"""All parts of a checkpoint have one format version. The kept checkpoint holds it."""

from __future__ import annotations

import re

from spark_pace.core.split.snapshot import FORMAT_VERSION
from spark_pace.spark.checkpoint.checkpoint import Checkpoint
from spark_pace.spark.checkpoint.file_access import read_json
from spark_pace.spark.checkpoint.layout import read_layout
from tests.support.checkpoints import KEPT

CHECKPOINT = Checkpoint(KEPT / "checkpoint")


def test_no_checkpoint_is_kept_of_a_version_that_is_not_read() -> None:
    assert list(KEPT.parent.iterdir()) == [KEPT]


def test_the_kept_checkpoint_has_one_version_in_its_layout_and_its_states() -> None:
    assert (read_json(CHECKPOINT.layout_file) or {})["version"] == FORMAT_VERSION
    logs = (CHECKPOINT.path / "state").rglob("*.changelog")
    states = [found for log in logs for found in re.findall(rb'"format_version": (\d+)', log.read_bytes())]
    assert set(map(int, states)) == {FORMAT_VERSION}


def test_the_layout_of_the_kept_checkpoint_loads() -> None:
    layout = read_layout(CHECKPOINT)
    assert layout is not None
    assert set(layout.rules) == {"pairs", "keyed", "sums"}
    assert layout.planned
