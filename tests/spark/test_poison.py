"""Python operators that raise, hang, end or crash their process: each costs its selection, as in the core."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spark_pace.errors import OperatorError
from spark_pace.job import run_job
from tests.spark.jobs import failing, in_core, job, matches, random_events, table, write_files

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]

RULES = """
events:
  schema: "t TIMESTAMP, k STRING, kind STRING, x BIGINT"
  event_time: t
rules:
  - name: whole
    span: {every: 5 events, size: 5 events}
    operator: tests.spark.jobs:OPERATOR
    emit: {total: BIGINT, events_in_span: BIGINT}
  - name: keyed
    partition_by: [k]
    span: {every: 10 s, size: 20 s}
    operator: tests.spark.jobs:OPERATOR
    emit: {total: BIGINT, events_in_span: BIGINT}
"""
REASONS = {
    666: "ValueError: the number of the beast",
    1002: "the operator did not return within 1 s",
    1003: "the operator's process ended with exit code 3",
    1004: "the operator's process ended with signal 9 (SIGKILL)",
    1005: "the operator's process ended with signal 11 (SIGSEGV)",
}


# by the numbers of the events that have it
OF_TWO_KINDS = {20: 1004, 61: 666}
OF_EVERY_KIND = {20: 1003, 60: 1002, 61: 666, 100: 1004, 140: 1005, 190: 1003}


@pytest.mark.parametrize("poison", [OF_TWO_KINDS, pytest.param(OF_EVERY_KIND, marks=pytest.mark.long)])
def test_poison_costs_its_selections_only(tmp_path: Path, poison: dict[int, int]) -> None:
    spec = failing(job(tmp_path, rules=RULES.replace("OPERATOR", "deadly")), operator_timeout_us=1_000_000)
    events = random_events(21)
    for place, x in poison.items():
        events[place]["x"] = x
    write_files(tmp_path, events, 2)
    summary = run_job(spec)
    tame = in_core(job(tmp_path, rules=RULES.replace("OPERATOR", "total")))
    assert matches(spec) == tame.matches.to_pylist()
    order = [("rule", "ascending"), ("key", "ascending"), ("selection_id", "ascending")]
    failed = table(spec, "quarantine").sort_by(order).to_pylist()
    assert summary.quarantined == len(failed) > len(poison)
    columns = ("rule", "key", "selection_id", "source", "offset", "raw")
    assert [[row[name] for name in columns] for row in failed] == [
        [row[name] for name in columns] for row in tame.failed.sort_by(order).to_pylist()
    ]
    assert {row["kind"] for row in failed} == {"selection"}
    for row in failed:
        values = [json.loads(line)["x"] for line in row["raw"].decode().splitlines()]
        assert row["reason"].strip().splitlines()[-1] == next(REASONS[x] for x in values if x in REASONS)


def test_a_process_that_ends_stops_the_job_if_told_to(tmp_path: Path) -> None:
    spec = failing(job(tmp_path, rules=RULES.replace("OPERATOR", "deadly")), on_operator_error="fail")
    events = random_events(22)
    events[100]["x"] = 1003
    write_files(tmp_path, events, 1)
    with pytest.raises(
        OperatorError,
        match=(
            r"its operator must return; got the operator's process ended with exit code 3\. "
            r"Mend the operator"
        ),
    ) as caught:
        run_job(spec)
    assert "\n" not in str(caught.value)
