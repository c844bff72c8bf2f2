"""Targets that fail, come back, refuse, or are stopped: what they get, and what is kept of it. No Spark."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml

from spark_pace import load_rules
from spark_pace.alerts import targets
from spark_pace.alerts.queue import Place, Sending, read_cursor, write_cursor
from spark_pace.core.operate.match_table import FIXED_COLUMNS
from spark_pace.errors import ConfigError, SetupError
from spark_pace.io.delta_tables import QUARANTINE_SCHEMA
from spark_pace.io.query import REFUSED, Tables
from tests.support.alerts import (
    CHECKPOINT,
    LATE_SCHEMA,
    RULES,
    TIME,
    Server,
    alerts_of,
    cursor_file,
    job_tables,
    look,
    match_rows,
    numbers_of,
    pager,
    report,
    running,
    sent_by,
)
from tests.support.commands import spark_pace


@pytest.fixture
def server() -> Iterator[Server]:
    with Server().running() as started:
        yield started


def test_a_match_is_sent_as_the_documented_object(tmp_path: Path, server: Server) -> None:
    tables = job_tables(tmp_path / "out")
    with running(tmp_path, pager(server)) as alerts:
        tables.append("matches", match_rows(("a", range(1)), ("b", range(1))), 0)
        sent_by(alerts)
    first, second = server.alerts
    shown = {
        "schema": 1,
        "id": "cards:01234567/matches/a/0",
        "repeat": False,
        "job": "cards",
        "table": "matches",
        "rule": "a",
        "key": None,
        "out_seq": 0,
        "selection_id": 1,
        "seq": 3,
        "opened_at": "2024-05-01T12:00:00Z",
        "matched_at": "2024-05-01T12:00:00Z",
        "fields": {"x": 0, "y": None},
        "events": [
            {
                "component": "a",
                "seq": 3,
                "event_time": "2024-05-01T12:00:00Z",
                "source": "in.json",
                "offset": 7,
            }
        ],
    }
    assert first | shown == first and set(first) - set(shown) <= set(FIXED_COLUMNS)
    assert (second["rule"], second["fields"]) == ("b", {"y": None})


def test_rules_that_are_taken_over_are_sent_with_their_own_fields(tmp_path: Path, server: Server) -> None:
    tables = job_tables(tmp_path / "out")
    with running(tmp_path, pager(server)) as alerts:
        rules = load_rules(yaml.safe_load(RULES.replace("name: b", "name: c")))
        alerts.know(rules)
        tables.append("matches", match_rows(("b", range(1)), ("c", range(1))), 0)
        sent_by(alerts)
    assert [alert["fields"] for alert in server.alerts] == [{"y": None}, {"y": None}]


def test_a_quarantined_record_is_sent_with_its_columns(tmp_path: Path, server: Server) -> None:
    tables = job_tables(tmp_path / "out")
    row = {"kind": "record", "reason": "no", "source": "a/b c", "offset": 4, "raw": b"\xff" + b"x" * 9000}
    with running(tmp_path, pager(server, tables=["quarantine"])) as alerts:
        tables.append("quarantine", pa.Table.from_pylist([row | {"batch_id": 0}], QUARANTINE_SCHEMA), 0)
        tables.append("matches", match_rows(("a", range(1))), 0)
        sent_by(alerts)
    (alert,) = server.alerts
    assert alert["id"] == "cards:01234567/quarantine/record////a%2Fb%20c/4/b5499bca"
    assert (alert["reason"], alert["offset"], alert["rule"]) == ("no", 4, None)
    assert alert["raw"] == "\\xff" + "x" * 4095


def test_of_many_bad_records_with_one_row_one_alert_waits(tmp_path: Path, server: Server) -> None:
    tables = job_tables(tmp_path / "out")
    row = {"kind": "record", "reason": "500 bad records of rows 0 to 499", "source": "a", "offset": 0}
    with running(tmp_path, pager(server, tables=["quarantine"])) as alerts:
        tables.append("quarantine", pa.Table.from_pylist([row | {"batch_id": 0}], QUARANTINE_SCHEMA), 0)
        alerts.look(replace(report(str(tmp_path / "out"), 0), quarantined=500))
        alerts.wait(threading.Event())
        assert (alerts.counts[0].sent, alerts.counts[0].waiting) == (1, 0)


def test_a_new_target_hears_of_what_is_written_from_then_on(tmp_path: Path, server: Server) -> None:
    tables = job_tables(tmp_path / "out")
    tables.append("matches", match_rows(("a", range(3))), 0)
    with running(tmp_path, pager(server, rules=["a"])) as alerts:
        tables.append("matches", match_rows(("a", range(3, 5)), ("b", range(2))), 1)
        sent_by(alerts)
        assert vars(alerts.counts[0]) == {
            "target": "pager",
            "waiting": 0,
            "sent": 2,
            "refused": 0,
            "failures": 0,
            "failure": None,
            "is_failing": False,
        }
    assert numbers_of(server.alerts, "a") == [3, 4]
    assert len(server.alerts) == 2


def test_a_target_goes_on_behind_batches_that_have_nothing_for_it(tmp_path: Path, server: Server) -> None:
    tables = job_tables(tmp_path / "out")
    with running(tmp_path, pager(server, rules=["b"])) as alerts:
        for batch, rule in enumerate("aab"):
            tables.append("matches", match_rows((rule, range(1))), batch)
        sent_by(alerts)
    cursor = read_cursor(cursor_file(tmp_path), CHECKPOINT)
    assert cursor is not None and cursor.places == {"matches": Place(3)} and len(server.alerts) == 1


def test_a_failing_target_gets_all_in_order_and_is_told_of_once(
    tmp_path: Path, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    tables = job_tables(tmp_path / "out")
    server.answers = [(200, {}), "drop", (500, {}), (429, {"Retry-After": "0"})]
    with running(tmp_path, pager(server, batch=10)) as alerts:
        tables.append("matches", match_rows(("a", range(25))), 0)
        sent_by(alerts)
        (counts,) = alerts.counts
    assert [post[0]["out_seq"] for post in server.posts] == [0, 10, 10, 10, 10, 20]
    assert [post[0]["repeat"] for post in server.posts] == [False, False, True, True, True, False]
    assert [len(post) for post in server.posts] == [10, 10, 10, 10, 10, 5]
    assert (counts.sent, counts.failures, counts.failure) == (25, 3, "429 Too Many Requests")
    began, ended = caplog.messages
    assert began == (
        "alerts.pager — must accept what it is sent; got a connection that was closed. "
        "Its alerts (15 so far) wait until it does."
    )
    assert ended.startswith("alerts.pager — accepts alerts again, after ")


def test_what_is_refused_is_kept_in_a_table_and_the_rest_goes_on(tmp_path: Path, server: Server) -> None:
    tables = job_tables(tmp_path / "out")
    server.refused = lambda alert: alert["out_seq"] in (1, 4)
    with running(tmp_path, pager(server, batch=3)) as alerts:
        tables.append("matches", match_rows(("a", range(6))), 0)
        sent_by(alerts)
        (counts,) = alerts.counts
    assert (counts.sent, counts.refused, counts.waiting) == (4, 2, 0)
    kept = (
        Tables(tmp_path / "out", ["alerts_refused"])
        .query("SELECT * FROM alerts_refused")
        .read_all()
        .to_pylist()
    )
    assert {(one["target"], one["id"], one["status"], one["reply"]) for one in kept} == {
        ("pager", f"cards:01234567/matches/a/{number}", "400", "no such thing") for number in (1, 4)
    }
    assert {json.loads(one["alert"])["out_seq"] for one in kept} == {1, 4}
    for first, *alone in (server.posts[:4], server.posts[4:]):
        assert [alert["repeat"] for alert in first] == [False] * 3
        assert [alert["repeat"] for post in alone for alert in post] == [True] * 3
    asked = spark_pace("sql", tmp_path / "out", "SELECT status FROM alerts_refused", "--format", "csv")
    assert asked.stdout == "status\n400\n400\n"


def test_after_a_failure_between_single_alerts_those_left_are_posted(tmp_path: Path, server: Server) -> None:
    tables = job_tables(tmp_path / "out")
    server.refused = lambda alert: alert["out_seq"] == 2
    server.answers = [(200, {}), (200, {}), (429, {}), (429, {})]
    with running(tmp_path, pager(server)) as alerts:
        tables.append("matches", match_rows(("a", range(3))), 0)
        sent_by(alerts)
        (counts,) = alerts.counts
    posts = [[alert["out_seq"] for alert in post] for post in server.posts]
    assert posts == [[0, 1, 2], [0], [1], [1], [1], [2]]
    assert (counts.sent, counts.refused, counts.failures) == (2, 1, 2)
    assert [alert["repeat"] for alert in server.alerts] == [False] * 3 + [True] * 5


def stored_refusals(folder: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = (
        Tables(folder / "out", [REFUSED]).query(f"SELECT * FROM {REFUSED}").read_all().to_pylist()
    )
    return rows


def test_what_is_refused_of_a_piece_is_stored_at_once_and_each_alert_of_it_is_a_step(
    tmp_path: Path, server: Server
) -> None:
    tables, moved = job_tables(tmp_path / "out"), list[float]()
    with running(tmp_path, pager(server)) as alerts:

        def is_refused(_: dict[str, Any]) -> bool:
            moved.append(alerts._forwarders[0].moved_at)
            return True

        server.refused = is_refused
        tables.append("matches", match_rows(("a", range(9))), 0)
        sent_by(alerts)
        assert alerts.counts[0].refused == 9
    assert Tables(tmp_path / "out", [REFUSED]).version(REFUSED) == 0
    assert len(stored_refusals(tmp_path)) == 9
    assert len(server.posts) == 10 and len(set(moved)) == 9  # after the whole piece, and each but the last


def test_what_was_refused_when_the_job_is_stopped_amid_single_alerts_is_stored_once(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(targets, "AT_STOP_SECONDS", 0.0)
    tables, stopped = job_tables(tmp_path / "out"), threading.Event()
    stopped.set()
    server.answers = [(400, {}), (400, {}), "hang"]
    with running(tmp_path, pager(server, timeout="1 s")) as alerts:
        tables.append("matches", match_rows(("a", range(3))), 0)
        look(alerts)
        server.wait_for(lambda server: len(server.posts) == 3)
        alerts.wait(stopped)
    server.refused = lambda alert: True
    with running(tmp_path, pager(server)) as alerts:
        sent_by(alerts)
    assert len(stored_refusals(tmp_path)) == 3


def test_what_kafka_s_client_refuses_is_not_sent_again_alone(tmp_path: Path) -> None:
    tables = job_tables(tmp_path / "out")
    place = {"servers": "127.0.0.1:9", "topic": "t", "options": {"message.max.bytes": "1000"}}
    with running(tmp_path, {"name": "bus", "kafka": place, "tables": ["late"]}) as alerts:
        late = {"event_time": TIME, "source": "in", "reason": "late", "event": "x" * 2_000}
        rows = pa.Table.from_pylist([{**late, "offset": number} for number in range(2)], LATE_SCHEMA)
        tables.append("late", rows, 0)
        sent_by(alerts)
    rows = stored_refusals(tmp_path)
    assert [json.loads(row["alert"])["repeat"] for row in rows] == [False, False]
    assert {row["status"] for row in rows} == {"MSG_SIZE_TOO_LARGE"}


def test_batches_that_another_driver_has_done_are_counted_from_the_tables(
    tmp_path: Path, server: Server
) -> None:
    tables = job_tables(tmp_path / "out")
    with running(tmp_path, pager(server, tables=["matches", "late"])) as alerts:
        for batch in range(4):
            tables.append("matches", match_rows(("a", range(batch, batch + 1))), batch)
        late = {"event_time": TIME, "source": "in", "offset": 0, "reason": "late", "event": "{}"}
        tables.append("late", pa.Table.from_pylist([late], LATE_SCHEMA), 1)
        for batch in (0, 3, 3):  # the last one is done again
            alerts.look(report(str(tmp_path / "out"), batch))
        alerts.wait(threading.Event())
        assert (alerts.counts[0].sent, alerts.counts[0].waiting) == (5, 0)
    sent = [alert["out_seq"] if alert["table"] == "matches" else "late" for alert in server.alerts]
    assert sent == [0, 1, "late", 2, 3]


def test_a_target_that_is_down_keeps_no_other_waiting(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(targets, "AT_END_SECONDS", 1.5)
    tables = job_tables(tmp_path / "out")
    down = {"name": "down", "http": "http://127.0.0.1:9/", "timeout": "1 s"}
    with running(tmp_path, down, pager(server)) as alerts:
        tables.append("matches", match_rows(("a", range(3))), 0)
        sent_by(alerts)
        of_down, of_pager = alerts.counts
    assert (of_down.waiting, of_down.sent, of_pager.waiting, of_pager.sent) == (3, 0, 0, 3)
    assert of_down.is_failing and of_down.failure == "Connection refused"
    cursor = read_cursor(cursor_file(tmp_path, "down"), CHECKPOINT)
    assert cursor is not None and cursor.sending is None
    assert cursor.failure is not None and cursor.failure.text == "Connection refused"
    with running(tmp_path, {**pager(server), "name": "down"}) as alerts:  # it is back, at another address
        sent_by(alerts)
    assert [alert["repeat"] for alert in server.alerts] == [False] * 6
    cursor = read_cursor(cursor_file(tmp_path, "down"), CHECKPOINT)
    assert cursor is not None and cursor.failure is not None and cursor.failure.over


def test_after_a_crash_the_piece_that_was_under_way_is_marked_and_no_other(
    tmp_path: Path, server: Server
) -> None:
    """The cursor is as a killed process leaves it."""
    tables = job_tables(tmp_path / "out")
    with running(tmp_path, pager(server)):
        pass
    tables.append("matches", match_rows(("a", range(10))), 0)
    cursor = read_cursor(cursor_file(tmp_path), CHECKPOINT)
    assert cursor is not None and cursor.places["matches"] == Place(0)
    crashed = type(cursor)({"matches": Place(0, 2)}, Sending("matches", 7))
    write_cursor(cursor_file(tmp_path), crashed, CHECKPOINT)
    with running(tmp_path, pager(server, batch=2)) as alerts:  # the piece had more rows than one of now
        sent_by(alerts)
    assert [(alert["out_seq"], alert["repeat"]) for alert in server.alerts] == [
        (number, number < 7) for number in range(2, 10)
    ]
    assert max(map(len, server.posts)) == 2


def test_a_piece_that_is_accepted_while_the_job_ends_does_not_come_again(
    tmp_path: Path, server: Server
) -> None:
    tables = job_tables(tmp_path / "out")
    tables.append("matches", match_rows(("a", range(6))), 0)
    with running(tmp_path, pager(server)):
        cursor = read_cursor(cursor_file(tmp_path), CHECKPOINT)
    assert cursor is not None
    write_cursor(cursor_file(tmp_path), type(cursor)({"matches": Place(0)}), CHECKPOINT)
    with running(tmp_path, pager(server, batch=2)) as alerts:
        (forwarder,) = alerts._forwarders
        server.refused = lambda alert: bool(forwarder.stop()) if alert["out_seq"] == 3 else False
        look(alerts)
        server.wait_for(lambda server: len(server.posts) == 2)
    with running(tmp_path, pager(server, batch=2)) as alerts:
        sent_by(alerts)
    assert [(alert["out_seq"], alert["repeat"]) for alert in server.alerts] == [(n, False) for n in range(6)]


def test_a_message_that_hangs_at_the_end_is_a_repeat_at_the_next_start(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(targets, "AT_STOP_SECONDS", 0.0)
    tables = job_tables(tmp_path / "out")
    server.answers = ["hang"]
    stopped = threading.Event()
    stopped.set()
    with running(tmp_path, pager(server, timeout="1 s")) as alerts:
        tables.append("matches", match_rows(("a", range(2))), 0)
        look(alerts)
        server.wait_for(lambda server: len(server.posts) == 1)
        alerts.wait(stopped)
    with running(tmp_path, pager(server)) as alerts:
        sent_by(alerts)
    assert [(alert["out_seq"], alert["repeat"]) for alert in server.alerts[2:]] == [(0, True), (1, True)]


def test_secrets_reach_the_target_and_no_message(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tables = job_tables(tmp_path / "out")
    monkeypatch.setenv("HOOK", server.url)
    monkeypatch.setenv("TOKEN", "s3cret")
    target = {"name": "pager", "http": "${env:HOOK}", "headers": {"Authorization": "Bearer ${env:TOKEN}"}}
    server.answers = [(500, {})]
    with running(tmp_path, target) as alerts:
        tables.append("matches", match_rows(("a", range(1))), 0)
        sent_by(alerts)
    assert server.headers[-1]["Authorization"] == "Bearer s3cret"
    assert "s3cret" not in cursor_file(tmp_path).read_text() + caplog.text


def test_secrets_that_a_target_says_again_reach_no_table_and_no_message(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tables = job_tables(tmp_path / "out")
    monkeypatch.setenv("TOKEN", 's3cret/"&key"')
    server.refused = lambda alert: True
    said = r"s3cret/\"&key\" s3cret\/\"&key\" s3cret%2F%22%26key%22 s3cret/&quot;&amp;key&quot;"
    server.refusal = f'{said} {"x" * 400} s3cret/"&key"'.encode()  # the last one where the reply is cut
    with running(tmp_path, pager(server, headers={"Authorization": "Bearer ${env:TOKEN}"})) as alerts:
        tables.append("matches", match_rows(("a", range(1))), 0)
        sent_by(alerts)
    rows = Tables(tmp_path / "out", [REFUSED]).query(f"SELECT reply FROM {REFUSED}").read_all().to_pylist()
    assert rows == [{"reply": f"*** *** *** *** {'x' * 400} ***"}]
    log = "".join(path.read_text() for path in (tmp_path / "out" / REFUSED / "_delta_log").iterdir())
    assert "minValues" in log and "s3c" not in log + caplog.text


def test_a_secret_that_is_not_there_is_told_before_anything_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HOOK", raising=False)
    with pytest.raises(SetupError) as missing:
        alerts_of(tmp_path, {"name": "pager", "http": "${env:HOOK}"})
    assert str(missing.value) == (
        "alerts.pager.http — must name a variable of the environment; got ${env:HOOK}, which is not set. "
        "Set HOOK and start the job again."
    )
    monkeypatch.setenv("HOOK", "s3cret")
    with pytest.raises(ConfigError) as wrong:
        alerts_of(tmp_path, {"name": "pager", "http": "${env:HOOK}"})
    assert str(wrong.value) == (
        "alerts.pager.http — must be an address that begins with http:// or https://; "
        "got another text in the environment. Correct the variable."
    )


def test_a_secret_with_an_end_of_line_is_refused_unseen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", "s3cret\n")
    with pytest.raises(ConfigError) as wrong:
        alerts_of(tmp_path, {"name": "pager", "http": "http://x", "headers": {"A": "Bearer ${env:TOKEN}"}})
    assert str(wrong.value) == (
        "alerts.pager.headers.A — must be one line of ASCII; got other characters, or an end of line. "
        "Correct the variable."
    )


def test_a_command_reads_the_lines(tmp_path: Path) -> None:
    tables = job_tables(tmp_path / "out")
    words = [sys.executable, "-c", "import sys; open(sys.argv[1], 'w').writelines(sys.stdin)", "lines"]
    words[-1] = str(tmp_path / "lines")
    with running(tmp_path, {"name": "pager", "command": words}) as alerts:
        tables.append("matches", match_rows(("a", range(3))), 0)
        sent_by(alerts)
    got = [json.loads(line)["out_seq"] for line in (tmp_path / "lines").read_text().splitlines()]
    assert got == [0, 1, 2]
