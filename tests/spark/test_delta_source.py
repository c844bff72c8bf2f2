"""A job that reads a Delta table: what others append to it, in the order of their commits, exactly once."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from spark_pace.core import local_run
from spark_pace.core.plan.plan import build_plan
from spark_pace.errors import ConfigError, EventError, StateError
from spark_pace.io.delta_log import DeltaLog
from spark_pace.io.event_files import read_table_file
from spark_pace.io.files import files
from spark_pace.io.files.addresses import AnyPath
from spark_pace.job import run_job
from spark_pace.job_file import DeltaSource, JobSpec, read_job
from tests.spark.jobs import Event, make_job, matches, random_events, stop_at, table

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]

SCHEMA = pa.schema(
    [("t", pa.timestamp("us", "UTC")), ("k", pa.string()), ("kind", pa.string()), ("x", pa.int64())]
)


def append(folder: Path, events: Sequence[Event], **options: Any) -> None:
    """One commit."""
    rows = pa.Table.from_pylist(
        [{**event, "t": datetime.fromisoformat(event["t"])} for event in events], SCHEMA
    )
    write_deltalake(folder / "in", rows, mode="append", **options)


def append_all(folder: Path, events: Sequence[Event], commits: int, **options: Any) -> None:
    size = -(-len(events) // commits)
    for first in range(0, len(events), size):
        append(folder, events[first : first + size], **options)


def job(folder: Path, finish: bool = False, **source: Any) -> JobSpec:
    spec = read_job(make_job(folder, finish=finish))
    settings = {"from_version": None, "max_files_per_trigger": 2, **source}
    return replace(spec, source=DeltaSource(str(folder / "in"), **settings))


def by_core(spec: JobSpec, folder: Path) -> local_run.LocalResult:
    """What the core finds in the files of the table's commits."""
    plan = build_plan(spec.rules, order=spec.events.order)
    log = DeltaLog(folder / "in")
    added = [file for version in log.versions() for file in log.commit(version).added]
    reads = [read_table_file(folder / "in", file, spec.events.schema) for file in added]
    return local_run.run(plan, [read.events for read in reads])


@pytest.mark.in_parts
def test_what_commits_append_is_read_once_over_several_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = random_events(3, 240)
    events[100]["t"] = "2024-01-01T00:00:03"  # late by all that is before it
    append_all(tmp_path, events[:100], 2)
    spec = job(tmp_path)
    run_job(spec)
    append_all(tmp_path, events[100:160], 3)
    with pytest.raises(Exception, match="the disk is full"), monkeypatch.context() as patch:
        stop_at(patch, "metrics", batch_id=2)
        run_job(spec)
    DeltaTable(tmp_path / "in").optimize.compact()  # rows stay, and are not read twice
    append_all(tmp_path, events[160:], 2)
    run_job(replace(spec, finish=True))
    core = by_core(spec, tmp_path)
    assert matches(spec) == core.matches.to_pylist() != []
    assert sum(table(spec, "metrics")["records"].to_pylist()) == 240
    by_place = [("source", "ascending"), ("offset", "ascending")]
    late = table(spec, "late").sort_by(by_place)
    assert late.to_pylist() == core.late.sort_by(by_place).to_pylist()
    assert late["source"][0].as_py().startswith(f"{2:020d}/part-")
    append(tmp_path, events[:1])
    with pytest.raises(StateError, match="must not go on after its end"):
        run_job(spec)


def test_what_late_events_cost_does_not_grow_with_the_files_that_were_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The list of these files is read at the start alone, however many batches have late events."""
    events = random_events(3, 120)
    for number in range(20, 120, 20):
        events[number] = {**events[number], "t": "2024-01-01T00:00:00"}
    append_all(tmp_path, events, 6, partition_by=["k"])
    read, wrapped = [], files.read_appended

    def counted(path: AnyPath) -> bytes | None:
        read.append(wrapped(path) or b"")
        return read[-1]

    monkeypatch.setattr(files, "read_appended", counted)
    spec = job(tmp_path, finish=True, max_files_per_trigger=3)
    run_job(spec)
    by_place = [("source", "ascending"), ("offset", "ascending")]
    late = table(spec, "late").sort_by(by_place)
    assert late.to_pylist() == by_core(spec, tmp_path).late.sort_by(by_place).to_pylist()
    assert sum(count > 0 for count in table(spec, "metrics")["late"].to_pylist()) > 4
    assert read == [b""]


def test_a_table_that_is_partitioned_and_whose_log_was_cut_is_read_whole(tmp_path: Path) -> None:
    append_all(tmp_path, random_events(4, 90), 4, partition_by=["k"])
    spec = job(tmp_path, finish=True, max_files_per_trigger=8)
    expected = by_core(spec, tmp_path)
    cut_behind(tmp_path, 3)
    summary = run_job(spec)
    assert summary.records == 90
    assert table(spec, "matches").num_rows == expected.matches.num_rows > 0


@pytest.mark.long
def test_a_table_whose_log_delta_itself_cut_behind_a_checkpoint_of_version_2_is_read_whole(
    tmp_path: Path, spark: SparkSession
) -> None:
    append_all(tmp_path, random_events(4, 90), 3, partition_by=["k"])
    whole = DeltaLog(tmp_path / "in").files(2)
    properties = "'delta.checkpointPolicy' = 'v2', 'delta.checkpointInterval' = '3'"
    spark.sql(f"ALTER TABLE delta.`{tmp_path / 'in'}` SET TBLPROPERTIES ({properties})")
    log = DeltaLog(tmp_path / "in")
    for version in range(3):
        (tmp_path / "in" / "_delta_log" / f"{version:020d}.json").unlink()
    assert [file.path for file in log.files(3)] == [file.path for file in whole]
    append_all(tmp_path, random_events(4, 90)[:30], 1)
    assert run_job(job(tmp_path, finish=True, max_files_per_trigger=8)).records == 120


@pytest.mark.long
def test_a_log_that_was_cut_behind_what_was_read_is_read_on(tmp_path: Path) -> None:
    events = random_events(6, 90)
    spec = job(tmp_path)
    append_all(tmp_path, events[:60], 2)
    run_job(spec)
    append(tmp_path, events[60:])
    cut_behind(tmp_path, 2)
    assert run_job(replace(spec, finish=True)).records == 30
    assert sum(table(spec, "metrics")["records"].to_pylist()) == 90


def cut_behind(folder: Path, version: int) -> None:
    """Let a checkpoint take the place of the commits before a version."""
    DeltaTable(folder / "in").create_checkpoint()
    for number in range(version):
        (folder / "in" / "_delta_log" / f"{number:020d}.json").unlink()


def test_a_version_to_begin_with_leaves_out_what_is_before(tmp_path: Path) -> None:
    events = random_events(5, 90)
    append_all(tmp_path, events, 3)
    assert run_job(job(tmp_path, from_version=1)).records == 60
    append(tmp_path, events[:5])
    assert run_job(job(tmp_path, from_version=1)).records == 5


def overwrite(folder: Path) -> None:
    rows = pa.Table.from_pylist([], SCHEMA)
    write_deltalake(folder / "in", rows, mode="overwrite")


def make_anew(folder: Path) -> None:
    shutil.rmtree(folder / "in")
    append_all(folder, random_events(6, 20), 4)


def cut_off(folder: Path) -> None:
    append_all(folder, random_events(6, 20), 4)
    cut_behind(folder, 4)


CHANGES = {
    "overwritten": (
        overwrite,
        r"in, version 2 — must only append to the table; got WRITE, which takes 2 files",
    ),
    "deleted from": (
        lambda f: DeltaTable(f / "in").delete("x = 3"),
        "version 2 — must only append .* got DELETE",
    ),
    "updated": (
        lambda f: DeltaTable(f / "in").update({"x": "0"}),
        "version 2 — must only append .* got UPDATE",
    ),
    "made anew": (make_anew, "in — must be the table that the checkpoint has read, .*; got another one, "),
    "cut off": (
        cut_off,
        r"in, version 2 — must have the commits that were not read yet; got a log without",
    ),
}


@pytest.fixture(scope="module")
def read_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a job that has read two commits."""
    folder = tmp_path_factory.mktemp("job")
    append_all(folder, random_events(6, 40), 2)
    run_job(job(folder))
    return folder


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.long] * (name in ("deleted from", "updated")))
        for name in CHANGES
    ],
)
def test_a_table_to_which_rows_are_not_only_appended_is_told_in_one_line(
    tmp_path: Path, read_once: Path, name: str
) -> None:
    change, words = CHANGES[name]
    shutil.copytree(read_once, tmp_path, dirs_exist_ok=True)
    change(tmp_path)
    with pytest.raises(StateError, match=words) as caught:
        run_job(job(tmp_path))
    assert "\n" not in str(caught.value)


def test_a_running_job_tells_of_an_overwrite_too(tmp_path: Path) -> None:
    append_all(tmp_path, random_events(6, 40), 2)
    spec = replace(job(tmp_path), trigger_us=100_000)
    with pytest.raises(
        StateError, match=r"in, version 2 — must only append .* from_version: 3 goes on"
    ) as caught:
        run_job(spec, on_progress=lambda batch: overwrite(tmp_path))
    assert "\n" not in str(caught.value)
    assert table(spec, "metrics")["records"].to_pylist() == [40]


def test_a_file_that_vacuum_took_is_told_with_its_version(tmp_path: Path) -> None:
    append_all(tmp_path, random_events(7, 40), 2)
    (lost,) = DeltaLog(tmp_path / "in").commit(1).added
    (tmp_path / "in" / lost.path).unlink()
    words = r"in, version 1 — must have its files .*; got No such file or directory: part-\S+\. If VACUUM"
    with pytest.raises(EventError, match=words) as caught:
        run_job(job(tmp_path))
    assert "\n" not in str(caught.value)


def test_columns_that_do_not_fit_are_told(tmp_path: Path) -> None:
    append(tmp_path, random_events(8, 10))
    spec = job(tmp_path)
    run_job(spec)
    more = pa.table({"extra": [1.5]})  # a column that nothing reads; but the row has no event time
    write_deltalake(tmp_path / "in", more, mode="append", schema_mode="merge")
    assert run_job(spec).bad_records == 1
    wrong = with_types(spec, kind="DOUBLE")
    wrong = replace(wrong, checkpoint_path=str(tmp_path / "other"), sink_path=str(tmp_path / "other out"))
    words = "events.schema — must declare attributes as .*in has them; got kind — must be DOUBLE"
    with pytest.raises(ConfigError, match=words):
        run_job(wrong)


def with_types(spec: JobSpec, **types: Any) -> JobSpec:
    """The job with other types of some attributes, and the rule that runs an operator."""
    fields = tuple(
        replace(field, type=types.get(field.name, field.type)) for field in spec.events.schema.fields
    )
    schema = replace(spec.events.schema, fields=fields)
    rules = tuple(replace(rule, schema=schema) for rule in spec.rules[2:])
    return replace(spec, events=replace(spec.events, schema=schema), rules=rules)


CHAINED = """
name: chained
source: {kind: delta, path: out/matches, max_files_per_trigger: 1}
events:
  schema: "matched_at TIMESTAMP, rule STRING, first BIGINT, second BIGINT"
  event_time: matched_at
  delay: 1 min
rules: [upper.yaml]
sink: {kind: delta, path: upper}
checkpoint: upper checkpoint
finish: true
"""
UPPER = """
rules:
  - name: pair_of_pairs
    pattern: {sequence: [{a: "rule = 'pairs'"}, {b: "rule = 'pairs'"}]}
    where: b.first > a.second
    within: 30 s
    emit: {low: a.first, high: b.second}
"""


@pytest.mark.parametrize("resumed", [False, pytest.param(True, marks=pytest.mark.long)])
def test_a_job_reads_the_matches_of_another(tmp_path: Path, resumed: bool) -> None:
    append_all(tmp_path, random_events(9, 200), 3)
    lower = job(tmp_path, finish=True, max_files_per_trigger=2)
    (tmp_path / "upper.yaml").write_text(UPPER)
    (tmp_path / "chained.yaml").write_text(CHAINED)
    upper = read_job(tmp_path / "chained.yaml")
    for each in (lower, upper) if resumed else ():
        run_job(replace(each, finish=False))
    append_all(tmp_path, [{**e, "t": e["t"].replace("T00", "T01")} for e in random_events(10, 100)], 1)
    run_job(lower)
    run_job(upper)
    core = local_run.run(build_plan(upper.rules, order=upper.events.order), _matches_read(upper, tmp_path))
    assert matches(upper) == core.matches.to_pylist() != []
    assert table(upper, "late").num_rows == 0


def _matches_read(spec: JobSpec, folder: Path) -> list[pa.Table]:
    log = DeltaLog(folder / "out" / "matches")
    added = [file for version in log.versions() for file in log.commit(version).added]
    return [read_table_file(log.folder, file, spec.events.schema).events for file in added]
