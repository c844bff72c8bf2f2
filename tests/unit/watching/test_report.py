"""The report of a job: what it tells of ten rules and of hundreds; no text of events acts in it."""

from __future__ import annotations

import json
import os
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from spark_pace.alerts.queue import Cursor, Failure, Place, add_refused, write_cursor
from spark_pace.alerts.sender import Alert, Refusal
from spark_pace.cli.status import status_command
from spark_pace.errors import ConfigError, StateError
from spark_pace.spark.checkpoint.batch_begin import Begin, write_begin
from spark_pace.spark.checkpoint.checkpoint import Checkpoint, FilesNote, write_note
from spark_pace.spark.checkpoint.layout import id_of
from spark_pace.spark.checkpoint.lock import checkpoint_lock
from spark_pace.watching.facts import _batches, facts, rules_told
from spark_pace.watching.history import NOTHING, Seen
from spark_pace.watching.subject import Subject, subject_of
from tests.support.commands import spark_pace
from tests.support.watched import BEGAN, HOSTILE, Watched, pairs_of_events, watched_job
from tests.unit.watching.test_history import rows

SOON = BEGAN + timedelta(minutes=1)


def told_of(watched: Watched, seen: Seen | None = None) -> dict[str, Any]:
    return facts(Subject.of(watched.spec), seen or Seen(watched.spec.sink_path), SOON)


def told_in(page: str) -> dict[str, Any]:
    found = re.search(r'<script id="told" type="application/json">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    told: dict[str, Any] = json.loads(found[1])
    return told


def test_the_report_of_ten_rules_tells_all_there_is(tmp_path: Path) -> None:
    watched = watched_job(tmp_path, 10, pairs_of_events(20))
    watched.batch({"rule_3": 4, "rule_0": 1})
    watched.batch(
        {"rule_3": 2}, seconds=4.0, batch_seconds=1.5, slowest_source=f"north{HOSTILE}", idle_sources=1
    )
    late = {"event_time": BEGAN, "lateness_us": 90_000_000, "source": HOSTILE, "offset": 7}
    watched.rows("late", {**late, "reason": "was late", "event": json.dumps({"k": HOSTILE})})
    bad = {"kind": "record", "reason": f"no JSON: {HOSTILE}", "source": "in.json", "raw": b"\xff"}
    watched.rows("quarantine", {**bad, "offset": 3}, {**bad, "offset": 4})
    done = spark_pace("report", tmp_path / "job.yaml", "-o", tmp_path / "page.html")
    assert (done.returncode, done.stdout) == (0, f"{tmp_path}/page.html: written\n"), done.stderr
    page = (tmp_path / "page.html").read_text()
    told = told_in(page)
    assert told["name"] == "watched" and told["state"]["word"] == "stopped"
    assert told["rules"]["names"][:3] == ["rule_3", "rule_0", "rule_1"] and len(told["rules"]["names"]) == 10
    assert told["rules"]["matches"][:3] == [6, 1, 0]
    assert told["rules"]["last_written"][0] == "2026-11-01 00:00:02Z"
    assert sum(told["rules"]["series"][0]) == 6
    assert told["batches"]["newest"] == [at - 1_000 for at in told["batches"]["at"]]
    assert told["batches"]["batch_seconds"] == [0.5, 1.5] and told["batches"]["late"] == [3, 3]
    figures = dict(told["figures"])
    assert figures["seconds a batch"] == "last 1.50, mean 1.00, greatest 1.50"
    assert figures["matches"] == "7" and figures["slowest source"] == f"north{HOSTILE}; 1 left out"
    assert figures["records"].startswith("2,000 records: 1,980 events, 6 late, 2 bad")
    assert told["late"]["by_source"] == [
        {"source": HOSTILE, "events": 1, "most_seconds": 90.0, "last": "2026-11-01T00:00:00Z"}
    ]
    assert told["late"]["newest"][0]["reason"] == "was late"
    (reason,) = told["reasons"]
    assert (reason["rows"], reason["at"]) == (2, "in.json:3") and reason["reason"] == f"no JSON: {HOSTILE}"
    latest = told["newest"][0]
    assert latest["matched_at"] == "2026-11-01T00:00:19Z" and f"told={HOSTILE}" in latest["fields"]
    assert [event["component"] for event in latest["events"]] == ["a", "b"]
    assert "spark-pace why " in latest["why"] and latest["why"].endswith("--at in.json:19")
    assert "does not run" in told["troubles"][0]


def test_no_text_of_events_or_rules_leaves_the_data_of_the_page(tmp_path: Path) -> None:
    watched_job(tmp_path, 1, pairs_of_events(8)).batch({"rule_0": 4})
    assert spark_pace("report", tmp_path / "job.yaml", "-o", tmp_path / "page.html").returncode == 0
    page = (tmp_path / "page.html").read_text()
    assert HOSTILE not in page and "<img src=x" not in page and "<script>document" not in page
    assert "<title>watched &lt;/script&gt;" in page
    told = told_in(page)
    assert (
        HOSTILE in told["name"]
        and HOSTILE in told["rules"]["about"][0]
        and any(HOSTILE in match["key"] for match in told["newest"])
    )
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None and policy[1].startswith("default-src 'none';")
    assert not re.findall(r'(?:src|href)="[^"]+"', page.split("<script>")[0])


def test_the_report_of_hundreds_of_rules_has_them_all_the_first_ones_first(tmp_path: Path) -> None:
    watched = watched_job(tmp_path, 300)
    for number in range(3):
        watched.batch({f"rule_{rule}": rule + 1 for rule in range(number, 300, 3)})
    told = told_of(watched)
    assert told["rules"]["names"] == [f"rule_{rule}" for rule in reversed(range(300))]
    assert told["rules"]["matches"] == list(range(300, 0, -1))
    assert "no match yet" not in dict(told["figures"])
    assert len(json.dumps(told)) < 300_000


def test_a_job_without_a_batch_is_told_to_have_none(tmp_path: Path) -> None:
    watched = watched_job(tmp_path, 1)
    told = told_of(watched)
    assert told["figures"] == [("batches", "no batch is done yet")]
    assert told["troubles"] == ["The job has done no batch, and does not run on this machine."]
    assert told["rules"]["names"] == ["rule_0"] and told["newest"] == [] and told["batches"]["at"] == []
    assert spark_pace("report", watched.spec.sink_path, "-o", tmp_path / "page.html").returncode == 0


def test_who_looks_again_reads_what_is_new_and_sees_what_one_sees_who_looks_once(tmp_path: Path) -> None:
    watched = watched_job(tmp_path, 2)
    often = Seen(watched.spec.sink_path)
    for number in range(6):
        watched.batch({f"rule_{number % 2}": number})
        told = told_of(watched, often)
    assert told == told_of(watched)
    assert told["rules"]["matches"] == [9, 6]
    assert often.history.last is not None and often.history.last["batch_id"] == 5


def test_many_late_events_and_a_bound_that_is_not_kept_are_told(tmp_path: Path) -> None:
    watched = watched_job(tmp_path, 1)
    watched.batch({}, late=500, bad_records=11, pending=0, over_bound="3 s predicted")
    with checkpoint_lock(Checkpoint(watched.spec.checkpoint_folder)):
        silent, late, bad, bound = told_of(watched)["troubles"]
    assert silent.startswith("Nothing has come from any source since ")
    assert late.startswith("500 of the last 1,000 records (0:00:02) came late: ")
    assert bad.startswith("11 of the last 1,000 records (0:00:02) could not be read: ")
    assert bound == "latency_bound cannot be kept: 3 s predicted."


def test_attributes_that_no_record_has_are_told_once_there_are_enough_records(tmp_path: Path) -> None:
    watched = watched_job(tmp_path, 1)
    few = {"records": 1, "late": 0, "bad_records": 0}
    watched.batch({}, absent=["amont", "o"], **few)
    watched.batch({}, **few)  # of a release that did not tell
    seen = Seen(watched.spec.sink_path)
    assert told_of(watched, seen)["troubles"][1:] == []
    watched.batch({}, absent=["amont", "p"], records=998, late=0, bad_records=0)
    for looks in (seen, None):
        assert told_of(watched, looks)["troubles"][1:] == [
            "amont: null in every record; a name in the schema that no record has?"
        ]
    watched.batch({}, absent=[], **few)
    assert told_of(watched, seen)["troubles"][1:] == []


def test_alerts_that_wait_and_those_that_were_refused_are_told(tmp_path: Path) -> None:
    targets = [{"name": name, "http": "http://127.0.0.1:9"} for name in ("pager", "bus")]
    watched = watched_job(tmp_path, 1, pairs_of_events(8), {"alerts": targets})
    watched.batch({"rule_0": 4})
    cursor = Checkpoint(watched.spec.checkpoint_folder).alert_cursor("pager")
    cursor.parent.mkdir(parents=True)
    failure = Failure("2026-11-01T00:00:00Z", HOSTILE)
    write_cursor(cursor, Cursor({"matches": Place(0)}, failure=failure), "")
    refusal = Refusal(Alert("job/matches/rule_0/0", "rule_0", "{}"), "400", HOSTILE)
    add_refused(watched.tables.root, "pager", [refusal])
    told = told_of(watched)
    said = f"4 wait; failing since 2026-11-01T00:00:00Z: {HOSTILE}"
    assert [(one["target"], one["rows_waiting"], one["said"]) for one in told["alerts"]] == [
        ("pager", 4, said),
        ("bus", None, "not started yet"),
    ]
    assert told["troubles"][-1] == f"Alerts for pager: {said}."
    assert [(one["target"], one["status"], one["reply"]) for one in told["refused"]] == [
        ("pager", "400", HOSTILE)
    ]
    (pager, bus) = json.loads(spark_pace("status", tmp_path / "job.yaml", "--json").stdout)["alerts"]
    assert (pager["rows_waiting"], pager["failing_since"], bus["rows_waiting"]) == (
        4,
        "2026-11-01T00:00:00Z",
        None,
    )
    assert f"alerts.pager: {said}" in spark_pace("status", tmp_path / "job.yaml").stdout


def test_the_sources_that_are_left_out_are_named(tmp_path: Path) -> None:
    events = {"ordering": "sources", "source_column": "k", "idle_after": "1 min"}
    watched = watched_job(tmp_path, 1, keys={"events": events})
    idle = {"idle_sources": 2, "idle_names": ("south",)}
    watched.batch({}, late=0, pending=0, unheard_sources=("est", HOSTILE), **idle)
    checkpoint = Checkpoint(watched.spec.checkpoint_folder)
    reached = {"north": 300_000_000, "south": 0, "west": 290_000_000}
    write_begin(checkpoint, 0, Begin({}, 0, reached=reached))
    with checkpoint_lock(checkpoint):
        told = told_of(watched)
    unheard, hostile, *heard = told["sources"]
    assert unheard == {"source": "est", "reached": None, "behind": "", "idle": False}
    assert hostile["source"] == HOSTILE
    assert [(one["source"], one["behind"], one["idle"]) for one in heard] == [
        ("south", "0:05:00", True),
        ("west", "0:00:10", False),
        ("north", "0:00:00", False),
    ]
    assert told["troubles"][1:] == [
        "2 sources not waited for, too far behind the fastest one: south and others. "
        "What is still sent there may be late.",
        f"Never heard of, though expected: est, {HOSTILE}. The frontier waits for what they send, unless "
        "idle_after leaves them out. Look for a slip in their names first.",
    ]


def test_of_sources_in_files_those_are_told_that_the_last_batch_names(tmp_path: Path) -> None:
    watched = watched_job(tmp_path, 1)
    assert told_of(watched)["sources"] == []
    ahead = int(SOON.timestamp() * 1e6) + 3_600_000_000
    named = {"idle_sources": 1, "idle_names": ("south",), "slowest_source": HOSTILE}
    watched.batch({}, unheard_sources=("est",), max_time_us=ahead, **named)
    told = told_of(watched)
    assert [tuple(source.values()) for source in told["sources"]] == [
        ("est", None, "", False),
        ("south", "", "", True),
        (HOSTILE, "", "the slowest", False),
    ]
    assert (
        "Never heard of, though expected: est. The frontier waits for what they send; idle_after would leave "
        "out all others too, for the newest event is ahead of now. Look for a slip in their names first."
    ) in told["troubles"]


def job_with_alerts_and_sources(folder: Path) -> Watched:
    """One of whose sources is left out, and whose alerts wait."""
    keys = {
        "alerts": [{"name": "pager", "http": "http://127.0.0.1:9", "rules": ["rule_0"]}],
        "events": {"ordering": "sources", "source_column": "k", "idle_after": "1 min"},
    }
    watched = watched_job(folder, 2, pairs_of_events(8), keys)
    watched.batch({"rule_0": 4}, idle_sources=1, idle_names=["south"])
    checkpoint = Checkpoint(watched.spec.checkpoint_folder)
    checkpoint.alert_cursor("pager").parent.mkdir(parents=True)
    failure = Failure("2026-11-01T00:00:00Z", "503")
    cursor = Cursor({"matches": Place(0)}, failure=failure)
    write_cursor(checkpoint.alert_cursor("pager"), cursor, id_of(checkpoint))
    write_begin(checkpoint, 0, Begin({}, 0, reached={"north": 300_000_000, "south": 0}))
    return watched


def test_status_tells_that_a_job_runs_where_a_cursor_of_alerts_is_damaged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    watched = job_with_alerts_and_sources(tmp_path)
    checkpoint = Checkpoint(watched.spec.checkpoint_folder)
    checkpoint.alert_cursor("pager").write_text("{", encoding="utf-8")
    write_note(checkpoint, FilesNote("a.yaml:1 — no", (), "2026-11-01 00:00:00Z"))
    with checkpoint_lock(checkpoint), pytest.raises(StateError, match="pager"):
        status_command(subject_of(str(tmp_path / "job.yaml")))
    told = capsys.readouterr().out
    assert told.startswith(f"runs: as process {os.getpid()} since ")
    assert "! The rules of the files do not run, since 2026-11-01 00:00:00Z: a.yaml:1 — no" in told
    assert "no match yet: 1 rule: rule_1" in told


def test_a_long_history_is_drawn_in_few_points_that_lose_nothing() -> None:
    history = NOTHING.after(rows(1_990, 2.0))
    drawn = _batches(history)
    assert {len(values) for values in drawn.values()} == {500}
    assert (
        sum(drawn["records"]) == sum(range(1_990)) and drawn["pending"][-1] == max(drawn["pending"]) == 1_989
    )
    assert drawn["at"] == sorted(drawn["at"])
    assert drawn["at"][-1] == (BEGAN + timedelta(seconds=2.0 * 1_989)).timestamp() * 1e3
    few = _batches(NOTHING.after(rows(3, 2.0)))
    assert few["records"] == [0, 1, 2]
    assert "series" not in rules_told(None, history)  # which the terminal does not show


def test_what_is_wrong_in_the_rules_is_told_beside_what_the_tables_say(tmp_path: Path) -> None:
    watched = job_with_alerts_and_sources(tmp_path)
    job_file = str(tmp_path / "job.yaml")
    right = (tmp_path / "rules.yaml").read_text()
    one_is_wrong = right.replace("x >= 0", "x >= nothing")
    for wrong, rules in (("events: [", ["rule_0"]), (one_is_wrong, ["rule_0", "rule_1"])):
        (tmp_path / "rules.yaml").write_text(wrong)
        told = facts(subject_of(job_file), Seen(watched.spec.sink_path), SOON)
        assert "rules.yaml:1:" in told["wrong"] and told["name"] == "watched"
        assert told["rules"]["names"] == rules and told["rules"]["matches"][0] == 4
        said = "4 wait; failing since 2026-11-01T00:00:00Z: 503"
        assert [one["said"] for one in told["alerts"]] == [said]
        assert told["troubles"][-1] == f"Alerts for pager: {said}."
        assert [one["idle"] for one in told["sources"]] == [True, False]
        done = spark_pace("status", job_file)
        assert f"alerts.pager: {said}" in done.stdout and "! 1 source not waited for" in done.stdout
        assert done.returncode == 2 and "rules.yaml:1:" in done.stderr
    sink = f"name: x\nsink: {{kind: delta, path: {watched.spec.sink_path}}}"
    (tmp_path / "job.yaml").write_text(sink)
    told = facts(subject_of(job_file), Seen(watched.spec.sink_path), SOON)
    assert told["alerts"] == [] and "must have the key" in told["wrong"]
    (tmp_path / "job.yaml").write_text("name: x", encoding="utf-8")
    with pytest.raises(ConfigError, match="must have the key"):
        subject_of(job_file)


def test_what_cannot_be_reported_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no Delta table metrics there"):
        facts(Subject(str(tmp_path)), Seen(str(tmp_path)), SOON)
    done = spark_pace("report", tmp_path, "-o", tmp_path / "no" / "page.html")
    assert done.returncode == 2 and done.stderr.startswith("--out — must lie in a folder that is there; got ")


def test_an_event_of_times_to_come_is_told(tmp_path: Path) -> None:
    watched = watched_job(tmp_path, 1)
    watched.batch({}, max_time_us=int(SOON.timestamp() * 1e6) + 3_600_000_000)
    watched.batch({})  # the frontier stays where the event has moved it
    (told,) = [line for line in told_of(watched)["troubles"] if "newest" in line]
    assert "1:00:00 ahead of now" in told


def test_an_event_that_is_ahead_by_less_than_clocks_differ_is_no_trouble(tmp_path: Path) -> None:
    watched = watched_job(tmp_path, 1)
    watched.batch({}, max_time_us=int(SOON.timestamp() * 1e6) + 59_000_000)
    assert not [line for line in told_of(watched)["troubles"] if "newest" in line]
