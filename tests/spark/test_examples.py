"""The recipe for notebooks of the documentation."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import spark_pace

pytestmark = pytest.mark.spark


def test_the_recipe_for_notebooks_shows_matches(tmp_path: Path, spark: SparkSession) -> None:
    page = (Path(__file__).parents[2] / "docs" / "python.md").read_text()
    snippet, *_ = re.findall(r"```py\n(.*?)```", page, re.DOTALL)
    _, first, *_ = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    names: dict[str, Any] = {"spark": spark}
    exec(first, names)  # its rules are those of the recipe
    events = names["frame"].assign(time=names["frame"]["time"].astype(str))
    later = events.tail(1).assign(time="2024-01-01 00:05:00")
    (tmp_path / "events").mkdir()
    for number, part in enumerate((events, later)):
        part.to_json(tmp_path / "events" / f"{number}.json", orient="records", lines=True)
    *recipe, shown = snippet.replace('"events"', f'"{tmp_path}/events"').strip().splitlines()
    exec("\n".join(recipe), names)
    assert eval(shown, names)["tries"].tolist() == [3]
    names["query"].stop()
    matches = spark_pace.detect(names["events"], names["rules"])
    assert matches._repr_html_() is None
    assert repr(matches).startswith("DataFrame[rule: string, key: string, selection_id: bigint")
