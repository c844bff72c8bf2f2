"""Files in a store and on HDFS: the same as in a folder, by a server that speaks S3, and one of HDFS."""

from __future__ import annotations

import pickle
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from spark_pace.errors import EventError, SetupError, UnfitError
from spark_pace.io.event_files import read_source_file
from spark_pace.io.files import files, object_store
from spark_pace.io.files.addresses import StorePath, StoreSettings
from spark_pace.io.files.object_store import StoreFile
from spark_pace.job_file import read_job
from tests.spark.jobs import make_job, random_events
from tests.support.both_places import FOLDER, Both, Pair, in_form

FORMS = ("json", "json.gz", "csv", "csv.zst", "parquet")


def test_both_list_the_same_names_and_read_the_same_bytes(pair: Pair) -> None:
    for name in ("b", "a", ".hidden", "_temporary/x", "sub/c", "sub/.d", "ü 20%25", "_SUCCESS"):
        pair.put(name, name.encode())
    for place in pickle.loads(pickle.dumps(pair.places())):
        source = files.listing(place)
        assert sorted(source.look("")) == ["a", "b", "sub/c", "ü 20%25"]
        assert [source.size(name) for name in ("a", "ü 20%25", "gone")] == [1, 8, 0]
        file = files.open_in(place, "sub/c")
        assert file.size == 5 and file.changed_ns > 10**18
        with pa.input_stream(file) as stream:
            assert stream.read() == b"sub/c"
        with pytest.raises(FileNotFoundError, match="No such"):
            files.open_in(place, "gone")


@pytest.mark.parametrize("form", FORMS)
def test_both_give_the_same_events(pair: Pair, form: str, tmp_path: Path) -> None:
    spec = read_job(make_job(tmp_path))
    pair.put(f"x.{form}", in_form(random_events(3), form, tmp_path))
    folder, store = (
        read_source_file(place, f"x.{form}", form.split(".")[0], spec.events.schema)
        for place in pair.places()
    )
    assert folder.read_rows == store.read_rows == 200
    assert folder.events.equals(store.events) and folder.bad.equals(store.bad)


def test_a_file_that_is_gone_is_told_in_the_same_words(pair: Pair, tmp_path: Path) -> None:
    schema = read_job(make_job(tmp_path)).events.schema
    for place in pair.places():
        told = rf"{place}/x\.json — must be a readable json file; got: \[Errno 2\] No such .*Put it back"
        with pytest.raises(EventError, match=told):
            read_source_file(place, "x.json", "json", schema)


def test_a_file_is_one_request_and_of_a_large_one_columns_are_read_where_they_lie(
    both: Both, tmp_path: Path
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

    assert both.asked(lambda: read("small")) == [f"GET {FOLDER}/small"]
    # its end, and "t" and "x" of each of four groups of rows
    assert both.asked(lambda: read("large")) == [f"GET {FOLDER}/large"] * 6
    assert both.asked(lambda: files.open_in(store, "large").read()) == [f"GET {FOLDER}/large"]


def test_a_look_at_many_objects_begins_behind_the_greatest_name(
    both: Both, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "FEW_OBJECTS", 2)
    for name in ("a", "c", "e"):
        both.put(name, b"x")
    store = files.listing(StorePath.of(both.address, both.settings))
    assert sorted(store.look("")) == ["a", "c", "e"]
    for name in ("d", "f"):
        both.put(name, b"x")
    (request,) = both.asked(lambda: [*store.look("e")])
    assert f"start-after={FOLDER}/e" in request.replace("+", " ")
    assert list(store.look("e")) == ["f"]
    monkeypatch.setattr(files, "LOOKED_AT_ALL_S", 0)
    assert sorted(store.look("f")) == ["a", "c", "d", "e", "f"]


def test_a_prefix_is_taken_as_it_is_written(both: Both) -> None:
    both.put_at("a#b?c%20d/x", b"1")
    place = StorePath.of(f"{both.base}/a#b?c%20d", both.settings)
    assert list(files.listing(place).look("")) == ["x"]
    assert files.open_in(place, "x").readall() == b"1"


def test_an_object_of_no_bytes_is_no_file(both: Both) -> None:
    both.put("folder", b"")
    both.put("x", b"x")
    assert list(files.listing(both.places()[1]).look("")) == ["x"]


def test_what_is_read_is_of_one_object(both: Both) -> None:
    both.put("x", bytes(5_000_000))
    file = files.open_in(both.places()[1], "x")
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
    monkeypatch.setattr(object_store, "AT_START_S", 1)
    monkeypatch.setenv("AWS_METADATA_ENDPOINT", "http://127.0.0.1:1")
    address = f"s3a://{bucket}/events" if bucket else both.address
    given = {**dict(both.settings.given), **changed}
    settings = StoreSettings(tuple((key, value) for key, value in given.items() if value is not None))
    must = "must be a place in a store that answers and that this job may read"
    with pytest.raises(kind, match=rf"^{address} — {must}; {message}") as caught:
        files.require_source(StorePath.of(address, settings))
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
    monkeypatch.setattr(object_store, "AT_START_S", 1)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Failing)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    endpoint = f"http://127.0.0.1:{server.server_port}"
    given = {"endpoint": endpoint, "access_key_id": "a", "secret_access_key": "b"}
    store = StorePath.of("s3://bucket", StoreSettings(tuple(given.items())))
    file = files.open_in(store, "x")
    for failing, got in (
        (lambda: files.require_source(store), "503 Service Unavailable"),
        (lambda: file.read(9_000_000), "an answer that breaks off"),
    ):
        with pytest.raises(SetupError, match=rf"got: {got}\. Start the store, or correct") as caught:
            failing()
        assert caught.value.may_pass
    server.shutdown()
    thread.join()
    server.server_close()
