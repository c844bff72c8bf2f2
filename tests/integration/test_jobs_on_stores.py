"""Jobs that read files and tables in an object store, on a server that speaks S3."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import obstore
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from examples.cluster.store_server import NAME, SECRET, StoreServer
from spark_pace.cli.main import commands
from spark_pace.errors import EventError, SetupError, SparkPaceError, UnfitError
from spark_pace.io.query import read_table, store_options, tables_in
from spark_pace.job import run_job
from spark_pace.job_file import JobSpec, read_job
from spark_pace.spark.checkpoint.checkpoint import Checkpoint
from spark_pace.spark.sources.files import FilesInput
from spark_pace.spark.summary import Listener
from spark_pace.watching.subject import tables_of
from tests.spark.jobs import (
    RULES,
    Event,
    in_core,
    make_job,
    matches,
    random_events,
    stop_at,
    table,
    write_files,
)
from tests.support.both_places import FOLDER, Both, in_form, lines, reach

NAMES = ["rule", "out_seq", "matched_at"]


def on_store(spec: JobSpec, both: Both) -> JobSpec:
    return replace(spec, source=replace(spec.files, path=both.address))


@pytest.mark.spark
@pytest.mark.stores
@pytest.mark.usefixtures("spark")
def test_a_job_over_a_store_finds_what_the_core_finds_in_the_files(both: Both, tmp_path: Path) -> None:
    """JSON, some of it packed, in two batches of a run; then late events after a restart; then the end."""
    local = read_job(make_job(tmp_path, finish=False, slots=1, buckets=1))
    local = replace(local, source=replace(local.files, max_files_per_trigger=2))
    spec = on_store(local, both)
    events = random_events(5, 160)
    for number in range(4):
        form = "json.gz" if number % 2 else "json"
        both.put(f"{number}.{form}", in_form(events[40 * number : 40 * number + 40], form, tmp_path))
    requests = both.asked(
        lambda: run_job(spec, heard=[Listener(empty=lambda: pytest.fail("there are files"))])
    )
    read = [request for request in requests if not request.startswith("GET ?list-type")]
    assert len(requests) - len(read) == 3  # before the query starts, twice if it is new, and when it does
    assert sorted(read) == [f"GET {FOLDER}/{number}.json{'.gz' * (number % 2)}" for number in range(4)]
    both.put("4/late.json", lines(events[:3]))
    assert run_job(replace(spec, finish=True)).late == 3
    core = in_core(replace(local, source=replace(local.files, path=str(flat(both)))))
    assert len(table(spec, "metrics")) == 3
    assert matches(spec) == core.matches.to_pylist() != []
    assert table(spec, "late")["source"].to_pylist() == ["4/late.json"] * 3
    written = [path for folder in ("checkpoint", "out") for path in (tmp_path / folder).rglob("*")]
    kept = [path.read_bytes() for path in written if path.is_file()]
    assert len(kept) > 20 and not any(SECRET.encode() in content for content in kept)
    both.put("5.json", lines(events))
    with pytest.raises(Exception, match=rf"{both.address} — must not go on after its end"):
        run_job(replace(spec, finish=True))


@pytest.mark.spark
def test_a_job_with_everything_in_a_store_goes_on_where_a_batch_was_left(
    spark: SparkSession, both: Both, tmp_path: Path
) -> None:
    reach(spark, both.server.environment)
    local = read_job(make_job(tmp_path, slots=1, buckets=1))
    places = {"sink_path": f"{both.base}/out", "checkpoint_path": f"{both.base}/ck"}
    spec = replace(on_store(local, both), **places)
    events = random_events(5, 80)
    for number in range(2):
        both.put(f"{number}.json", lines(events[40 * number : 40 * number + 40]))
    with pytest.raises(SparkPaceError, match="the disk is full"), pytest.MonkeyPatch.context() as patch:
        stop_at(patch, "metrics", batch_id=1)
        run_job(spec)
    run_job(spec)
    assert matches(spec) == in_core(local).matches.to_pylist() != []
    assert sorted(table(spec, "metrics")["batch_id"].to_pylist()) == [0, 1]
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == ["in"]


def flat(both: Both) -> Path:
    """The folder with files in it alone, as `in_core` reads them."""
    (both.folder / "4" / "late.json").rename(both.folder / "4.json")
    (both.folder / "4").rmdir()
    return both.folder


@pytest.mark.spark
@pytest.mark.stores
def test_a_job_over_parquet_stops_where_an_object_is_gone_and_goes_on_when_it_is_back(
    spark: SparkSession, both: Both, tmp_path: Path
) -> None:
    local = read_job(make_job(tmp_path, slots=1, buckets=1))
    local = replace(local, source=replace(local.files, format="parquet"))
    spec = on_store(local, both)
    first, second = (in_form(random_events(seed), "parquet", tmp_path) for seed in (6, 7))
    both.put("_SUCCESS", b"no file to read")
    source = FilesInput(spec.files, Checkpoint(spec.checkpoint_folder), False, "quarantine")
    assert source.lacks_files(spark)
    both.put("a.parquet", first)
    assert not source.lacks_files(spark)
    both.put("b.parquet", second)
    told = rf"{both.address}/b\.parquet — must be a readable parquet file; got: \[Errno 2\] No such object"
    with pytest.raises(EventError, match=told):
        run_job(spec, on_progress=lambda _: both.remove("b.parquet"))
    both.put("b.parquet", second)
    run_job(spec)
    assert matches(spec) == in_core(local).matches.to_pylist() != []
    with pytest.raises(UnfitError, match=r"s3a://no-such-bucket/x — must be a place .* NoSuchBucket"):
        run_job(replace(spec, source=replace(spec.files, path="s3a://no-such-bucket/x")))


@pytest.mark.spark
@pytest.mark.stores
@pytest.mark.usefixtures("spark")
def test_a_job_from_a_table_in_a_store_to_tables_in_it(
    server: StoreServer,
    both: Both,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Rows appended later are read by the next run. Commands reach the tables by the job file alone."""
    access = {
        "spark.hadoop.fs.s3a.endpoint": server.endpoint,
        "spark.hadoop.fs.s3a.access.key": NAME,
        "spark.hadoop.fs.s3a.secret.key": SECRET,
    }
    bucket = f"s3a://{both.address.partition('://')[2].partition('/')[0]}"
    path = from_table_to_tables(tmp_path, bucket, access)
    spec = read_job(path)
    place, events = tables_in(f"{bucket}/in", access), random_events(5, 160)
    obstore.put(both.bucket, "owners.csv", b"k,owner\nu,ann\n")
    for part in range(2):
        rows = rows_of(events[80 * part : 80 * part + 80])
        write_deltalake(str(place), rows, mode="append", storage_options=store_options(place))
        run_job(replace(spec, finish=part == 1))
    for name in server.environment:
        monkeypatch.delenv(name)
    sink = tables_of(spec)
    assert [dict(row).keys() for row in read_table(sink, "metrics")["lookups"].to_pylist()] == [
        {"owners"}
    ] * 2
    assert read_table(sink, "metrics")["records"].to_pylist() == [80, 80]
    found = numbered(read_table(sink, "matches", NAMES))
    assert found.to_pylist() == numbered(of_core(tmp_path / "core", events)).to_pylist() != []
    count = ["sql", str(path), "SELECT count(*) AS n FROM matches", "--format", "csv"]
    commands([*count], standalone_mode=False)
    assert capfd.readouterr().out.split() == ["n", str(found.num_rows)]
    commands(["status", str(path)], standalone_mode=False)
    assert "matches" in capfd.readouterr().out
    for name, value in (server.environment | {"AWS_ENDPOINT_URL": "http://127.0.0.1:1"}).items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SetupError, match=r"/matches — must be a place in .* got: no answer at http://127"):
        read_table(f"{bucket}/out", "matches")


def from_table_to_tables(folder: Path, bucket: str, access: dict[str, str]) -> Path:
    """A job file that names tables in a bucket, and what reaches it."""
    path = make_job(folder, slots=1, buckets=1, finish=False)
    text = path.read_text().replace("path: out", f'path: "{bucket}/out"')
    source = f'{{kind: delta, path: "{bucket}/in"}}'
    lookup = f'lookup: {{owners: {{path: "{bucket}/owners.csv", on: k, schema: "owner STRING"}}}}'
    (folder / "rules.yaml").write_text(RULES.replace("event_time: t\n", f"event_time: t\n  {lookup}\n"))
    path.write_text(re.sub(r"(?m)^source:.*$", f"source: {source}", text) + f"spark: {json.dumps(access)}\n")
    return path


def rows_of(events: list[Event]) -> pa.Table:
    rows = pa.Table.from_pylist(events)
    times = pc.assume_timezone(rows["t"].cast(pa.timestamp("us")), "UTC")
    return rows.set_column(rows.schema.get_field_index("t"), "t", times)


def of_core(folder: Path, events: list[Event]) -> pa.Table:
    folder.mkdir()
    local = read_job(make_job(folder))
    write_files(folder, events, 2)
    return in_core(local).matches


def numbered(rows: pa.Table) -> pa.Table:
    return rows.select(NAMES).sort_by([(name, "ascending") for name in NAMES])
