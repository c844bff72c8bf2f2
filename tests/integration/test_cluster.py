"""Spark's own cluster manager with two workers: the documented command, and what `docker compose up` runs."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from examples.cluster.packed import packed_engine
from examples.cluster.standalone import HOME as SPARK
from examples.cluster.standalone import bare_python
from examples.flights.demo import compared
from spark_pace import read_table
from spark_pace.errors import ConfigError
from spark_pace.job_file import read_job
from tests.spark.jobs import RULES, Event, in_core, make_job, matches, random_events, write_files
from tests.support.commands import message_of
from tests.support.containers import ROOT, SERVICES, Containers

pytestmark = [pytest.mark.integration, pytest.mark.long]

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


@pytest.fixture(scope="module")
def sent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the documented commands send, and a Python without it."""
    folder = tmp_path_factory.mktemp("sent")
    (folder / "operators").mkdir()
    (folder / "operators" / "my_operators.py").write_text(OPERATOR)
    shutil.make_archive(str(folder / "operators"), "zip", folder / "operators")
    packed_engine(folder).rename(folder / "spark_pace.zip")
    bare_python(folder / "python")
    return folder


def documented(number: int, sent: Path, job: Path) -> list[str]:
    """A command of the page about clusters, with what it leaves open filled in."""
    text = (ROOT / "docs" / "cluster.md").read_text()
    found = re.findall(r"^spark-submit --master spark:.*?(?<!\\)$", text, re.MULTILINE | re.DOTALL)
    assert len(found) == 2
    given = {
        "/shared/checkout": str(ROOT),
        "/shared": str(sent),
        "MASTER": "spark-master",
        "SPARK": str(SPARK),
        "JOB": str(job),
    }
    command = re.sub("|".join(given), lambda name: given[name[0]], found[number])
    # the workers of docker-compose.yml have the checkout on their path
    bare = ["--conf", "spark.executorEnv.PYTHONPATH=/nowhere"]
    name, *options = shlex.split(command.replace("\\\n", " "))
    return [name, *bare, *options]


def job_in(folder: Path, files: int, events: Sequence[Event] | None = None) -> Path:
    """A job in a new folder, with an operator that comes with it."""
    folder.mkdir()
    job = make_job(folder, rules=RULES.replace("tests.spark.jobs", "my_operators"))
    job.write_text(job.read_text().replace("tests.spark.jobs", "my_operators"))
    write_files(folder, events or random_events(50), files)
    return job


def the_same_in_core(job: Path, sent: Path, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether the job's matches are those that the core finds; there are some."""
    monkeypatch.syspath_prepend(sent / "operators")
    spec = read_job(job)
    return matches(spec) == in_core(spec).matches.to_pylist() != []


def test_the_documented_command_runs_a_job_on_all_workers(
    cluster: Containers, sent: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = job_in(tmp_path / "job", 2)
    command = documented(0, sent, job)
    code = cluster.start("submitted", command, {"PYSPARK_PYTHON": str(sent / "python/bin/python")}).wait(
        LONG_S
    )
    assert code == 0, cluster.log("submitted")
    last = r"Z finished: 200 events in .*, 0 late, 0 quarantined;"
    assert re.search(last, cluster.log("submitted"))
    assert the_same_in_core(job, sent, monkeypatch)


def test_executors_without_the_package_are_told_in_one_line(
    cluster: Containers, sent: Path, tmp_path: Path
) -> None:
    command = documented(0, sent, job_in(tmp_path / "job", 1))
    place = command.index("--py-files") + 1
    command[place] = command[place].split(",")[1]  # the operators alone
    command[1:1] = ["--conf", "spark.cores.max=1", "--conf", "spark.task.maxFailures=1"]
    pythons = {"PYSPARK_PYTHON": str(sent / "python/bin/python"), "PYSPARK_DRIVER_PYTHON": sys.executable}
    code = cluster.start("lacking", command, {**pythons, "PYTHONPATH": str(ROOT)}).wait(LONG_S)
    assert code == 1, cluster.log("lacking")
    (told,) = [line for line in cluster.log("lacking").splitlines() if "): the executors" in line]
    assert message_of(told).rstrip() == (
        "the executors' Python — must find spark_pace and what it needs on every machine; got: "
        "ModuleNotFoundError: No module named 'spark_pace'. Send spark_pace by --py-files, "
        "install what it needs there, or name another Python by PYSPARK_PYTHON."
    )


@pytest.mark.timeout(1800)
def test_rows_are_the_same_when_an_executor_a_worker_and_the_driver_are_killed(
    cluster: Containers, sent: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the command of cluster mode, with speculation; the worker has the driver or an executor.

    One event is late, so the driver asks for a file to be read once more.
    """
    events = random_events(50)
    events.insert(-5, {**events[0], "x": 5})
    job = job_in(tmp_path / "job", 4, events)
    speculation = ["--conf", "spark.speculation=true", "--conf", "spark.speculation.interval=10ms"]
    command = documented(1, sent, job)
    cluster.start("supervised", [*command[:1], *speculation, *command[1:]])
    commits = tmp_path / "job" / "checkpoint" / "commits"

    def done(batches: int) -> bool:
        return commits.exists() and len([name for name in os.listdir(commits) if name.isdigit()]) >= batches

    victims = (".CoarseGrainedExecutorBackend", ".worker.Worker", ".DriverWrapper")
    for batches, victim in enumerate(victims, 1):
        until(lambda batches=batches: done(batches))
        killed = cluster.processes(victim)[:1]
        assert [process.kill() for process in killed] == [None]
        if "Worker" in victim:
            cluster.up("spark-worker")
    told = cluster.folder / "spark" / "work"
    until(lambda: any("finished: " in path.read_text() for path in told.glob("driver-*/stdout")))
    assert the_same_in_core(job, sent, monkeypatch)
    assert compared(read_job(job)) is None
    assert read_table(read_job(job).sink_path, "late").num_rows == 1


def test_docker_compose_up_brings_matches(cluster: Containers) -> None:
    """Of two weeks: those behind them are removed before the producer starts."""
    kafka, data, *others = (name for name in SERVICES if not name.startswith("spark-"))
    cluster.up(kafka, data)
    weeks = sorted((cluster.folder / "data" / "flights").iterdir())
    assert len(weeks) == 53
    for week in weeks[2:]:
        week.unlink()
    job = cluster.up(*others)["job"]
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
