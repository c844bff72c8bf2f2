"""One table ties the versions of a checkpoint's layout and of its state. The kept checkpoints hold it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from spark_pace.core.split.snapshot import FORMAT_VERSION
from spark_pace.spark.checkpoint.checkpoint import Checkpoint
from spark_pace.spark.checkpoint.layout import LAYOUT_VERSION, READ_VERSIONS, STATE_VERSIONS, read_layout

FIXTURES = Path(__file__).parents[1] / "fixtures" / "checkpoints"
KEPT = {int(folder.name.removeprefix("version_")): folder / "checkpoint" for folder in FIXTURES.iterdir()}


def test_a_checkpoint_of_every_version_is_kept() -> None:
    assert set(STATE_VERSIONS) == set(KEPT)


def test_the_versions_that_are_written_stand_in_the_table() -> None:
    assert STATE_VERSIONS[LAYOUT_VERSION] == FORMAT_VERSION
    assert READ_VERSIONS == (2, 3, 4, 5)


@pytest.mark.parametrize("version", STATE_VERSIONS)
def test_a_kept_checkpoint_has_the_versions_of_the_table(version: int) -> None:
    checkpoint = Checkpoint(KEPT[version])
    assert json.loads(checkpoint.layout_file.read_text())["version"] == version
    logs = (checkpoint.path / "state").rglob("*.changelog")
    states = [found for log in logs for found in re.findall(rb'"format_version": (\d+)', log.read_bytes())]
    assert set(map(int, states)) == {STATE_VERSIONS[version]}


@pytest.mark.parametrize("version", READ_VERSIONS)
def test_a_layout_of_a_version_that_is_read_loads(version: int) -> None:
    layout = read_layout(Checkpoint(KEPT[version]))
    assert layout is not None
    assert set(layout.rules) == {"pairs", "keyed", "sums"}
