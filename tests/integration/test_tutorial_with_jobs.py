"""The tutorial from its first command to its last, its jobs on Spark among them."""

from pathlib import Path

import pytest

from tests.support.commands import ROOT
from tests.support.documents import differing, fences

pytestmark = pytest.mark.integration


def test_the_tutorial_does_what_it_shows(tmp_path: Path):
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    shown = fences(ROOT / "docs" / "tutorial.md")
    assert sum("spark-pace run" in fence.text for fence in shown) == 2
    assert differing(shown, tmp_path) == []
