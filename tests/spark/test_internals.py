"""What a job needs of Spark behind its public API is looked for when a session starts."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest
from pyspark import daemon, java_gateway
from pyspark.sql import DataFrame, SparkSession

from spark_pace.errors import SetupError
from spark_pace.spark import internals
from spark_pace.spark.checkpoint.checkpoint import COMMIT, is_commit, is_query
from spark_pace.spark.internals import fork_workers, launch_jvm, planned_offsets, require_known
from spark_pace.spark.java.launch import MANAGER, SETTINGS
from spark_pace.spark.session import _runs, job_session

pytestmark = pytest.mark.spark


def test_the_installed_spark_has_all_of_it(spark: SparkSession):
    require_known(spark)


@pytest.mark.parametrize(
    ("name", "other", "must"),
    [
        ("DAEMON", "pyspark.elsewhere", "must have the module pyspark.elsewhere"),
        ("WORKER", "pyspark.elsewhere", "must have the module pyspark.elsewhere"),
        ("FILE_MANAGER", "org.example.Files", "must have the class org.example.Files"),
        ("STATE_STORE", "org.example.States", "must have the class org.example.States"),
        ("BATCH_ID", "another.id", "must tell each task its batch by the property another.id"),
    ],
)
def test_what_it_lacks_is_said_in_one_line(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, name: str, other: str, must: str
):
    monkeypatch.setattr(internals, name, other)
    with pytest.raises(SetupError) as raised:
        require_known(spark)
    got = f"got none in Spark {spark.version}"
    assert str(raised.value) == f"Spark — {must}; {got}. Use PySpark 4.0 to 4.3."


def test_a_spark_whose_jvm_is_elsewhere_is_refused():
    with pytest.raises(
        SetupError, match=r"^Spark — must let this process use its JVM; got none in Spark 4\."
    ):
        require_known(SimpleNamespace(version="4.2.0"))  # type: ignore[arg-type]


@pytest.mark.parametrize("setting", internals._NOTE_VERSIONS)
def test_notes_of_another_version_are_refused(spark: SparkSession, setting: str):
    session = spark.newSession()
    session.conf.set(setting, "2")
    with pytest.raises(SetupError) as raised:
        require_known(session)
    assert str(raised.value) == f"{setting} — must be 1, which jobs can read; got 2. Leave it out."


def test_a_pyspark_that_starts_no_jvm_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delattr(java_gateway, "launch_gateway")
    with pytest.raises(SetupError, match=r"^PySpark — must have launch_gateway; got: cannot import name"):
        launch_jvm({}, os.open(os.devnull, os.O_WRONLY))


@pytest.mark.parametrize("name", ["manager", "worker"])
def test_without_a_daemon_of_pyspark_that_we_know_nothing_is_forked(
    monkeypatch: pytest.MonkeyPatch, name: str
):
    monkeypatch.delattr(daemon, name)
    assert not fork_workers()


def test_notes_of_spark_are_known():
    assert is_commit(b'v1\n{"nextBatchWatermarkMs":0}')
    assert not any(map(is_commit, [b"", b"v1\n", b"v1\n[]", b'v2\n{"nextBatchWatermarkMs":0}', b"v1\n{}"]))
    assert not is_commit(b'v1\n{"nextBatchWatermarkMs":7}')
    assert is_query(b'{"id":"5f1d9a4c-6c1c-4f6e-9a55-0a8f2f2f1d11"}')
    assert not any(map(is_query, [b"", b"[]", b'{"id":"5"}', b'{"id":5}', b"{}", b"3"]))


def test_what_a_batch_reads_is_told_from_memory_whatever_its_file_says(spark: SparkSession, tmp_path: Path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("a")
    told: list[tuple[bytes | None, bytes]] = []

    def tell(rows: DataFrame, batch_id: int) -> None:
        note = tmp_path / "checkpoint" / "offsets" / str(batch_id)
        before = note.read_bytes()
        note.write_bytes(b"of another job")
        told.append((planned_offsets(spark, batch_id), before))
        note.write_bytes(before)

    writer = spark.readStream.text(str(tmp_path / "in")).writeStream.foreachBatch(tell)
    query = (
        writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
    )
    query.awaitTermination()
    assert len(told) == 1 and told[0][0] == told[0][1]
    assert planned_offsets(spark, 0) is None  # no query runs
    assert (tmp_path / "checkpoint" / "commits" / "0").read_bytes() == COMMIT


def test_a_session_that_was_stopped_by_its_context_does_not_run(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
):
    assert _runs()
    monkeypatch.setattr(spark.sparkContext, "_jsc", None)  # as `SparkContext.stop` leaves it
    assert not _runs()


def _start_two(named: dict[str, str]) -> None:
    with job_session("first", named, {}) as first:
        assert {name: first.conf.get(name) for name in named} == named
        assert first.conf.get("spark.sql.session.timeZone") == "UTC"
    with job_session("second", {}, {}) as second:
        assert second.conf.get(MANAGER) == SETTINGS[MANAGER]


@pytest.mark.parametrize("in_thread", [False, True])
def test_a_job_leaves_the_session_that_runs_already_as_it_is(spark: SparkSession, in_thread: bool):
    """Settings that stayed, such as how a checkpoint in a store is written, would fail queries of others.

    A job in a thread of a notebook would stop the notebook's Spark, too, if it took it for its own.
    """
    named = {MANAGER: "of.a.Store", "spark.sql.shuffle.partitions": "5"}
    spark.conf.set("spark.sql.session.timeZone", "Asia/Kathmandu")
    before = {name: spark.conf.get(name) for name in (*named, "spark.sql.session.timeZone")}
    try:
        if in_thread:
            with ThreadPoolExecutor(1) as pool:
                pool.submit(_start_two, named).result()
        else:
            _start_two(named)
        assert {name: spark.conf.get(name) for name in before} == before
        assert spark.range(3).count() == 3  # it was not stopped
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
