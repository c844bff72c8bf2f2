"""The Pairs benchmark as a job: the answers of its oracle, also where a batch has failed and runs again."""

from dataclasses import replace
from pathlib import Path

import pytest

from examples.pairs.validation import produced, validate
from spark_pace import read_table
from spark_pace.job import run_job
from spark_pace.job_file import read_job
from tests.spark.jobs import stop_at
from tests.support.pairs import expected_answers, write_small

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]


@pytest.mark.long
def test_a_job_gives_the_answers_of_the_oracle(tmp_path: Path) -> None:
    spec = read_job(write_small(tmp_path, 3))
    spec = replace(spec, source=replace(spec.files, max_files_per_trigger=2), trigger_us="available_now")
    with pytest.MonkeyPatch.context() as failing, pytest.raises(Exception, match="disk is full"):
        stop_at(failing, "matches", batch_id=1)
        run_job(spec)
    run_job(spec)
    found = validate(expected_answers(), produced(read_table(spec.sink_path, "matches")))
    assert all(one.passed for one in found.values()), found
    assert found["MarketOrder"].correct > 30
