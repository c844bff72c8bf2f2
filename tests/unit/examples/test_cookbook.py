"""The cookbook: every rule in it is the one in `examples/cookbook`, and gives the matches that are shown."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

import pytest

from tests.support.documents import fences
from tests.unit.project.test_docs import ROOT, run

EXAMPLES = sorted((ROOT / "examples" / "cookbook").iterdir())
COOKBOOK = ROOT / "docs" / "cookbook.md"


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_an_example_gives_its_matches(example: Path, tmp_path: Path) -> None:
    (events,) = example.glob("events.*")
    run(f"spark-pace replay {example}/rule.yaml {events} -o {tmp_path}/matches.json", ROOT)
    found, expected = ((folder / "matches.json").read_text("utf-8") for folder in (tmp_path, example))
    assert [json.loads(line) for line in found.splitlines()] == [
        json.loads(line) for line in expected.splitlines()
    ]
    assert expected


def test_the_cookbook_shows_every_example_as_it_is() -> None:
    written = fences(COOKBOOK)
    shown = [fence.text for fence in written if fence.language == "yaml"]
    rules = [(example / "rule.yaml").read_text("utf-8").split("rules:\n")[1] for example in EXAMPLES]
    assert sorted(shown) == sorted(map(textwrap.dedent, rules))
    commands = [fence.text.partition("\n") for fence in written if fence.language == "console"]
    assert len(commands) == len(EXAMPLES)
    for command, _, output in commands:
        assert run(command.removeprefix("$ "), ROOT) == output
