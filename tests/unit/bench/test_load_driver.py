"""The load driver without Spark: schedules, generated records, and the arithmetic of latencies and bursts."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from spark_pace.core.operate.match_table import EVENTS_TYPE
from spark_pace_bench.delta_log import commits
from spark_pace_bench.drive import Driven
from spark_pace_bench.generators import Generator
from spark_pace_bench.latency import Latencies, Sent, latencies, percentiles, taken_times
from spark_pace_bench.records import make_records
from spark_pace_bench.report import as_html, as_text
from spark_pace_bench.run_file import read_run_file
from spark_pace_bench.schedule import schedule
from spark_pace_bench.spec import Phase, RunSpec
from spark_pace_bench.summary import summarize
from spark_pace_bench.targets import Folder
from spark_pace_bench.watch import Watched

JOB = """
name: job
source: {kind: files, format: %s, path: events}
rules: [rules.yaml]
sink: {kind: delta, path: out}
checkpoint: checkpoint
trigger: 1 s
"""
RULES = """
events: {schema: "number BIGINT, t TIMESTAMP, name STRING, x DOUBLE", event_time: t}
rules:
  - {name: pair, pattern: {sequence: [a: x < 2, b: x < 2]}, within: 2 events}
"""
RUN = """
name: run
job: job.yaml
events:
  generate: {number: {counter: [5, 2]}, name: {choice: {'a,b': 0.5, 'c"d': 0.5}}, x: {uniform: [0, 1]}}
phases:
  - {name: warm, seconds: 1, rate: [0, 100], role: warm_up}
  - {name: even, seconds: 2, rate: 100}
  - {name: high, seconds: 1, rate: 150, role: peak}
  - {name: back, seconds: 2, rate: 100, role: recovery}
seed: 3
"""


def run_of(folder: Path, form: str = "json", text: str = RUN) -> RunSpec:
    (folder / "job.yaml").write_text(JOB % form)
    (folder / "rules.yaml").write_text(RULES)
    (folder / "run.yaml").write_text(text)
    (run,) = read_run_file(folder / "run.yaml")
    return run


def phase(seconds: float, first: float, last: float, arrivals: Any = "constant") -> Phase:
    return Phase("p", seconds, (first, last), arrivals, "steady")


def test_events_of_a_constant_rate_have_equal_distances() -> None:
    due = schedule([phase(2, 50, 50)], seed=1).due
    assert len(due) == 100
    assert due[0] == 0
    assert np.allclose(np.diff(due), 0.02)


def test_a_rising_rate_has_as_many_events_up_to_a_second_as_its_integral_says() -> None:
    due = schedule([phase(10, 100, 300)], seed=1).due
    assert len(due) == 2000
    for second in (1, 4, 9):
        assert abs((due < second).sum() - (100 * second + 10 * second**2)) <= 1


def test_a_rate_may_rise_from_nothing_and_fall_to_it() -> None:
    both = schedule([phase(2, 0, 100), phase(2, 100, 0)], seed=1)
    assert np.bincount(both.phase).tolist() == [100, 100]
    assert (np.diff(both.due) > 0).all()
    assert np.allclose(both.due[:100], 4 - np.append(4, both.due[:100:-1]), atol=0.3)
    assert both.due[100] == 2


def test_poisson_arrivals_are_those_of_their_seed() -> None:
    phases = [phase(5, 10, 10), phase(50, 400, 400, "poisson"), phase(5, 10, 10)]
    one, same, other = (schedule(phases, seed) for seed in (1, 1, 2))
    assert (one.due == same.due).all()
    assert len(one.due) != len(other.due) or (one.due != other.due).any()
    gaps = np.diff(one.due[one.phase == 1])
    assert abs(len(gaps) - 20_000) < 5 * np.sqrt(20_000)
    assert gaps.mean() == pytest.approx(gaps.std(), rel=0.05)
    assert one.due[one.phase == 1].max() < 55 <= one.due[one.phase == 2].min()


def test_values_depend_on_the_seed_and_the_attribute_alone() -> None:
    one, other = (Generator(name, "BIGINT", "uniform", numbers=(1, 3)) for name in "ab")
    assert one.texts(500, 1) == one.texts(500, 1)
    assert one.texts(500, 1) not in (other.texts(500, 1), one.texts(500, 2))
    assert set(one.texts(500, 1)) == {"1", "2", "3"}
    weighted = Generator("c", "STRING", "choice", values=("x", "y"), weights=(9, 1))
    assert 20 < weighted.texts(500, 1).count('"y"') < 90


@pytest.mark.parametrize("form", ["json", "csv"])
def test_a_folder_gets_the_records_in_order_with_their_times(tmp_path: Path, form: str) -> None:
    run = run_of(tmp_path, form)
    target = Folder(tmp_path / "events", make_records(run, 10), 0.1)
    target.send(0, np.arange(4) * 1_000_000)
    target.send(4, np.arange(4, 10) * 1_000_000)
    events = target.events(tmp_path).sort_by("@time")
    assert events["number"].to_pylist() == list(range(5, 25, 2))
    assert events["@time"].to_pylist() == [second * 1_000_000 for second in range(10)]
    assert set(events["name"].to_pylist()) == {"a,b", 'c"d'}
    places = [(row["@source"], row["@offset"]) for row in events.select(["@source", "@offset"]).to_pylist()]
    sources, offsets = zip(*places, strict=True)
    assert target.numbers(sources, np.array(offsets)).tolist() == list(range(10))
    assert target.read_by({"entries": 1}).tolist() == [0, 1, 2, 3]
    taken = taken_times({0: (7.0, {"entries": 1}), 1: (9.0, {"entries": 2})}, target, 11)
    assert taken[:10].tolist() == [7] * 4 + [9] * 6
    assert np.isnan(taken[10])


@pytest.mark.parametrize("form", ["json", "csv"])
def test_a_file_is_replayed_at_other_times_or_at_its_own(tmp_path: Path, form: str) -> None:
    rows = [{"t": f"2024-01-01T00:00:0{9 - n}Z", "number": n, "name": None, "x": 0.5} for n in range(5)]
    (tmp_path / "old.json").write_text("\n".join(map(json.dumps, rows)))
    for times in ("due", "own"):
        replayed = f"events: {{replay: {{path: old.json, times: {times}}}}}\nphases:"
        text = RUN.split("events:")[0] + replayed + RUN.split("phases:")[1]
        target = Folder(tmp_path / times, make_records(run_of(tmp_path, form, text), 3), 0.1)
        target.send(0, np.arange(3) * 1_000_000)
        events = target.events(tmp_path)
        assert events["number"].to_pylist() == [4, 3, 2]
        assert (events["@time"][0].as_py() == 0) is (times == "due")


MATCHED_US = {"r": 2_500_000, "q": 2_500_000, "exact": 3_000_000, "above": 3_000_000}


def matches_table(path: Path, batches: list[list[tuple[str, list[tuple[int, str, int]]]]]) -> list[float]:
    """Write matches (rule and (seq, source, offset) of their events) in commits; when each was committed."""
    time = pa.timestamp("us", "UTC")
    for batch in batches:
        events = [
            [{"component": "a", "seq": s, "event_time": None, "source": f, "offset": o} for s, f, o in found]
            for _, found in batch
        ]
        columns = [
            pa.array([rule for rule, _ in batch]),
            pa.array([MATCHED_US[rule] for rule, _ in batch]).cast(time),
        ]
        table = pa.table([*columns, pa.array(events, EVENTS_TYPE)], names=["rule", "matched_at", "events"])
        write_deltalake(path, table, mode="append")
    DeltaTable(path).optimize.compact()  # a commit of files that were joined brings no match
    return [commit.committed for commit in commits(path)]


def test_a_latency_begins_with_the_last_event_of_the_match(tmp_path: Path) -> None:
    target = Folder(tmp_path / "events", make_records(run_of(tmp_path), 5), 0.1)
    first, second = "00000000.json", "00000001.json"
    target.send(0, np.arange(3))
    target.send(3, np.arange(2))
    batches = [
        [("r", [(7, second, 1), (1, first, 0)]), ("q", [])],
        [("r", [(1, first, 0), (2, first, 2)])],
        [("exact", []), ("above", [(0, "r", 0)])],  # the latter's event is a match of r
        [("r", [(1, first, 0)])],
    ]
    done = matches_table(tmp_path / "matches", batches)
    due = np.arange(5.0)
    sent = Sent(due, due + 0.1, np.array([0.4, 1.4, np.nan, 3.4, 4.4]), np.array([-1, 0, 0, 1, 1]))
    found = latencies(tmp_path / "matches", target, sent, until=done[2])
    assert found.rule == ["r", "q", "r", "exact", "above"]
    assert found.due.tolist() == [
        4,
        2.5,
        2,
        3,
        3,
    ]  # without events: the end of the window, or the event there
    assert found.phase.tolist() == [1, 0, 0, 1, 1]
    ends = np.array([done[0], done[0], done[1], done[2], done[2]])
    assert found.seconds["scheduled"] == pytest.approx(ends - [4, 2.5, 2, 3, 3])
    assert found.seconds["end_to_end"] == pytest.approx(ends - [4.1, 2.5, 2.1, 3.1, 3.1])
    assert found.seconds["processing"][[0, 3]] == pytest.approx(ends[[0, 3]] - [4.4, 3.4])
    assert np.isnan(found.seconds["processing"][1:3]).all()
    own = latencies(tmp_path / "matches", target, replace(sent, own_times=True), until=done[0])
    assert own.phase.tolist() == [1, -1] and np.isnan(own.seconds["scheduled"][1])


def test_percentiles_leave_out_what_is_not_known() -> None:
    found = percentiles(np.array([*range(1001), np.nan]))
    assert [found[name] for name in ("p50", "p90", "p99", "p99.9")] == pytest.approx([500, 900, 990, 999])
    assert (found["mean"], found["least"], found["greatest"]) == (500, 0, 1000)
    assert percentiles(np.array([np.nan])) == {}


def driven(folder: Path, late: float = 0.0, lag: float = 0.0) -> Driven:
    """A run as planned: a batch a second that reads what was sent before; a match for each event.

    Args:
        folder: of the run file.
        late: how late the driver sends in the phase `even`.
        lag: the share of events that batches leave to later ones.
    """
    run = run_of(folder)
    plan = schedule(run.phases, run.seed)
    due = np.concatenate([[-1.0], plan.due])
    number = np.concatenate([[-1], plan.phase])
    at = due + np.where(number == 1, late, 0.0)
    read = [(at <= second).sum() * (1 - lag) for second in range(8)]
    rows = [
        {"committed": second + 0.5, "records": int(records)}
        for second, records in enumerate(np.diff([0, *read]))
    ]
    samples = [{"time": float(second), "rss": 1e8, "cpu": 0.5 * second} for second in range(8)]
    committed = np.floor(due[1:]) + 1.5
    committed[number[1:] == 2] += 3
    committed[number[1:] == 3] -= 0.01
    seconds = {
        "end_to_end": committed - at[1:],
        "processing": np.full(len(committed), 0.5),
        "scheduled": committed - due[1:],
    }
    found = Latencies(["pair"] * len(committed), committed, due[1:], number[1:], seconds)
    count = len(committed)
    return Driven(
        run, 0.0, 1, Sent(due, at, at, number), Watched({}, rows, samples), 8.0, found, count, count, []
    )


def test_a_phase_has_its_own_figures(tmp_path: Path) -> None:
    warm, even, high, _ = summarize(driven(tmp_path))["phases"]
    assert (warm["events"], even["events"], high["events"]) == (50, 200, 150)
    assert even["sent_per_second"] == 100
    assert even["read_per_second"] == 75  # 50 of the warm-up's in its first batch
    assert even["cores"] == pytest.approx(0.5)
    assert even["scheduled"]["least"] == pytest.approx(0.51)
    assert even["scheduled"]["greatest"] == pytest.approx(1.5)
    assert not even["falls_behind"] and even["sent_late"] == 0


def test_a_driver_that_is_late_is_told_and_hides_no_latency(tmp_path: Path) -> None:
    punctual, late = summarize(driven(tmp_path)), summarize(driven(tmp_path, late=0.6))
    assert punctual["saturation"] == []
    assert [note.split(":")[0] for note in punctual["notes"]] == ["phase even"]  # two seconds, two batches
    assert late["phases"][1]["sent_late"] == 200
    assert late["saturation"][0].startswith("driver, phase even: 100.0% of the events were sent late")
    assert late["phases"][1]["scheduled"] == punctual["phases"][1]["scheduled"]
    assert late["phases"][1]["end_to_end"]["mean"] == pytest.approx(
        punctual["phases"][1]["scheduled"]["mean"] - 0.6
    )


def test_a_job_that_falls_behind_is_told(tmp_path: Path) -> None:
    text = (
        RUN.replace("seconds: 2, rate: 100}", "seconds: 20, rate: 100}").split("  - {name: high")[0]
        + "seed: 3\n"
    )
    run_of(tmp_path, text=text)
    figures = summarize(driven_by(tmp_path, text))
    assert figures["phases"][1]["falls_behind"] is True and figures["notes"] == []
    assert any(sentence.startswith("job, phase even: its lag grew by") for sentence in figures["saturation"])


def driven_by(folder: Path, text: str) -> Driven:
    """A run of a warm-up and one phase of which a batch a second reads the half."""
    run = run_of(folder, text=text)
    plan = schedule(run.phases, run.seed)
    rows = [{"committed": second + 0.5, "records": 50} for second in range(21)]
    none = np.empty(0)
    found = Latencies(
        [], none, none, none.astype(np.int64), dict.fromkeys(("end_to_end", "processing", "scheduled"), none)
    )
    sent = Sent(plan.due, plan.due, plan.due, plan.phase)
    samples = [{"time": float(second), "rss": 1e8, "cpu": 0.5 * second} for second in range(21)]
    return Driven(run, 0.0, 0, sent, Watched({}, rows, samples), 21.0, found, 0, 0, [])


def test_a_burst_has_the_four_figures(tmp_path: Path) -> None:
    found = summarize(driven(tmp_path))["burst"]
    assert found is not None
    assert found["maximum_peak_latency"] == pytest.approx(4.5)
    assert found["peak_degradation"] == pytest.approx(4.5 / 1.5, rel=0.02)
    assert found["recovery_seconds"] == pytest.approx(5.49 - (4 - 1 / 150))
    assert found["post_peak_variation"] == pytest.approx(1.0, rel=0.02)


def test_reports_show_all_and_escape_what_is_theirs(tmp_path: Path) -> None:
    figures = {**summarize(driven(tmp_path, late=0.6)), "differences": ["match 0: got <script>"]}
    page = as_html([{**figures, "variant": name} for name in ("one", "two")])
    assert page.count("<svg") == page.count("</svg>") == 2 * 5 + 1
    assert "&lt;script&gt;" in page and "<script>" not in page
    text = as_text(figures)
    assert "from scheduled time" in text and "saturated: driver" in text and "burst: latency at most" in text
    assert figures["measured"]["matches"] < 1000 and "~ fewer than ten matches lie beyond" in text
    assert f'title="of {figures["measured"]["matches"]} matches only">' in page
    json.dumps(figures)
