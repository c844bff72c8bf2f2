"""The cookbook: every rule in it is the one in `examples/cookbook`, and gives the matches that are shown."""

from __future__ import annotations

import json
import shlex
import textwrap
from pathlib import Path
from statistics import median

import pytest
from click.testing import CliRunner

from spark_pace.cli.main import commands
from spark_pace.io.query import Tables
from tests.support.documents import fences
from tests.support.watched import pairs_of_events, watched_job
from tests.unit.project.test_docs import ROOT

EXAMPLES = sorted((ROOT / "examples" / "cookbook").iterdir())
COOKBOOK = ROOT / "docs" / "cookbook.md"


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_an_example_gives_its_matches(example: Path, tmp_path: Path) -> None:
    (events,) = example.glob("events.*")
    out = str(tmp_path / "matches.json")
    given = ["replay", str(example / "rule.yaml"), str(events), "-o", out]
    assert CliRunner().invoke(commands, given, catch_exceptions=False).exit_code == 0
    texts = ((folder / "matches.json").read_text("utf-8") for folder in (tmp_path, example))
    found, expected = ([*map(json.loads, text.splitlines())] for text in texts)
    assert expected
    # what is shown is right; a match may have further columns
    assert [one | shown for one, shown in zip(found, expected, strict=True)] == found


def test_the_cookbook_shows_every_example_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    written = fences(COOKBOOK)
    shown = [fence.text for fence in written if fence.language == "yaml"]
    rules = [(example / "rule.yaml").read_text("utf-8").split("rules:\n")[1] for example in EXAMPLES]
    assert sorted(shown) == sorted(map(textwrap.dedent, rules))
    calls = [fence.text.partition("\n") for fence in written if fence.language == "console"]
    assert len(calls) == len(EXAMPLES)
    for command, _, output in calls:
        given = shlex.split(command.removeprefix("$ spark-pace "))
        assert CliRunner().invoke(commands, given, catch_exceptions=False).stdout == output


def test_the_query_for_latencies_gives_each_match_the_batch_that_has_written_it(tmp_path: Path) -> None:
    """The matches of both rules come every two seconds from second 1 on; batches end every two seconds."""
    watched = watched_job(tmp_path, 2, pairs_of_events(12))
    for matches in [{}] * 9 + [{"rule_0": 1}, {"rule_1": 4, "rule_0": 2}, {}, {"rule_0": 3, "rule_1": 2}]:
        watched.batch(matches)
    (query,) = (fence.text for fence in fences(COOKBOOK) if fence.language == "sql")
    found = Tables(watched.spec.sink_path).query(query).read_all().to_pylist()
    seconds = {"rule_0": [17, 17, 15, 17, 15, 13], "rule_1": [19, 17, 15, 13, 15, 13]}
    assert [(one["rule"], one["matches"], one["p50"], one["longest"]) for one in found] == [
        (rule, 6, median(seconds[rule]), max(seconds[rule])) for rule in ("rule_1", "rule_0")
    ]
