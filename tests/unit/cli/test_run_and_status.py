"""What `spark-pace run` shows of a job, and what `spark-pace status` reads from its tables."""

import io
import json
import os
import re
import subprocess
import sys
import threading
import time
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from signal import SIGINT
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from deltalake import write_deltalake
from rich.console import Console

from spark_pace.cli.run import Progress, advice_on_late, alert_lines, closing_line, line
from spark_pace.errors import counted
from spark_pace.io.metrics import METRICS_SCHEMA, AlertCounts, BatchReport
from spark_pace.job_file import JobSpec, read_job
from spark_pace.spark.checkpoint.checkpoint import Checkpoint, FilesNote, write_note
from spark_pace.spark.checkpoint.layout import Layout, write_layout
from spark_pace.spark.checkpoint.lock import checkpoint_lock, holder
from spark_pace.spark.summary import Summary
from tests.support.commands import spark_pace

ROOT = Path(__file__).parents[3]
MINUTE_US = 60_000_000
JAN_2 = datetime(2013, 1, 2, tzinfo=timezone.utc)


def progress(**changes: object) -> BatchReport:
    values = {
        "batch_id": 7, "seconds": 2.0, "batch_seconds": 1.5,
        "records": 3_001, "events": 3_000, "late": 1, "bad_records": 0,
        "heartbeats": 0,
        "repeats": 0, "quarantined": 0, "matches": {"knock_on": 4}, "pending": 10, "carry": 58, "open": 3,
        "state_bytes": 1_500_000, "frontier_us": 1_357_084_800_000_000,
        "max_time_us": 1_357_084_800_000_000 + 90 * MINUTE_US,
        "newest_us": 1_357_084_800_000_000 + 90 * MINUTE_US, "idle_sources": 0,
        "slowest_source": None, "idle_names": (), "unheard_sources": (), "waiting_for": (), "finished": False,
        "selections": 5, "operator_seconds": 0.5, "lanes": 1, "lane_rows": 9, "distinct_rows": 9,
        "longest_lane_seconds": 0.5, "longest_lane_predicted": None, "over_bound": None,
        "lookups": {},
    }  # fmt: skip
    return BatchReport(**(values | changes))  # type: ignore[arg-type]


def test_a_batch_is_one_line_in_a_log():
    told = line(progress(newest_us=int(time.time() * 1e6) - 5_400_000_000))
    frontier = r"frontier 2013-01-02 00:00:00Z, \d{4} days, [\d:]+ behind the newest event"
    batch, rest = "batch 7: 3,000 events, 1,500/s", "late 1; carry 58; matches: knock_on 4"
    assert re.fullmatch(rf"{batch}; {frontier}; lag 1:30:0\d; {rest}", told)
    assert "; frontier 2013-01-02 00:00:00Z; lag none; " in line(progress(newest_us=None))


def test_the_line_says_where_there_is_no_frontier():
    assert "; frontier none yet; lag " in line(progress(frontier_us=None))
    assert "frontier end" in line(progress(finished=True))
    assert line(progress(matches={})).endswith("matches: none")


def test_the_line_names_the_sources_that_a_standing_stream_waits_for():
    held = progress(slowest_source="b", waiting_for=("b", "c"))
    assert "; waiting for sources: b, c; late 1" in line(held)


def test_a_bound_that_no_cut_could_keep_is_told_with_each_batch_and_at_the_end():
    over = progress(over_bound="3 s predicted")
    assert "; latency_bound cannot be kept: 3 s predicted; late 1" in line(over)
    summary = Summary({"knock_on": 0})
    for batch in (progress(), over, progress()):
        summary.add(batch)
    told = "; latency_bound could not be kept in 1 of 3 batches, in the last: 3 s predicted"
    assert closing_line(summary).endswith(
        f"; 3 selections still open, 10 events that the frontier has not passed{told}"
    )


def test_behind_the_last_line_stands_what_was_sent_and_what_waits():
    summary = Summary({"knock_on": 0})
    assert alert_lines(summary) == []
    summary.alerts = [
        AlertCounts("bus", sent=1200),
        AlertCounts("pager", 3, 9, 1, 1, "503 Service Unavailable"),
    ]
    assert alert_lines(summary) == [
        "alerts.bus: 1,200 sent",
        "alerts.pager: 9 sent, 1 refused, which are in the table alerts_refused, "
        "3 wait: the next start sends them; 1 failure, the last: 503 Service Unavailable",
    ]


def test_the_last_line_says_what_the_end_of_the_input_has_closed():
    summary = Summary({"knock_on": 0})
    summary.add(progress(finished=True, pending=0))
    assert closing_line(summary).endswith("; 3 selections closed by the end of the input")


def test_a_source_whose_name_is_no_plain_text_is_shown_by_escapes():
    """It may come from an attribute of the events."""
    held = progress(slowest_source="b\x1b[2J", waiting_for=("b\x1b[2J", "c"))
    assert "waiting for sources: b\\x1b[2J, c; " in line(held)
    assert re.search(r"slowest source +b\\x1b\[2J; 0 left out", shown_live(held))


def shown_live(*batches: BatchReport) -> str:
    """The live table after batches."""
    run, text_file = Progress(read_job(ROOT / "conf" / "jobs" / "flights.yaml"), pytest.fail), io.StringIO()
    for batch in batches:
        run.batch(batch)
    Console(width=140, file=text_file).print(run.board(batches[-1]))
    return text_file.getvalue()


def test_the_live_table_sums_up_batches():
    shown = " ".join(shown_live(progress(), progress(batch_id=8)).split())
    for text in (
        "flights batch 8 ",
        "records 6,002 records: 6,000 events, 2 late",
        "frontier 2013-01-02 00:00:00Z",
        "lag of the frontier 1:30:00",
        "carried 58 events, 3 selections open",
        "knock_on │ 8 │",
    ):
        assert text in shown


@pytest.mark.parametrize(
    ("summary", "start"),
    [
        (Summary({"r": 2}, events=1_000, batches=1, finished=True), "finished: 1,000 events"),
        (Summary({"r": 2}, events=1_000, batches=1), "up to date: 1,000 events"),
        (
            Summary({"r": 2}, events=1_000, batches=1, stopped_by=SIGINT),
            "stopped; run it again to go on: 1,000 events",
        ),
    ],
)
def test_the_last_line_says_how_the_run_ended(summary: Summary, start: str):
    assert closing_line(summary).startswith(start)
    assert "matches: r 2" in closing_line(summary)


def test_the_last_line_counts_heartbeats_and_repeats_where_there_are_any():
    assert "0 late, 0 quarantined; matches" in closing_line(Summary({"r": 2}))
    assert "0 late, 0 quarantined, 3 heartbeats, 4 repeats; matches" in closing_line(
        Summary({"r": 2}, heartbeats=3, repeats=4)
    )


def test_one_of_a_thing_is_told_in_the_singular():
    one = Summary(
        {"r": 1}, events=1, heartbeats=1, repeats=1, batches=1, still_open=1, pending=1, over_bound=1
    )
    told = closing_line(one)
    for text in (
        "1 event in",
        "1 heartbeat, 1 repeat;",
        "1 selection still open, 1 event that",
        "1 of 1 batch,",
    ):
        assert text in told
    assert line(progress(events=1)).startswith("batch 7: 1 event, ")
    assert [counted(number, "match") for number in (0, 1, 2_000)] == ["0 matches", "1 match", "2,000 matches"]


def test_status_reads_the_tables(tmp_path: Path):
    batch = dict.fromkeys(METRICS_SCHEMA.names, 0) | {"matches_by_rule": [], "lookups": [], "absent": []}
    batch |= {"idle_names": ["west"], "unheard_sources": ["nowhere\x1b"]}
    batch |= dict.fromkeys(("written_at", "frontier", "max_event_time"), JAN_2)
    batch |= {"slowest_source": "north\x1b/0", "idle_sources": 2, "pending": 3, "finished": False}
    batch |= {"over_bound": None}
    batch |= {"seconds": 1.5, "batch_seconds": 0.25, "events": 1_000}
    rows = [
        batch | {"batch_id": number, "records": 1_000 + number, "late": number, "carry": 5 * number}
        for number in (1, 0)
    ]
    write_deltalake(tmp_path / "metrics", pa.Table.from_pylist(rows, METRICS_SCHEMA))
    matches = {"rule": ["r", "r"], "opened_at": [JAN_2, JAN_2], "matched_at": [JAN_2, JAN_2]}
    write_deltalake(tmp_path / "matches", pa.table(matches))
    answer = spark_pace("status", tmp_path)
    assert answer.returncode == 0, answer.stderr
    _, stands, idle, unheard, first, took, *lines = answer.stdout.splitlines()
    assert idle.startswith("! 2 sources not waited for, too far behind the fastest one: west and others. ")
    assert unheard.startswith(r"! Never heard of, though expected: nowhere\x1b. The frontier waits for ")
    assert stands.startswith("! The frontier stands at 2013-01-02 00:00:00Z since 2013-01-02 00:00:00Z, ")
    at = r"\d{4} days, [\d:]+ ago, at 2013-01-02 00:00:00Z"
    assert re.fullmatch(rf"batches: 2 batches, the last \(1\) {at}", first)
    assert took == "seconds a batch: last 0.25, mean 0.25, greatest 0.25"
    assert lines[:5] == [
        "records a second: lately 667, mean 667",
        "records: 2,001 records: 2,000 events, 1 late, 0 bad, 0 heartbeats, 0 repeats",
        *("matches: 0", "in quarantine: 0", "frontier: 2013-01-02 00:00:00Z"),
    ]
    assert lines[7:11] == [
        *("waiting for the frontier: 3 events", "carried: 5 events, 0 selections open", "state: 0 bytes"),
        r"slowest source: north\x1b/0; 2 left out",
    ]
    assert "┃ rule ┃ matches ┃ first matched at     ┃ last matched at      ┃" in answer.stdout
    assert "│ r    │ 2       │ 2013-01-02 00:00:00Z │" in answer.stdout


def test_status_of_a_job_file_says_whether_the_job_runs(tmp_path: Path):
    write_deltalake(tmp_path / "metrics", METRICS_SCHEMA.empty_table())
    matches = {"rule": ["r"], "opened_at": [JAN_2], "matched_at": [JAN_2]}
    write_deltalake(tmp_path / "matches", pa.table(matches))
    answer = spark_pace("status", tmp_path)
    rule = {"name": "r", "pattern": {"sequence": [{"a": "true"}]}}
    events = {"schema": "time TIMESTAMP", "event_time": "time"}
    (tmp_path / "rules.yaml").write_text(json.dumps({"events": events, "rules": [rule]}))
    job = {"name": "job", "rules": ["rules.yaml"], "checkpoint": "checkpoint"}
    job |= {
        "source": {"kind": "files", "format": "json", "path": "."},
        "sink": {"kind": "delta", "path": "."},
    }
    (tmp_path / "job.yaml").write_text(json.dumps(job))
    of_job = spark_pace("status", tmp_path / "job.yaml").stdout.splitlines()
    assert of_job[:2] == [
        "stopped: does not run on this machine",
        "! The job has done no batch, and does not run on this machine.",
    ]
    unknown, *of_tables = answer.stdout.splitlines()
    assert unknown.startswith("unknown: the job file tells whether a job runs") and of_job[2:] == of_tables
    (tmp_path / "rules.yaml").write_text("events: [")
    wrong = spark_pace("status", tmp_path / "job.yaml")
    assert wrong.stdout.splitlines() == of_job
    assert wrong.returncode == 2 and "rules.yaml:1:" in wrong.stderr
    checkpoint = Checkpoint(tmp_path / "checkpoint")
    with checkpoint_lock(checkpoint):
        state = spark_pace("status", tmp_path / "job.yaml").stdout.splitlines()[0]
        assert re.fullmatch(rf"runs: as process {os.getpid()} since \d{{4}}-[\d: -]+Z, for 0:00:\d\d", state)
        assert spark_pace("status", tmp_path).stdout.splitlines() == answer.stdout.splitlines()
        write_layout(checkpoint, Layout(1, 1, (0,), "app", {}))
        why = "rules — are not taken over: a.yaml — must; got \x1b.\nb.yaml — must; got 2."
        write_note(checkpoint, FilesNote(why, ("trigger", "spark"), "2024-01-01 00:00:00Z"))
        for named in (tmp_path, tmp_path / "job.yaml"):
            assert spark_pace("status", named).stdout.splitlines()[1:3] == [
                "! The rules of the files do not run, since 2024-01-01 00:00:00Z: "
                r"rules — are not taken over: a.yaml — must; got \x1b. b.yaml — must; got 2.",
                "! job file — changed since the start: trigger, spark. That counts at the next start.",
            ]
    assert spark_pace("status", tmp_path).stdout.splitlines()[0] == "stopped: does not run on this machine"


def test_to_look_who_holds_a_checkpoint_keeps_no_job_from_starting(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path)
    assert holder(checkpoint) is None
    ended = threading.Event()

    def look() -> None:
        while not ended.is_set():
            holder(checkpoint)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        for _ in range(200):
            with checkpoint_lock(checkpoint):
                pass
    finally:
        ended.set()
        thread.join()


def test_status_says_where_no_job_has_run(tmp_path: Path):
    answer = spark_pace("status", tmp_path)
    must = "must be the `sink: path:` of a job that has run; got no Delta table metrics there"
    message = f"{tmp_path} — {must}. Name the folder with the tables.\n"
    assert (answer.returncode, answer.stderr) == (2, message)


def test_status_counts_matches_without_keeping_them(tmp_path: Path) -> None:
    """Four million matches would be 200 MB."""
    peaks = [_peak_of_status(tmp_path / str(count), count) for count in (2, 4_000_000)]
    assert peaks[1] - peaks[0] < 80_000


def _peak_of_status(out: Path, count: int) -> int:
    times = pa.array(np.arange(count) * 1_000, pa.timestamp("us", "UTC"))
    rules = ["short", "of_a_longer_name"] * (count // 2)
    write_deltalake(out / "matches", pa.table({"rule": rules, "opened_at": times, "matched_at": times}))
    write_deltalake(out / "metrics", METRICS_SCHEMA.empty_table())
    code = (
        "import sys; from pathlib import Path; from spark_pace.cli.status import status_command\n"
        "from spark_pace.watching.subject import Subject\n"
        "status_command(Subject(sys.argv[1]))\n"
        "print(Path('/proc/self/status').read_text().split('VmHWM:')[1].split()[0])"
    )
    command = [sys.executable, "-c", code, out]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert f"│ short            │ {count // 2:,} " in shown
    return int(shown.splitlines()[-1])


def test_a_run_whose_batches_decide_what_is_late_says_what_to_do():
    some = Summary({}, late=3, batches=2)
    files, kafka = (read_job(ROOT / f"conf/jobs/{name}.yaml") for name in ("flights", "flights_kafka"))
    assert advice_on_late(files, some) is None
    assert advice_on_late(kafka, some) is None
    assert advice_on_late(ordered(kafka, idle_after_us=1), some) == (
        "late: which events are late may depend on how the input was cut into batches, "
        "for idle_after leaves sources out by how far the batches have come. "
        "A longer idle_after waits longer for them."
    )
    assert advice_on_late(ordered(files, by_source=True, idle_after_us=1), some) is None
    watermark = ordered(kafka, by_source=False, before="batches")
    assert advice_on_late(watermark, some) == (
        "late: which events are late may depend on how the input was cut into batches, "
        "for with ordering: watermark partitions have no order between them. "
        "Ordering: sources makes it depend on the input alone; a longer delay keeps more of them."
    )
    assert advice_on_late(watermark, Summary({})) is None


def ordered(spec: JobSpec, **order: Any) -> JobSpec:
    return replace(spec, events=replace(spec.events, order=replace(spec.events.order, **order)))
