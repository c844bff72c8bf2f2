"""Folds in a job whose function ends its process; `test_forms.py` has those that find the core's matches."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_pace.errors import OperatorError
from spark_pace.job import run_job
from spark_pace.job_file import read_job
from tests.spark.jobs import (
    FOLDS,
    OVER_FOLDS,
    failing,
    in_core,
    job,
    matches,
    random_events,
    write_files,
)

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]


@pytest.mark.parametrize("name", [pytest.param("streaks", marks=pytest.mark.long), "upper"])
def test_a_function_that_ends_its_process_stops_the_job_which_goes_on_once_it_is_mended(
    tmp_path: Path, name: str
) -> None:
    before, mark, behind = (FOLDS + OVER_FOLDS).partition(f"  - name: {name}\n")
    rules = before + mark + behind.replace("jobs:streak\n", "jobs:deadly_streak\n", 1)
    spec = failing(job(tmp_path, rules=rules), operator_timeout_us=2_000_000)
    bad = tmp_path / "bad"
    bad.touch()
    events = random_events(6, 60)
    events[40]["k"] = str(bad)
    write_files(tmp_path, events, 2)
    with pytest.raises(OperatorError) as caught:
        run_job(spec)
    message = str(caught.value)
    assert message.startswith(
        f'rule {name} key {{"k":"{bad}"}} seq 0 — its fold tests.spark.jobs:deadly_streak'
    )
    assert "the operator's process ended with signal 9 (SIGKILL). No state has changed: mend" in message
    bad.unlink()
    run_job(read_job(tmp_path / "job.yaml"))
    assert matches(spec) == in_core(spec).matches.to_pylist()
