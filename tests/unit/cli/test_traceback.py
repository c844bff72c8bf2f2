"""What the command line says of an error that nobody thought of: one line, or the whole trace if asked."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark.jobs import make_job
from tests.support.commands import RUNS, called, environment, message_of

BROKEN = """
from spark_pace.cli.main import commands, main

@commands.command()
def broken():
    try:
        {}["key"]
    except KeyError as error:
        raise RuntimeError("two\\nlines \\x1b[31m") from error

main()
"""


def broken(**environment: str) -> subprocess.CompletedProcess[str]:
    return called(sys.executable, "-c", BROKEN, "broken", env=os.environ | environment)


def test_an_error_that_nobody_thought_of_is_one_line_that_says_how_to_see_the_trace():
    answer = broken()
    got = r"RuntimeError: two\nlines \x1b[31m. SPARK_PACE_TRACEBACK=1 shows the whole trace."
    message = f"spark-pace — must end in an error of its own; got {got}\n"
    assert (answer.returncode, answer.stderr) == (1, message)


def test_a_variable_shows_the_trace_with_its_causes_before_the_line():
    answer = broken(SPARK_PACE_TRACEBACK="1")
    assert answer.returncode == 1
    assert answer.stderr.startswith("Traceback (most recent call last):\n")
    assert "KeyError: 'key'\n" in answer.stderr and "in broken\n" in answer.stderr
    assert answer.stderr.splitlines()[-1] == broken().stderr.rstrip("\n")
    assert "\x1b" not in answer.stderr


@pytest.mark.parametrize("command", RUNS.values(), ids=RUNS)
def test_a_job_shows_its_trace_too(tmp_path: Path, command: list[str]):
    job = make_job(tmp_path)
    (tmp_path / "checkpoint").touch()
    told = called(*command, job, env=environment())
    assert told.returncode == 1 and len(told.stderr.splitlines()) == 1
    traced = called(*command, job, env=environment() | {"SPARK_PACE_TRACEBACK": "1"})
    assert traced.returncode == 1
    trace = message_of(traced.stderr)
    assert trace.startswith("Traceback ") and "FileExistsError" in trace
    assert trace.endswith("\n" + message_of(told.stderr))
