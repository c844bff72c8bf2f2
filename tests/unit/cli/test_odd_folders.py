"""Every command does its work on files, tables and a checkpoint in a folder of an odd name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spark_pace.alerts.queue import add_refused
from spark_pace.alerts.sender import Alert, Refusal
from spark_pace.cli.main import commands
from tests.support.watched import BEGAN, pairs_of_events, watched_job

QUERY = "SELECT x FROM seen MATCH_RECOGNIZE (ORDER BY x MEASURES a.x AS x PATTERN (a) DEFINE a AS x > 17)"
OF_SPARK = {"run", "bench"}  # which tests of jobs start in such a folder
COMMANDS = {
    "check": ("job.yaml", "--against"),
    "explain": ("job.yaml",),
    "match": ("q.sql", "--table", "seen=in.json", "-o", "found ü#?.csv"),
    "plan": ("job.yaml",),
    "replay": ("job.yaml", "in.json", "-o", "matches ü#?.json", "--html", "page ü#?.html"),
    "report": ("job.yaml", "-o", "report ü#?.html"),
    "sql": ("out ü#?", "SELECT * FROM late, alerts_refused"),
    "status": ("job.yaml",),
    "watch": ("out ü#?",),
    "why": ("job.yaml", "in.json", "--rule", "rule_0", "--at", "in.json:19"),
}


def test_every_command_works_in_a_folder_of_any_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "my data" / "ü#?"
    places = {"sink": {"kind": "delta", "path": "out ü#?"}, "checkpoint": "ck ü#?"}
    watched = watched_job(folder, 2, pairs_of_events(20), places)
    watched.batch({"rule_0": 10})
    late = {"event_time": BEGAN, "lateness_us": 90_000_000, "source": "in.json", "offset": 7}
    watched.rows("late", {**late, "reason": "was late", "event": "{}"})
    watched.rows("quarantine", {"kind": "record", "reason": "no JSON", "source": "in.json", "offset": 3})
    refused = Refusal(Alert("id", "rule_0", "{}"), "404", "no")
    add_refused(watched.tables.root, "pager", [refused])
    (folder / "q.sql").write_text(QUERY)
    monkeypatch.chdir(folder)
    assert COMMANDS.keys() == commands.commands.keys() - OF_SPARK
    for name, words in COMMANDS.items():
        commands([name, *words], standalone_mode=False)
        said, _ = capfd.readouterr()
        assert said or name in ("match", "replay"), name
    assert {path.name for path in folder.glob("* ü#?*")} == {
        *("out ü#?", "found ü#?.csv", "matches ü#?.json", "page ü#?.html", "report ü#?.html"),
    }
    page = (folder / "report ü#?.html").read_text()
    told = json.loads(page.partition('type="application/json">')[2].partition("</script>")[0])
    assert [one["events"] for one in told["late"]["by_source"]] == [1]
    assert [one["reason"] for one in told["reasons"]] == ["no JSON"]
    assert [one["reply"] for one in told["refused"]] == ["no"]
