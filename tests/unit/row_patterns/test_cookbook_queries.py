"""Clauses of MATCH_RECOGNIZE that ask what rules of the cookbook ask find the same on its events."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from spark_pace.cli.main import commands
from tests.support.documents import DOCS, fences
from tests.unit.project.test_docs import ROOT

EXAMPLES = ROOT / "examples" / "cookbook"
CLAUSES = {
    fence.file: fence.text
    for fence in fences(DOCS / "match_recognize.md")
    if (EXAMPLES / fence.file / "rule.yaml").is_file() and fence.file
}


@pytest.mark.parametrize("name", CLAUSES)
def test_a_clause_gives_the_key_and_the_fields_of_the_rule(name: str, tmp_path: Path) -> None:
    events = (EXAMPLES / name / "rule.yaml").read_text("utf-8").split("rules:\n")[0]
    clause = CLAUSES[name].replace("\n", "\n      ")
    rules = tmp_path / "rules.yaml"
    rules.write_text(f"{events}rules:\n  - name: {name}\n    match_recognize: |\n      {clause}", "utf-8")
    (data,) = (EXAMPLES / name).glob("events.*")
    out = tmp_path / "matches.json"
    given = ["replay", str(rules), str(data), "-o", str(out)]
    assert CliRunner().invoke(commands, given, catch_exceptions=False).exit_code == 0
    found, expected = (
        sorted(
            (one["key"], sorted(one["fields"].items()))
            for one in map(json.loads, path.read_text("utf-8").splitlines())
            if one["rule"] == name
        )
        for path in (out, EXAMPLES / name / "matches.json")
    )
    assert found == expected
    assert expected


def test_there_are_clauses() -> None:
    assert len(CLAUSES) >= 6
