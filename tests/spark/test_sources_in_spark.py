"""A job over many sources: what is late, repeated or a heartbeat, and that every record is accounted for."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from spark_pace.io.metrics import BatchReport
from spark_pace.job import run_job
from spark_pace.job_file import read_job
from tests.spark.jobs import Event, in_core, make_job, matches, random_events, table, write_files

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]

UNEVEN = (
    "delay: 2 s, ordering: sources, source_column: k, idle_after: 40 s, heartbeat: kind = 'tick', "
    "deduplicate_on: [k, kind, x]"
)
EXPECTED = "delay: 2 s, ordering: sources, source_column: k, expected_sources: [u, nobody]"


def event(source: str, second: int, kind: str, x: int) -> Event:
    return {"t": f"2024-01-01T00:{second // 60:02d}:{second % 60:02d}", "k": source, "kind": kind, "x": x}


def uneven(seed: int) -> list[Event]:
    """Events of three sources, some of which come twice.

    Source v is 5 seconds behind u and beats where it has nothing to say; w is 30 behind, falls silent, and
    goes on too late.
    """
    chance = random.Random(seed)
    found = []
    for second in range(240):
        sources = [("u", second), ("v", max(0, second - 5))]
        sources += (
            [("w", second - 30)] if 30 <= second < 120 else [("w", second - 100)] if second >= 200 else []
        )
        for source, time in sources:
            kind = "tick" if source == "v" and chance.random() < 0.5 else chance.choice("abc")
            found += [event(source, time, kind, chance.randrange(9))] * (2 if chance.random() < 0.1 else 1)
    return found


@pytest.mark.in_parts
def test_every_record_is_accounted_for_and_the_tables_are_those_of_the_core(tmp_path: Path) -> None:
    spec = read_job(make_job(tmp_path, events=UNEVEN))
    events = uneven(1)
    write_files(tmp_path, events, 4)
    path = tmp_path / "in" / "002.json"
    path.write_text(path.read_text() + "\nno record\n")
    seen: list[BatchReport] = []
    summary = run_job(spec, on_progress=seen.append)
    core = in_core(spec)
    assert matches(spec) == core.matches.to_pylist()
    by_place = [("source", "ascending"), ("offset", "ascending")]
    assert table(spec, "late").sort_by(by_place).to_pylist() == core.late.sort_by(by_place).to_pylist()
    metrics = table(spec, "metrics").to_pylist()
    counted = [
        row["events"] + row["late"] + row["bad_records"] + row["heartbeats"] + row["repeats"]
        for row in metrics
    ]
    assert [row["records"] for row in metrics] == counted
    assert [len(row["idle_names"]) for row in metrics] == [row["idle_sources"] for row in metrics]
    assert (summary.records, summary.bad_records) == (len(events) + 1, 1)
    assert (summary.events, summary.late, summary.heartbeats, summary.repeats) == tuple(
        core.stats[n] for n in ("events", "late", "heartbeats", "repeats")
    )
    assert min(summary.late, summary.heartbeats, summary.repeats) > 0
    assert {progress.slowest_source for progress in seen} == {"v", "w"}
    assert {progress.idle_sources for progress in seen} == {0, 1}


@pytest.mark.in_parts
def test_a_stream_that_waits_for_a_source_says_so_and_goes_on_at_the_end(tmp_path: Path) -> None:
    spec = read_job(make_job(tmp_path, finish=False, slots=1, events=EXPECTED))
    write_files(tmp_path, random_events(41, 60), 2)
    seen: list[BatchReport] = []
    run_job(spec, on_progress=seen.append)
    assert [progress.waiting_for for progress in seen] == [("nobody (never heard of)",)] * 2
    assert table(spec, "metrics")["slowest_source"].to_pylist() == ["nobody (never heard of)"] * 2
    assert table(spec, "metrics")["unheard_sources"].to_pylist() == [["nobody"]] * 2
    assert [progress.pending for progress in seen] == [30, 60]
    assert matches(spec) == []
    write_files(tmp_path, random_events(42, 60), 1, first=2)
    summary = run_job(replace(spec, finish=True))
    assert summary.late == 0
    assert matches(spec) == in_core(spec).matches.to_pylist() != []
