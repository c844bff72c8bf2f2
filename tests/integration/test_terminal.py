"""What a run says on the terminal when Spark cannot start, and while it waits for sources."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.run import main
from tests.spark.jobs import make_job, random_events, write_files
from tests.support.commands import SPARK_PACE, called, environment, message_of

pytestmark = pytest.mark.integration

BY_SOURCES = "delay: 2 s, ordering: sources, source_column: k, expected_sources: [u, nobody]"


def test_what_the_jvm_says_when_it_cannot_start_is(tmp_path: Path) -> None:
    job = make_job(tmp_path)
    job.write_text(job.read_text() + 'spark: {spark.driver.memory: "1m"}\n')
    answer = called(SPARK_PACE, "run", job, env=environment())
    assert answer.returncode == 1
    assert "Too small maximum heap" in answer.stdout + answer.stderr
    assert message_of(answer.stderr.splitlines()[-1]).startswith("Spark — must start; got: ")


def test_a_setting_that_spark_refuses_is_one_line(tmp_path: Path) -> None:
    job = make_job(tmp_path)
    job.write_text(
        job.read_text() + "spark: {spark.network.timeout: 30s, spark.network.timeoutInterval: 60s}\n"
    )
    answer = called(SPARK_PACE, "run", job, env=environment())
    assert (answer.returncode, message_of(answer.stderr).splitlines()) == (1, [
        "Spark — must start; got: requirement failed: spark.network.timeoutInterval should be less than or "
        "equal to spark.network.timeout. Check the settings under `spark:` and the jars."
    ])  # fmt: skip


@pytest.mark.usefixtures("spark")
def test_the_main_for_spark_submit_says_what_the_stream_waits_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = make_job(tmp_path, finish=False, slots=1, events=BY_SOURCES)
    write_files(tmp_path, random_events(61, 20), 2)
    assert main([str(job)]) == 0
    batches = capsys.readouterr().out.splitlines()[:-1]
    assert len(batches) == 2
    assert "; waiting for sources: nobody (never heard of); late 0; " in batches[1]
