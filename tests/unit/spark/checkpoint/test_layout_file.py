"""A layout file that cannot be taken is refused in one line."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from spark_pace.errors import StateError
from spark_pace.io.files.files import read_json, write_json
from spark_pace.spark.checkpoint.checkpoint import Checkpoint
from spark_pace.spark.checkpoint.layout import FORMAT_VERSION, Layout, read_layout, write_layout

EMPTY = Layout(2, 2, (0, 1), "app", {})


@pytest.mark.parametrize("rules", [{}, {"rules": {"a": {}}}, {"rules": []}])
def test_a_layout_with_parts_missing_is_refused(tmp_path: Path, rules: dict[str, Any]) -> None:
    write_json(tmp_path / "layout.json", {"version": FORMAT_VERSION, **rules})
    with pytest.raises(
        StateError, match=r"layout\.json — must be as this program wrote it; got damaged text"
    ):
        read_layout(Checkpoint(tmp_path))


def test_a_layout_of_another_version_is_refused(tmp_path: Path) -> None:
    write_layout(Checkpoint(tmp_path), EMPTY)
    path = tmp_path / "layout.json"
    write_json(path, (read_json(path) or {}) | {"version": 99})
    with pytest.raises(
        StateError, match=r"must have format version 9; got 99\. Go on with the release that made it"
    ):
        read_layout(Checkpoint(tmp_path))


@pytest.mark.parametrize(
    ("version", "told"),
    [
        (FORMAT_VERSION, "must be as this program wrote it; got another content than its checksum is of"),
        (1, f"must have format version {FORMAT_VERSION}; got 1"),
    ],
)
def test_only_a_layout_of_an_older_version_may_be_without_a_checksum(
    tmp_path: Path, version: int, told: str
) -> None:
    (tmp_path / "layout.json").write_text(json.dumps({**asdict(EMPTY), "version": version}))
    with pytest.raises(StateError, match=told):
        read_layout(Checkpoint(tmp_path))
