"""Random rules over rules in jobs that are stopped between batches or in one: the oracle's matches."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from spark_pace.job import run_job
from tests.spark.jobs import stop_at
from tests.support.graph_jobs import drawn_graphs, make_graph_job

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]

JOBS = 6
FILES, EVENTS = 3, 24


@pytest.mark.parametrize(
    "number", [0, 1, *(pytest.param(number, marks=pytest.mark.long) for number in range(2, JOBS))]
)
def test_random_graphs_of_rules_find_in_a_stopped_job_what_the_oracle_finds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    chance = Random(number)
    job = make_graph_job(tmp_path / "job", drawn_graphs(1 + number), chance, (FILES, EVENTS))
    place = chance.randrange(1, FILES)
    if number % 2:
        waiting = sorted((tmp_path / "job" / "in").iterdir())[place:]
        for path in waiting:
            path.rename(tmp_path / path.name)
        run_job(replace(job.spec, finish=False), on_progress=job.change)
        for path in waiting:
            (tmp_path / path.name).rename(path)
    else:  # a batch without a match does not write `matches`, but every one writes `metrics`
        stop_at(monkeypatch, chance.choice(["matches", "metrics"]), "metrics", batch_id=place)
        with pytest.raises(Exception, match="the disk is full"):
            run_job(job.spec, on_progress=job.change)
        monkeypatch.undo()
    run_job(job.spec, on_progress=job.change)
    assert list(job.differences()) == []
