"""`spark-pace plan`: what it measures, what it says, and which inputs it refuses."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from spark_pace.cli.plan_command import (
    Guarantee,
    Load,
    Options,
    fewest_instances,
    fewest_surviving_instances,
    lines,
    measure,
    plan_command,
)
from spark_pace.errors import ConfigError
from spark_pace.io.metrics import METRICS_SCHEMA
from spark_pace.job_file import JobSpec, read_job
from tests.support.commands import ROOT, spark_pace
from tests.support.documents import fences
from tests.unit.project.test_docs import run, table_rows

JOB = ROOT / "conf" / "jobs" / "flights.yaml"
OPTIONS: dict[str, Any] = {"queue": 8, "probability": 0.99, "rate": None, "seconds": None, "slots": None}
GIVEN = {"rate": 100.0, "seconds": 1 / 15}
EVERY_5_S = 5_000_000


def spec(out: Path | str = "out", **changes: Any) -> JobSpec:
    return replace(read_job(JOB), **{"sink_path": str(out), **changes})


def write(out: Path, rows: list[dict[str, Any]], schema: pa.Schema = METRICS_SCHEMA) -> Path:
    write_deltalake(out / "metrics", pa.Table.from_pylist(rows, schema))
    return out


def batches(out: Path, *seconds: float) -> Path:
    """Batches with 40 selections each, for which operators took 2 s, half a second behind one another."""
    work = {"selections": 40, "operator_seconds": 2.0}
    rows = [{"seconds": second + 0.5, "batch_seconds": second, **work} for second in seconds]
    old = {"seconds": 1_000.0}  # of an older release
    return write(out, [*rows, old])


def said(job: JobSpec, out: Path | None = None, **options: Any) -> str:
    return "\n".join(lines(job, Options(**OPTIONS | options), out and measure(str(out))))


def test_a_load_that_is_given_is_that_of_the_model() -> None:
    answer = spark_pace("plan", JOB, "--rate", "100", "--seconds", str(1 / 15), "--slots", "12")
    assert (answer.returncode, answer.stderr) == (0, "")
    assert answer.stdout.splitlines()[:5] == [
        "flights: 100 selections a second, 0.06667 s of an operator for each",
        "at most 8 selections in a slot, with probability 0.99:",
        "  12 slots needed: utilization 0.5556, probability 0.9950",
        "  13 slots needed to keep it while one is lost: utilization 0.5128, probability 0.9975",
        "with 12 slots: utilization 0.5556, probability 0.9950; survives one lost slot: no",
    ]
    assert "presumes Poisson arrivals and is pessimistic" in answer.stdout


def test_the_page_on_sizing_shows_what_the_command_and_the_model_say() -> None:
    (fence,) = (fence for fence in fences(ROOT / "docs" / "sizing.md") if fence.language == "console")
    command, _, output = fence.text.partition("\n")
    assert run(command.removeprefix("$ "), ROOT) == output
    kept, survived = table_rows(ROOT / "docs" / "sizing.md", "n")
    load = Load(arrivals=100, completions=15)
    for n in (number for number in kept if number != "n"):
        guarantee = Guarantee(int(n), 0.99)
        assert fewest_instances(load, guarantee) == int(kept[n])
        assert fewest_surviving_instances(load, guarantee) == int(survived[n])


def test_a_slot_more_survives() -> None:
    assert "survives one lost slot: yes" in said(spec(), slots=13, **GIVEN)
    assert "with 6 slots: utilization 1.1111, queues grow without end" in said(spec(), slots=6, **GIVEN)


def test_the_load_is_measured_where_it_is_not_given(tmp_path: Path) -> None:
    out = batches(tmp_path, 3.5, 3.5, 7.5)
    answer = said(spec(out, trigger_us=EVERY_5_S), out, slots=1)
    assert "flights: 7.5 selections a second, 0.05 s of an operator for each" in answer
    assert f"measured over 3 batches in {out}/metrics\n" in answer
    assert (
        "due every 5 s, of which operators take 1.875 s on 1 slot; those measured took 3.5 s (median)"
        in answer
    )
    assert answer.count("they stay below the trigger: yes") == 1
    answer = said(spec(out, trigger_us=EVERY_5_S), out, slots=1, rate=30.0)
    assert "flights: 30 selections a second, 0.05 s" in answer and "with --rate as given" in answer
    assert "with 1 slot: utilization 1.5000, queues grow" in answer and "(median)" not in answer
    assert "they stay below the trigger: no" in answer


def test_a_backlog_that_was_read_at_once_has_no_rate_of_its_own(tmp_path: Path) -> None:
    out = batches(tmp_path, 4.0)
    assert "--rate says how fast selections come" in said(spec(out), out)
    assert "--rate says" not in said(spec(out), out, rate=1.0)


def test_batches_that_come_late_are_told(tmp_path: Path) -> None:
    out = batches(tmp_path, 9.0, 9.0)
    answer = said(spec(out, trigger_us=EVERY_5_S), out)
    assert "those measured took 9 s (median); they stay below the trigger: no" in answer


@pytest.mark.parametrize(("master", "slots"), [("local", 1), ("local[3]", 3), ("local[4, 2]", 4)])
def test_the_slots_are_those_of_a_job_that_runs_here(master: str, slots: int) -> None:
    assert f"\nwith {slots} slot" in said(spec(spark={"spark.master": master}), **GIVEN)


def test_the_slots_of_a_cluster_are_asked_for() -> None:
    answer = said(spec(spark={"spark.master": "spark://here:7077"}, trigger_us=EVERY_5_S), **GIVEN)
    assert "those of its cluster: --slots says how many there are\nbatches: due every 5 s\n" in answer


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--queue", "1", "1 is not in the range x>=2."),
        ("--probability", "1", "1.0 is not in the range 0<x<1."),
        ("--rate", "0", "0.0 is not in the range x>0."),
        ("--slots", "0", "0 is not in the range x>=1."),
        *(
            (option, number, f"{number} is not a finite number.")
            for option, number in (
                *(("--probability", "nan"), ("--rate", "nan"), ("--seconds", "nan")),
                *(("--rate", "inf"), ("--seconds", "inf")),
            )
        ),
        ("--probability", "inf", "inf is not in the range 0<x<1."),
        *((option, "nan", "'nan' is not a valid integer range.") for option in ("--queue", "--slots")),
    ],
)
def test_impossible_options_are_refused(option: str, value: str, message: str) -> None:
    answer = spark_pace("plan", JOB, option, value)
    assert answer.returncode == 2
    assert answer.stderr.endswith(f"Error: Invalid value for '{option}': {message}\n")


@pytest.mark.parametrize("wrong", [{"rate": 1e9}, {"seconds": math.nan}, {"rate": math.inf}])
def test_an_impossible_load_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=r"^--rate and --seconds — must keep fewer than 1,000,000 slots b"):
        plan_command(JOB, Options(**OPTIONS | {"rate": 1.0, "seconds": 1.0} | wrong))


def test_a_job_that_has_not_run_is_told_in_one_line(tmp_path: Path) -> None:
    job = tmp_path / "job.yaml"
    rules = ROOT / "conf" / "rules" / "flights.yaml"
    text = JOB.read_text().replace("../rules/flights.yaml", str(rules))
    job.write_text(text.replace("../../out", str(tmp_path)))
    answer = spark_pace("plan", job, "--rate", "1")
    message = "must have the table metrics of a job that has run; got none."
    do = "Run the job first, or give both --rate and --seconds."
    assert (answer.returncode, answer.stdout) == (2, "")
    assert answer.stderr == f"{tmp_path}/flights — {message} {do}\n"


def test_metrics_without_what_is_needed_are_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"worked on selections; got 0 batches with 0 selections\. Run"):
        measure(str(batches(tmp_path / "empty")))
    older = pa.schema([("seconds", pa.float64())])
    with pytest.raises(ConfigError, match="got 0 batches with 0 selections"):
        measure(str(write(tmp_path / "older", [{"seconds": 1.0}], older)))


def test_a_table_that_does_not_say_how_long_batches_took_gives_the_load_alone(tmp_path: Path) -> None:
    older = METRICS_SCHEMA.remove(METRICS_SCHEMA.get_field_index("batch_seconds"))
    out = write(tmp_path, [{"seconds": 4.0, "selections": 40, "operator_seconds": 2.0}], older)
    answer = said(spec(out, trigger_us=EVERY_5_S), out, slots=1)
    assert "flights: 10 selections a second, 0.05 s of an operator for each" in answer
    assert "take 2.5 s on 1 slot; they stay below the trigger: yes" in answer
