"""Files in an object store: the same as in a folder, by a server that speaks S3, and jobs that read them."""

from __future__ import annotations

import gzip
import json
import pickle
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import obstore
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
import pytest
from deltalake import write_deltalake
from obstore.store import S3Store
from pyspark.sql import SparkSession

from examples.cluster.store_server import NAME, SECRET, StoreServer
from spark_pace.cli.main import commands
from spark_pace.errors import EventError, SetupError, UnfitError
from spark_pace.io.event_files import read_source_file
from spark_pace.io.files import store as in_store
from spark_pace.io.files.place import Place
from spark_pace.io.files.places import place_of
from spark_pace.io.files.store import Store, StoreFile
from spark_pace.io.files.store_settings import StoreSettings
from spark_pace.io.files.table_place import TablePlace
from spark_pace.io.query import read_table
from spark_pace.job import run_job
from spark_pace.job_file import JobSpec, read_job
from spark_pace.spark.checkpoint.checkpoint import Checkpoint
from spark_pace.spark.sources.files import FilesInput
from spark_pace.watching.subject import tables_of
from tests.spark.jobs import Event, in_core, make_job, matches, random_events, table, write_files

FOLDER = "days/of may"
FORMS = ("json", "json.gz", "csv", "csv.zst", "parquet")


@dataclass
class Both:
    """A folder and a prefix in a bucket with the same files."""

    folder: Path
    bucket: S3Store
    address: str
    settings: StoreSettings

    def put(self, name: str, content: bytes) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        obstore.put(self.bucket, f"{FOLDER}/{name}", content)

    def remove(self, name: str) -> None:
        (self.folder / name).unlink()
        obstore.delete(self.bucket, f"{FOLDER}/{name}")

    def places(self) -> tuple[Place, Place]:
        none = StoreSettings()
        return place_of(str(self.folder), none), place_of(self.address, self.settings)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreServer]:
    started = StoreServer(tmp_path_factory.mktemp("store"))
    yield started
    started.kill()


@pytest.fixture
def both(server: StoreServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Both:
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    name = tmp_path.name[-40:].replace("_", "-").strip("-")
    address = f"s3a://{name}/{FOLDER}"
    (tmp_path / "in").mkdir()
    settings = StoreSettings.of(address, {}, server.environment)
    return Both(tmp_path / "in", server.bucket(name), address, settings)


def asked(server: StoreServer, of: Callable[[], object]) -> list[str]:
    """The requests that something makes, without the bucket."""
    before = len(server.requests())
    of()
    return [f"{method} {re.sub('^/[^/?]*/?', '', path)}" for method, path in server.requests()[before:]]


def lines(events: list[Event]) -> bytes:
    return "\n".join(map(json.dumps, events)).encode()


def in_form(events: list[Event], form: str, folder: Path) -> bytes:
    """The events as the content of a file."""
    path = folder / f".scratch.{form}"
    rows = pa.Table.from_pylist(events)
    if form == "parquet":
        time = rows["t"].cast(pa.timestamp("us"))
        pyarrow.parquet.write_table(rows.set_column(0, "t", time), path)
        return path.read_bytes()
    if form.startswith("csv"):
        pyarrow.csv.write_csv(rows, path)
    text = path.read_bytes() if form.startswith("csv") else lines(events)
    if form.endswith("zst"):
        return pa.compress(text, "zstd", asbytes=True)  # type: ignore[no-any-return]
    return gzip.compress(text) if form.endswith("gz") else text


def test_both_list_the_same_names_and_read_the_same_bytes(both: Both) -> None:
    for name in ("b", "a", ".hidden", "_temporary/x", "sub/c", "sub/.d", "ü 20%25", "_SUCCESS"):
        both.put(name, name.encode())
    for place in pickle.loads(pickle.dumps(both.places())):
        assert sorted(place.look("")) == ["a", "b", "sub/c", "ü 20%25"]
        assert [place.size(name) for name in ("a", "ü 20%25", "gone")] == [1, 8, 0]
        assert place.objection("a") is None
        file = place.open("sub/c")
        with pa.input_stream(file.content) as stream:
            assert (file.size, stream.read()) == (5, b"sub/c")
        assert file.changed_ns > 10**18
        with pytest.raises(FileNotFoundError, match="No such"):
            place.open("gone")


@pytest.mark.parametrize("form", FORMS)
def test_both_give_the_same_events(both: Both, form: str, tmp_path: Path) -> None:
    spec = read_job(make_job(tmp_path))
    both.put(f"x.{form}", in_form(random_events(3), form, tmp_path))
    folder, store = (
        read_source_file(place, f"x.{form}", form.split(".")[0], spec.events.schema)
        for place in both.places()
    )
    assert folder.read_rows == store.read_rows == 200
    assert folder.events.equals(store.events) and folder.bad.equals(store.bad)


def test_a_file_that_is_gone_is_told_in_the_same_words(both: Both, tmp_path: Path) -> None:
    schema = read_job(make_job(tmp_path)).events.schema
    for place in both.places():
        told = rf"{place}/x\.json — must be a readable json file; got: \[Errno 2\] No such .*Put it back"
        with pytest.raises(EventError, match=told):
            read_source_file(place, "x.json", "json", schema)


def test_a_file_is_one_request_and_of_a_large_one_columns_are_read_where_they_lie(
    server: StoreServer, both: Both, tmp_path: Path
) -> None:
    schema = read_job(make_job(tmp_path)).events.schema
    numbers = pa.array(range(200_000))
    wide = pa.table({"t": numbers.cast(pa.timestamp("us")), "x": numbers, "y": numbers, "z": numbers})
    small = both.folder / ".small"
    pyarrow.parquet.write_table(wide.slice(0, 1_000), small, row_group_size=100)
    both.put("small", small.read_bytes())
    plain: dict[str, Any] = {"compression": "none", "use_dictionary": False, "row_group_size": 50_000}
    pyarrow.parquet.write_table(wide, small, **plain)
    both.put("large", small.read_bytes())
    _, store = both.places()

    def read(name: str) -> None:
        events = read_source_file(store, name, "parquet", schema).events
        assert events["x"].to_pylist() == list(range(events.num_rows)) != []

    assert asked(server, lambda: read("small")) == [f"GET {FOLDER}/small"]
    # its end, and "t" and "x" of each of four groups of rows
    assert asked(server, lambda: read("large")) == [f"GET {FOLDER}/large"] * 6
    assert asked(server, lambda: store.open("large").content.read()) == [f"GET {FOLDER}/large"]  # type: ignore[union-attr]


def test_a_look_at_many_objects_begins_behind_the_greatest_name(
    server: StoreServer, both: Both, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(in_store, "FEW_OBJECTS", 2)
    for name in ("a", "c", "e"):
        both.put(name, b"x")
    store = Store(both.address, both.settings)
    assert sorted(store.look("")) == ["a", "c", "e"]
    for name in ("d", "f"):
        both.put(name, b"x")
    (request,) = asked(server, lambda: [*store.look("e")])
    assert f"start-after={FOLDER}/e" in request.replace("+", " ")
    assert list(store.look("e")) == ["f"]
    monkeypatch.setattr(in_store, "LOOKED_AT_ALL_S", 0)
    assert sorted(store.look("f")) == ["a", "c", "d", "e", "f"]


def test_an_object_of_no_bytes_is_no_file(both: Both) -> None:
    both.put("folder", b"")
    both.put("x", b"x")
    assert list(both.places()[1].look("")) == ["x"]


def test_what_is_read_is_of_one_object(both: Both) -> None:
    both.put("x", bytes(5_000_000))
    file = both.places()[1].open("x").content
    assert isinstance(file, StoreFile) and file.read(10) == bytes(10)
    both.put("x", b"y" * 5_000_000)
    file.seek(4_900_000)
    with pytest.raises(SetupError, match=r"/x — must stay as it is while it is read; got another object"):
        file.read(10)


@pytest.mark.parametrize(
    ("bucket", "changed", "kind", "message"),
    [
        ("no-such-bucket", {}, UnfitError, r"got: NoSuchBucket: .*\. Correct the address"),
        ("", {"access_key_id": "other"}, UnfitError, "got: InvalidAccessKeyId: .* Correct the credentials"),
        ("", {"secret_access_key": "other"}, UnfitError, "got: SignatureDoesNotMatch: .*the credentials"),
        ("", {"access_key_id": None, "secret_access_key": None}, UnfitError, "got no credentials. Set AWS_"),
        ("", {"endpoint": "http://127.0.0.1:1"}, SetupError, "got: no answer at http://127.0.0.1:1. Start"),
    ],
)
def test_a_store_that_cannot_be_read_is_told_in_one_line(
    both: Both,
    monkeypatch: pytest.MonkeyPatch,
    bucket: str,
    changed: dict[str, str | None],
    kind: type[SetupError],
    message: str,
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setattr(in_store, "AT_START_S", 1)
    monkeypatch.setenv("AWS_METADATA_ENDPOINT", "http://127.0.0.1:1")
    address = f"s3a://{bucket}/events" if bucket else both.address
    given = {**dict(both.settings.given), **changed}
    settings = StoreSettings(tuple((key, value) for key, value in given.items() if value is not None))
    must = "must be a place in a store that answers and that this job may read"
    with pytest.raises(kind, match=rf"^{address} — {must}; {message}") as caught:
        Store(address, settings).require()
    assert type(caught.value) is kind and "\n" not in str(caught.value)


class Failing(BaseHTTPRequestHandler):
    """A server that is busy when it is asked for names, and breaks off where an object is read on."""

    def do_GET(self) -> None:
        if "list-type" in self.path:
            self.send_error(503, "Slow Down")
            return
        self.send_response(206 if "Range" in self.headers else 200)
        for name, value in {
            "Content-Length": "9000000",
            "ETag": f'"{self.headers.get("Range")}"',
            "Last-Modified": "Mon, 01 Jan 2024 00:00:00 GMT",
            **({"Content-Range": "bytes 0-8999999/9000000"} if "Range" in self.headers else {}),
        }.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(bytes(1_000_000))

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def test_a_store_that_fails_may_answer_the_next_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_store, "AT_START_S", 1)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Failing)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    endpoint = f"http://127.0.0.1:{server.server_port}"
    given = {"endpoint": endpoint, "access_key_id": "a", "secret_access_key": "b"}
    store = Store("s3://bucket", StoreSettings(tuple(given.items())))
    file = store.open("x").content
    for failing, got in (
        (store.require, "503 Service Unavailable"),
        (lambda: file.read(9_000_000), "an answer that breaks off"),  # type: ignore[union-attr]
    ):
        with pytest.raises(SetupError, match=rf"got: {got}\. Start the store, or correct") as caught:
            failing()
        assert caught.value.may_pass
    server.shutdown()
    thread.join()
    server.server_close()


def on_store(spec: JobSpec, both: Both) -> JobSpec:
    return replace(spec, source=replace(spec.files, path=both.address))


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_a_job_over_a_store_finds_what_the_core_finds_in_the_files(
    server: StoreServer, both: Both, tmp_path: Path
) -> None:
    """JSON, some of it packed, in two batches of a run; then late events after a restart; then the end."""
    local = read_job(make_job(tmp_path, finish=False, slots=1, buckets=1))
    local = replace(local, source=replace(local.files, max_files_per_trigger=2))
    spec = on_store(local, both)
    events = random_events(5, 160)
    for number in range(4):
        form = "json.gz" if number % 2 else "json"
        both.put(f"{number}.{form}", in_form(events[40 * number : 40 * number + 40], form, tmp_path))
    requests = asked(server, lambda: run_job(spec, on_empty=lambda: pytest.fail("there are files")))
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


def flat(both: Both) -> Path:
    """The folder with files in it alone, as `in_core` reads them."""
    (both.folder / "4" / "late.json").rename(both.folder / "4.json")
    (both.folder / "4").rmdir()
    return both.folder


@pytest.mark.spark
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
@pytest.mark.usefixtures("spark")
def test_a_job_from_a_table_in_a_store_to_tables_in_it(
    server: StoreServer,
    both: Both,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Rows appended later are read by the next run. Commands reach the tables by the job file alone."""
    bucket = both.address.partition("://")[2].partition("/")[0]
    access = {
        "spark.hadoop.fs.s3a.endpoint": server.endpoint,
        "spark.hadoop.fs.s3a.access.key": NAME,
        "spark.hadoop.fs.s3a.secret.key": SECRET,
    }
    path = make_job(tmp_path, slots=1, buckets=1, finish=False)
    text = path.read_text().replace("path: out", f'path: "s3a://{bucket}/out"')
    source = f'{{kind: delta, path: "s3a://{bucket}/in"}}'
    text = re.sub(r"(?m)^source:.*$", f"source: {source}", text) + f"spark: {json.dumps(access)}\n"
    path.write_text(text)
    spec = read_job(path)
    place = TablePlace.of(f"s3a://{bucket}/in", access)
    events = random_events(5, 160)
    rows = pa.Table.from_pylist(events)
    times = pc.assume_timezone(rows["t"].cast(pa.timestamp("us")), "UTC")
    rows = rows.set_column(rows.schema.get_field_index("t"), "t", times)
    for part in range(2):
        new = rows.slice(80 * part, 80)
        write_deltalake(place.address, new, mode="append", storage_options=place.options)
        run_job(replace(spec, finish=part == 1))
    for name in server.environment:
        monkeypatch.delenv(name)
    sink = tables_of(spec)
    assert read_table(sink, "metrics")["records"].to_pylist() == [80, 80]
    (tmp_path / "core").mkdir()
    local = read_job(make_job(tmp_path / "core"))
    write_files(tmp_path / "core", events, 2)
    core = in_core(local).matches
    names = ["rule", "out_seq", "matched_at"]
    found = read_table(sink, "matches", names).sort_by([(name, "ascending") for name in names])
    expected = core.select(names).sort_by([(name, "ascending") for name in names])
    assert found.to_pylist() == expected.to_pylist() != []
    count = ["sql", str(path), "SELECT count(*) AS n FROM matches", "--format", "csv"]
    commands([*count], standalone_mode=False)
    assert capfd.readouterr().out.split() == ["n", str(found.num_rows)]
    commands(["status", str(path)], standalone_mode=False)
    assert "matches" in capfd.readouterr().out
    for name, value in (server.environment | {"AWS_ENDPOINT_URL": "http://127.0.0.1:1"}).items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SetupError, match=r"/matches — must be a place in .* got: no answer at http://127"):
        read_table(f"s3a://{bucket}/out", "matches")
