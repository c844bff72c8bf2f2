"""What `spark-pace status --json` tells programs, and what `spark-pace watch` shows on the terminal."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import subprocess
import sys
from pathlib import Path

from deltalake import write_deltalake

from spark_pace.io.delta_tables import table_schemas
from spark_pace.io.query import read_table
from spark_pace.spark.checkpoint.checkpoint import Checkpoint
from spark_pace.spark.checkpoint.lock import checkpoint_lock
from tests.support.commands import spark_pace
from tests.support.watched import HOSTILE, pairs_of_events, watched_job

KEYS = [
    *("schema", "at", "job", "sink", "state", "process", "since", "under_way", "last_batch", "sums"),
    *("frontier", "max_event_time", "finished", "pending", "carry", "open", "state_bytes", "idle_sources"),
    *("idle_names", "slowest_source", "unheard_sources", "rules", "paused", "without_matches", "alerts"),
    "troubles",
]


def test_the_status_is_one_object_with_the_keys_that_the_documents_name(tmp_path: Path) -> None:
    watched = watched_job(tmp_path, 2, pairs_of_events(8))
    watched.batch({"rule_0": 4})
    watched.batch({}, late=0)
    with checkpoint_lock(Checkpoint(watched.spec.checkpoint_folder)):
        told = json.loads(spark_pace("status", tmp_path / "job.yaml", "--json").stdout)
    assert list(told) == KEYS
    documents = (Path(__file__).parents[3] / "docs" / "operations.md").read_text()
    assert [key for key in KEYS if f"`{key}`" not in documents] == []
    assert (told["job"], told["state"], told["process"]) == ("watched", "runs", str(os.getpid()))
    assert told["last_batch"] == {
        "batch_id": 1,
        "written_at": "2026-11-01T00:00:02Z",
        "seconds": 2.0,
        "batch_seconds": 0.5,
        "records": 1000,
    }
    assert (told["sums"]["records"], told["sums"]["late"], told["sums"]["matches"]) == (2000, 3, 4)
    assert [rule["rule"] for rule in told["rules"]] == ["rule_0", "rule_1"]
    assert told["rules"][0]["first"] == "2026-11-01T00:00:01Z"
    of_tables = json.loads(spark_pace("status", watched.spec.sink_path, "--json").stdout)
    assert list(of_tables) == KEYS and of_tables["state"] == "unknown" and of_tables["job"] is None
    assert of_tables["paused"] is None and of_tables["without_matches"] is None


def test_rules_that_are_paused_or_have_no_match_yet_are_named_in_short(tmp_path: Path) -> None:
    watched = watched_job(tmp_path, 14, pairs_of_events(8))
    rules = json.loads((tmp_path / "rules.yaml").read_text())
    rules["rules"][13]["enabled"] = False
    (tmp_path / "rules.yaml").write_text(json.dumps(rules))
    quiet = ["paused: 1 rule: rule_13"]
    assert quiet[0] in spark_pace("status", tmp_path / "job.yaml").stdout.splitlines()
    watched.batch({"rule_0": 4})
    names = [f"rule_{number}" for number in range(1, 13)]
    quiet.append(f"no match yet: 12 rules: {', '.join(names[:10])} and 2 others")
    assert {*quiet} <= {*spark_pace("status", tmp_path / "job.yaml").stdout.splitlines()}
    told = json.loads(spark_pace("status", tmp_path / "job.yaml", "--json").stdout)
    assert (told["paused"], told["without_matches"]) == (["rule_13"], names)
    shown = spark_pace("watch", tmp_path / "job.yaml").stdout
    assert re.search(r"no match yet +12 rules: rule_1, ", shown)


def test_the_status_of_wrong_rules_tells_what_is_wrong_behind_the_object(tmp_path: Path) -> None:
    watched_job(tmp_path, 1)
    (tmp_path / "rules.yaml").write_text("events: [")
    done = spark_pace("status", tmp_path / "job.yaml", "--json")
    assert json.loads(done.stdout)["last_batch"] is None
    assert done.returncode == 2 and "rules.yaml:1:" in done.stderr


def test_without_a_terminal_watch_shows_once_how_the_job_does(tmp_path: Path) -> None:
    watched = watched_job(tmp_path, 2, pairs_of_events(8))
    watched.batch({"rule_0": 4}, slowest_source="north\x1b[2J")
    done = spark_pace("watch", tmp_path / "job.yaml")
    assert done.returncode == 0, done.stderr
    assert "stopped: does not run on this machine" in done.stdout and "│ rule_0 │ 4 " in done.stdout
    assert "┃ rule   ┃ matches ┃ last written " in done.stdout
    assert "\x1b" not in done.stdout and r"north\x1b[2J" in done.stdout and HOSTILE[:9] in done.stdout


def test_on_a_terminal_watch_goes_on_until_ctrl_c(tmp_path: Path) -> None:
    watched_job(tmp_path, 1).batch({"rule_0": 4})
    ours, theirs = pty.openpty()
    command = [str(Path(sys.executable).parent / "spark-pace"), "watch", str(tmp_path / "job.yaml")]
    process = subprocess.Popen(
        command,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        env={**os.environ, "TERM": "xterm"},
        preexec_fn=lambda: os.close(os.open(os.ttyname(theirs), os.O_RDWR)),  # it becomes their terminal
    )
    os.close(theirs)
    shown = b""
    while b"rule_0" not in shown:
        shown += os.read(ours, 65_536)
    os.write(ours, b"\x03")
    while True:
        try:
            shown += os.read(ours, 65_536)
        except OSError:  # the terminal is closed: the command has ended
            break
    assert process.wait(timeout=30) == 130 and b"stopped" in shown
    os.close(ours)


def test_tables_of_a_release_that_did_not_time_batches_are_told_without_that_time(tmp_path: Path) -> None:
    watched = watched_job(tmp_path, 1, pairs_of_events(4))
    watched.batch({"rule_0": 2})
    path = Path(watched.spec.sink_path) / "metrics"
    rows = read_table(watched.spec.sink_path, "metrics").drop_columns(
        ["batch_seconds", "idle_names", "unheard_sources"]
    )
    shutil.rmtree(path)
    write_deltalake(path, rows)
    told = json.loads(spark_pace("status", tmp_path / "job.yaml", "--json").stdout)
    assert told["last_batch"]["seconds"] == 2.0 and told["last_batch"]["batch_seconds"] is None
    assert told["sums"]["batches"] == 1 and told["sums"]["timed_batches"] == 0
    shown = [spark_pace(name, tmp_path / "job.yaml") for name in ("status", "watch")]
    assert [done.returncode for done in shown] == [0, 0], shown
    assert "1 batch, the last (0) " in shown[0].stdout
    assert not [done for done in shown if "seconds a batch" in done.stdout]
    watched.tables.prepare(table_schemas(watched.spec.rules))  # as the next start of the job does
    watched.batch({}, batch_seconds=1.5)
    assert "seconds a batch" in (again := spark_pace("watch", tmp_path / "job.yaml").stdout)
    assert "last 1.50, mean 1.50, greatest 1.50" in again
