"""Random values of every type through whole jobs: matches, late and bad records are those of the oracle."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_pace.io.replay import replay_files
from spark_pace.job import run_job
from tests.spark.jobs import table
from tests.support.random_values import case_of

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]


@pytest.mark.parametrize("format", ["json", "parquet"])
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in (1, 2))])
def test_a_job_gives_what_the_oracle_says_of_random_values(tmp_path: Path, format: str, seed: int) -> None:
    case = case_of(tmp_path, format, seed)
    run_job(case.spec)
    quarantine = table(case.spec, "quarantine").select(["source", "offset", "reason", "raw"])
    case.check(table(case.spec, "matches").sort_by("out_seq"), table(case.spec, "late"), quarantine)
    bad = replay_files(case.spec.rules, Path(case.spec.files.path)).bad
    assert sorted(map(repr, quarantine.to_pylist())) == sorted(map(repr, bad.to_pylist())), case.told
