"""All parts of a checkpoint have one format version. The kept checkpoints hold it."""

from __future__ import annotations

import re

import pytest

from spark_pace.core.split.snapshot import FORMAT_VERSION
from spark_pace.io.files.files import read_json
from spark_pace.spark.checkpoint.checkpoint import Checkpoint
from spark_pace.spark.checkpoint.layout import read_layout
from tests.support.checkpoints import FOLDER, RULES_OF, VERSION

NAMES = sorted(RULES_OF)


def kept(name: str) -> Checkpoint:
    return Checkpoint(FOLDER / name / "checkpoint")


def test_no_checkpoint_is_kept_of_a_version_that_is_not_read() -> None:
    assert sorted(path.name for path in FOLDER.iterdir()) == NAMES
    assert all(name.startswith(f"version_{FORMAT_VERSION}") for name in NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_kept_checkpoint_has_one_version_in_its_layout_and_its_states(name: str) -> None:
    assert (read_json(kept(name).layout_file) or {})["version"] == FORMAT_VERSION
    logs = (kept(name).path / "state").rglob("*.changelog")
    states = [found for log in logs for found in re.findall(rb'"format_version": (\d+)', log.read_bytes())]
    assert set(map(int, states)) == {FORMAT_VERSION}


def test_the_layout_of_a_kept_checkpoint_loads() -> None:
    layout = read_layout(kept(VERSION))
    assert layout is not None
    assert set(layout.rules) == {"pairs", "keyed", "sums"}
    assert layout.planned


def test_a_kept_checkpoint_holds_what_rules_over_rules_know_and_what_a_batch_has_joined() -> None:
    checkpoint = kept(f"{VERSION}_applications")
    assert checkpoint.level_state(2).stat().st_size > 1_000
    assert checkpoint.side_tables_of(1).is_file()
