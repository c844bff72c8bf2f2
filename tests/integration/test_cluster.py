"""Spark's own cluster manager with two workers: the documented command, and what `docker compose up` runs."""

from __future__ import annotations

import re
import shlex
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from spark_pace import read_table
from spark_pace.errors import ConfigError
from spark_pace.job_file import read_job
from tests.spark.jobs import RULES, in_core, make_job, matches, random_events, write_files
from tests.support.containers import ROOT, SERVICES, Containers

pytestmark = pytest.mark.integration

OPERATOR = """
def total(span):
    values = span.events["x"].to_pylist()
    yield {"total": sum(values), "events_in_span": len(values)}
"""
LONG_S = 500


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Containers]:
    """A master and two workers of one core each."""
    containers = Containers(tmp_path_factory.mktemp("cluster"))
    containers.up("spark-master", "spark-worker", "spark-worker")
    yield containers
    containers.close()


def until(holds: Callable[[], bool]) -> None:
    """Wait until that holds, `LONG_S` at the most."""
    pause = threading.Event()
    for _ in range(LONG_S):
        if holds():
            return
        pause.wait(1)


def documented_command() -> str:
    text = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    found = re.findall(r"^spark-submit .*?(?<!\\)$", text, re.MULTILINE | re.DOTALL)
    assert len(found) == 1
    return str(found[0])


def test_the_documented_command_runs_a_job_on_all_workers(
    cluster: Containers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = make_job(tmp_path, rules=RULES.replace("tests.spark.jobs", "my_operators"))
    job.write_text(job.read_text().replace("tests.spark.jobs", "my_operators"))
    (tmp_path / "my_operators.py").write_text(OPERATOR)
    write_files(tmp_path, random_events(50), 2)
    (tmp_path / "installed").mkdir()
    # as by `make setup`, and nothing else of the checkout
    (tmp_path / "installed" / "spark_pace").symlink_to(ROOT / "spark_pace")
    given = {"MASTER": "spark-master", "OPERATORS.py": f"{tmp_path}/my_operators.py", "JOB": str(job)}
    documented = documented_command().replace("\\\n", " ")
    command = shlex.split(re.sub("|".join(given), lambda name: given[name[0]], documented))
    code = cluster.start("submitted", command, {"PYTHONPATH": str(tmp_path / "installed")}).wait(LONG_S)
    assert code == 0, cluster.log("submitted")
    last = r"^finished: 200 events in .*, 0 late, 0 quarantined;"
    assert re.search(last, cluster.log("submitted"), re.MULTILINE)
    monkeypatch.syspath_prepend(tmp_path)
    spec = read_job(job)
    assert matches(spec) == in_core(spec).matches.to_pylist() != []


def test_docker_compose_up_brings_matches(cluster: Containers) -> None:
    job = cluster.up(*(name for name in SERVICES if not name.startswith("spark-")))["job"]
    out = cluster.folder / "out" / "flights_cluster"

    def found(table: str, column: str) -> set[object]:
        try:
            return set(read_table(out, table, [column])[column].to_pylist())
        except ConfigError:  # the table is not there yet
            return set()

    rules = {"three_airports_late", "knock_on", "slow_hour"}
    until(lambda: found("matches", "rule") == rules or job.poll() is not None)
    assert found("matches", "rule") == rules, cluster.log("job")
    until(lambda: found("metrics", "late") != set() or job.poll() is not None)  # written after the matches
    assert found("metrics", "late") == {0}, cluster.log("job")
