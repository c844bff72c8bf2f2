"""A job whose alerts find nobody, or who is killed while it sends them: no table and no alert is missing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spark_pace.alerts import targets
from spark_pace.alerts.queue import read_cursor
from spark_pace.cli.run import alert_lines
from spark_pace.cli.status import status_command
from spark_pace.errors import SetupError
from spark_pace.job import run_job
from spark_pace.job_file import JobSpec, read_job
from spark_pace.spark.checkpoint import layout
from spark_pace.spark.checkpoint.checkpoint import Checkpoint
from spark_pace.spark.checkpoint.layout import id_of
from spark_pace.watching.subject import Subject
from tests.spark.jobs import in_core, job, matches, random_events, table, write_files
from tests.support.alerts import Server, numbers_of
from tests.support.both_places import Kept
from tests.support.commands import SPARK_PACE, environment

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]

LATE = {"t": "2023-01-01T00:00:00", "k": "u", "kind": "a", "x": 1}


@pytest.fixture
def server() -> Iterator[Server]:
    with Server().running() as started:
        yield started


def alerting(folder: Path, **target: Any) -> JobSpec:
    """A job with one target, over random events and two that are no events or late."""
    job(folder)
    text = (folder / "job.yaml").read_text()
    listed = json.dumps([{"name": "pager", "tables": ["matches", "late", "quarantine"], **target}])
    (folder / "job.yaml").write_text(f"{text}alerts: {listed}\n")
    return read_job(folder / "job.yaml")


def of_table(alerts: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [alert for alert in alerts if alert["table"] == name]


def all_sent(spec: JobSpec, server: Server) -> None:
    """Every row of the tables has come, the matches of each rule in order, and each row has one id."""
    sent = of_table(server.alerts, "matches")
    for rule in spec.rules:
        written = [row["out_seq"] for row in matches(spec) if row["rule"] == rule.name]
        assert numbers_of(sent, rule.name) == written
    for name in ("late", "quarantine"):
        came = {(alert["source"], alert["offset"]) for alert in of_table(server.alerts, name)}
        assert came == {(row["source"], row["offset"]) for row in table(spec, name).to_pylist()}
    rows = sum(table(spec, name).num_rows for name in ("matches", "late", "quarantine"))
    assert len({alert["id"] for alert in server.alerts}) == rows


def test_a_target_that_is_down_delays_no_table_and_gets_all_once_it_is_back(
    tmp_path: Path,
    server: Server,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(targets, "AT_END_SECONDS", 0.5)
    spec = alerting(tmp_path, http="http://127.0.0.1:9/")
    write_files(tmp_path, [*random_events(5), LATE], 2)
    (tmp_path / "in" / "9.json").write_text('{"t": 1\n')
    summary = run_job(spec)
    assert summary.finished
    assert matches(spec) == in_core(only_events(spec)).matches.to_pylist()
    waiting = sum(table(spec, name).num_rows for name in ("matches", "late", "quarantine"))
    (told,) = alert_lines(summary)
    assert told.startswith(f"alerts.pager: 0 sent, {waiting} wait: the next start sends them; ")
    assert told.endswith(", the last: Connection refused")
    line = told_by_status(tmp_path, capsys)
    assert line.startswith(f"alerts.pager: {waiting} wait; failing since 20")
    assert line.endswith(": Connection refused")
    spec = alerting(tmp_path, http=server.url)
    (counts,) = run_job(spec).alerts
    assert (counts.sent, counts.waiting) == (waiting, 0)
    all_sent(spec, server)
    assert not any(alert["repeat"] for alert in server.alerts)
    line = told_by_status(tmp_path, capsys)
    assert line.startswith("alerts.pager: 0 wait; the last failure, now over, began at 20")


def test_a_first_start_that_ends_before_the_checkpoint_has_its_id_is_begun_anew(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = alerting(tmp_path, http=server.url)
    write_files(tmp_path, random_events(5), 1)

    def end(*_: object) -> None:
        raise SetupError("ended")

    with monkeypatch.context() as patch, pytest.raises(SetupError, match="ended"):
        patch.setattr(layout, "write_json", end)
        run_job(spec)
    assert Checkpoint(spec.checkpoint_folder).alert_cursor("pager").is_file()
    run_job(spec)
    assert matches(spec)
    all_sent(spec, server)


def told_by_status(folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    status_command(Subject.of(read_job(folder / "job.yaml")))
    said = capsys.readouterr().out.splitlines()
    (line,) = [line for line in said if line.startswith("alerts.pager")]
    return line


def only_events(spec: JobSpec) -> JobSpec:
    """The job without the file that has no event, which the core would not read."""
    (Path(spec.files.path) / "9.json").rename(Path(spec.files.path).parent / "9.json")
    return spec


@pytest.mark.long  # tests/unit/alerts/test_killed_forwarders.py kills what sends, without Spark
def test_a_job_killed_between_sending_and_its_note_sends_that_piece_again_and_marks_it(
    tmp_path: Path, server: Server, kept: Kept
) -> None:
    alerting(tmp_path, http=server.url, batch=4)
    spec = kept.for_job(tmp_path / "job.yaml")
    write_files(tmp_path, random_events(6), 2)
    server.answers = [(200, {}), (200, {}), "hang"]
    with subprocess.Popen(
        [SPARK_PACE, "run", str(tmp_path / "job.yaml")], env=environment(), start_new_session=True
    ) as running:
        server.wait_for(lambda server: len(server.posts) == 3, seconds=300)  # a JVM starts first
        os.killpg(running.pid, signal.SIGKILL)
    before = len(server.posts)
    checkpoint = Checkpoint(spec.checkpoint_folder)
    cursor = read_cursor(checkpoint.alert_cursor("pager"), id_of(checkpoint)[:8])
    assert before == 3 and cursor is not None and cursor.sending is not None
    (counts,) = run_job(spec).alerts
    assert matches(spec) == in_core(spec).matches.to_pylist()
    all_sent(spec, server)
    assert counts.waiting == 0
    again = [alert["id"] for post in server.posts[before:] for alert in post if alert["repeat"]]
    assert again == [alert["id"] for alert in server.posts[before - 1]]
    first = [alert for post in server.posts[:before] for alert in post]
    assert not any(alert["repeat"] for alert in first)
    ids = [alert["id"] for alert in server.alerts]
    assert {one for one in ids if ids.count(one) > 1} == set(again)
