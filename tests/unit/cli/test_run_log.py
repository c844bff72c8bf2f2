"""What `spark-pace run` says where its output is no terminal: each line has the time."""

from __future__ import annotations

import io
import logging
import sys
from pathlib import Path

import pytest

from spark_pace.cli.log import code_of_run
from spark_pace.cli.run import line, print_batch
from spark_pace.errors import SetupError
from spark_pace.spark.summary import Summary
from tests.support.commands import message_of
from tests.unit.cli.test_run_and_status import progress


def test_lines_of_a_log_have_the_time(capsys: pytest.CaptureFixture[str]):
    print_batch(progress(warnings=["no column x"]))
    assert message_of(capsys.readouterr().out) == f"warning: no column x\n{line(progress())}\n"


@pytest.mark.parametrize("terminal", [False, True])
def test_warnings_of_all_modules_and_an_error_are_lines_of_the_log_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, terminal: bool
):
    job = tmp_path / "job.yaml"
    job.write_text("checkpoint: there\n")
    errors = io.StringIO()
    monkeypatch.setattr(errors, "isatty", lambda: terminal, raising=False)
    monkeypatch.setattr(sys, "stderr", errors)

    def fail() -> int:
        logging.getLogger("any.module").warning("rules — %s", "one\ntwo")
        raise SetupError("a disk — must have room")

    assert code_of_run(job, fail) == 1
    if terminal:  # there Python's own way to print warnings holds
        assert errors.getvalue() == "a disk — must have room\n"
    else:
        assert message_of(errors.getvalue()) == "rules — one\ntwo\na disk — must have room\n"
        assert f"Z {job} (checkpoint {tmp_path}/there): a disk" in errors.getvalue()


def test_attributes_that_no_record_has_are_told_once_there_are_enough_records():
    summary = Summary({"r": 0})
    told = []
    for absent, records in ((["amont", "n", "o"], 900), (None, 0), (["amont", "n", "p"], 200), (["n"], 900)):
        batch = progress(absent=absent, records=records, lacking={"n": "no n"} if absent else {})
        summary.add(batch)
        told.append(batch.warnings)
    none = "amont: null in every record; a name in the schema that no record has?"
    assert told == [["no n"], [], [none], []]
    assert summary.absent == {"n"} and summary.told_of_absent is None


def test_records_of_which_none_is_an_event_in_time_are_told_once_until_there_is_one():
    summary = Summary({"r": 0})
    told = []
    for records, events, late, bad in (
        (3, 0, 1, 2),
        (400, 0, 400, 0),
        (9, 9, 0, 0),
        (1, 0, 1, 0),
        (8, 0, 8, 0),
        (0, 0, 0, 0),
        (1, 0, 0, 1),
        (5, 0, 5, 0),
    ):
        batch = progress(records=records, events=events, late=late, bad_records=bad)
        summary.add(batch)
        told.append(batch.warnings)
    late = "came late and are in the table late: delay is too short, what sends them is behind, or one event "
    late += "was of a time to come."
    bad = "could not be read and are in the table quarantine, with reasons."
    assert told == [
        [f"no rule has seen the last 3 records: 1 {late} 2 {bad}"],
        *([], [], [], [], []),
        [f"no rule has seen the last 10 records: 9 {late} 1 {bad}"],
        [],
    ]


def test_the_newest_event_is_that_of_the_run():
    summary, batches = Summary({"r": 0}), [progress(max_time_us=at) for at in (None, 5, 3, None, 7)]
    for batch in batches:
        summary.add(batch)
    assert [batch.newest_us for batch in batches] == [None, 5, 5, 5, 7]
