"""A job whose files are in a store or on HDFS: it is stopped in its tracks, and another goes on."""

from __future__ import annotations

import json
import os
import re
import signal
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
from pyspark.sql import SparkSession

from examples.cluster.store_server import SECRET, StoreServer
from jobs import run
from spark_pace.io.query import read_table
from spark_pace.io.replay import replay_files
from spark_pace.job_file import JobSpec, read_job
from spark_pace.spark.java.jars import local_jars
from spark_pace.spark.sources.files import read_by_batches
from tests.long.chaos.processes import RunningJob, sessions
from tests.long.chaos.series import Kill, Series, without_greeting
from tests.long.store_kills import Ground, in_store, on_hdfs
from tests.spark.jobs import in_core, make_job, matches, random_events
from tests.support.commands import SPARK_PACE, called
from tests.support.hdfs_server import HdfsServer

pytestmark = [pytest.mark.integration, pytest.mark.stores, pytest.mark.timeout(600)]

FEW, MANY = 4, 6  # files, each a batch


def in_bucket(store: StoreServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ground:
    """A new bucket, which jobs reach by the environment."""
    for name, value in store.environment.items():
        monkeypatch.setenv(name, value)
    return in_store(store, tmp_path.name[-40:].replace("_", "-").strip("-"))


@pytest.fixture(params=["store", pytest.param("hdfs", marks=pytest.mark.long)])
def where(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ground:
    if request.param == "store":
        return in_bucket(request.getfixturevalue("store"), tmp_path, monkeypatch)
    return on_hdfs(request.getfixturevalue("hdfs"), tmp_path.name)


def job_there(folder: Path, where: Ground, files: int) -> Path:
    """A job that reads one file a batch."""
    folder.mkdir()
    job = make_job(folder, slots=2, buckets=2)
    for number in range(files):
        content = "\n".join(map(json.dumps, random_events(number))).encode()
        (folder / "in" / f"{number}.json").write_bytes(content)
        where.put(f"in/{number}.json", content)
    text = job.read_text().replace("path: in,", f"path: {where.address}/in,")
    text = text.replace("checkpoint: checkpoint", f"checkpoint: {where.address}/ck")
    if where.address.startswith("hdfs:"):  # a checkpoint in a store has its tables in a folder
        text = text.replace(" path: out}", f" path: {where.address}/out}}")
    job.write_text(text)
    return job


@pytest.mark.long
def test_a_job_that_is_killed_again_and_again_goes_on_from_the_store(tmp_path: Path, where: Ground) -> None:
    job = job_there(tmp_path / "job", where, MANY)
    spec = read_job(job)
    kills = [
        Kill("driver", "layout written"),
        Kill("driver", "numbers unwritten"),
        Kill("group", "numbers written"),
        Kill("all", "metrics written"),
        Kill("jvm", "state committed"),
    ]
    outcome = Series(job, tmp_path / "logs", 1, told=(f"{where.address}/ck — it is held by",)).run(kills)
    assert (outcome.complaints, outcome.unspent, len(outcome.survived)) == ([], [], len(kills))
    assert rows(spec, tmp_path / "job", MANY) != []


def rows(spec: JobSpec, folder: Path, files: int) -> list[dict[str, Any]]:
    """The matches, which are those of the same files in the folder, and of the replay of what was read."""
    local = replace(spec, source=replace(spec.files, path=str(folder / "in")))
    found = matches(spec)
    assert found == in_core(local).matches.to_pylist()
    read = read_by_batches(spec.checkpoint_folder).parts
    assert (
        replay_files(spec.rules, spec.files.path, as_read=read, **spec.reading).matches.to_pylist() == found
    )
    batches = read_table(spec.sink_path, "metrics", ["batch_id"])["batch_id"].to_pylist()
    assert sorted(batches) == list(range(files))
    return found


def send(job: RunningJob, number: signal.Signals) -> None:
    """Send a signal to all processes of a job."""
    for processes in job.members().values():
        for process in processes:
            with suppress(ProcessLookupError):
                os.kill(process.pid, number)


def command_lines(job: RunningJob) -> str:
    found: list[psutil.Process] = [one for kind in job.members().values() for one in kind]
    return "\n".join(" ".join(process.cmdline()) for process in found)


def test_a_job_that_is_woken_after_another_has_gone_on_ends_in_one_line_and_changes_no_row(
    tmp_path: Path, where: Ground
) -> None:
    job = job_there(tmp_path / "job", where, FEW)
    spec = read_job(job)
    with sessions("tests.long.chaos.driver") as start:
        first = start(job, tmp_path / "first.err")
        for number in range(2):
            assert first.next_fact() == {"batch": number, "finished": False}
        send(first, signal.SIGSTOP)
        assert SECRET not in command_lines(first)
        second = start(job, tmp_path / "second.err")
        while second.next_fact() is not None:
            pass
        assert second.code() == 0
        send(first, signal.SIGCONT)
        while first.next_fact() is not None:
            pass
        assert first.code() == 1
    told = without_greeting(second.said())
    waits = r"waiting up to 20 s for its lease to end"
    assert told.startswith(f"{where.address}/ck — it is held by process ") and waits in told, told
    last = without_greeting(first.said())
    lost = rf"{where.address}/ck\S* — must be .*(taken over by process|another job).*"
    assert re.fullmatch(lost, last), last
    assert rows(spec, tmp_path / "job", FEW) != []


@pytest.mark.spark
def test_a_job_on_hdfs_writes_the_rows_of_a_local_one(
    tmp_path: Path, spark: SparkSession, hdfs: HdfsServer
) -> None:
    job = job_there(tmp_path / "job", on_hdfs(hdfs, tmp_path.name), FEW)
    assert run.main([os.fspath(job)]) == 0
    assert rows(read_job(job), tmp_path / "job", FEW) != []


def test_a_job_without_the_jars_for_s3_says_so_whatever_writes_spark_s_files(
    tmp_path: Path, store: StoreServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = in_bucket(store, tmp_path, monkeypatch)
    job = job_there(tmp_path / "job", where, FEW)
    with open(job, "a") as file:
        file.write('spark: {"spark.sql.streaming.checkpointFileManagerClass": "org.own.Manager"}\n')
    (tmp_path / "jars").mkdir()
    for jar in local_jars():
        (tmp_path / "jars" / Path(jar).name).symlink_to(jar)
    reached = {**os.environ, "SPARK_PACE_JARS": str(tmp_path / "jars")}
    answer = called(SPARK_PACE, "run", job, env=reached)
    assert answer.returncode == 1
    must = "must be reached by Spark too, for a checkpoint; got no class S3AFileSystem"
    assert f"{where.address}/ck — {must}. Fetch its jars by `python -m" in answer.stderr
    assert "Traceback" not in answer.stderr
