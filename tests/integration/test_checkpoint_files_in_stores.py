"""Files of a checkpoint on a disk, in an object store and on HDFS: the same functions do the same on all."""

from __future__ import annotations

import pickle
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import IO

import pytest

from examples.cluster.store_server import SECRET, StoreServer
from spark_pace.core.frames import Sink
from spark_pace.errors import StateError
from spark_pace.io.files import files, object_store
from spark_pace.io.files.addresses import (
    AnyPath,
    StorePath,
    StoreSettings,
)
from spark_pace.io.files.contract import OtherFileError
from spark_pace.spark.checkpoint.checkpoint import Checkpoint
from spark_pace.spark.sources.manifest import Manifest
from tests.support.faulty_store import CUTS_ANSWER, FAULTS, LOSES_ANSWER, FaultyStore

OTHER_FAULTS = [fault for fault in FAULTS if fault != LOSES_ANSWER]


@pytest.fixture(params=["disk", "in_a_store", pytest.param("on_hdfs", marks=pytest.mark.stores)])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> AnyPath:
    if request.param == "disk":
        (tmp_path / "ck").mkdir()
        return tmp_path / "ck"
    place: StorePath = request.getfixturevalue(request.param)
    return place


def test_a_file_is_written_read_listed_and_removed(folder: AnyPath) -> None:
    path = folder / "sequence" / "1.json"
    assert files.read(path) is None and files.stat(path) is None
    assert files.names(path.parent) == []
    files.write(path, b"first")
    files.write(path, b"second")
    files.write(path.parent / "2.json", b"")
    assert (files.read(path), files.read(path.parent / "2.json")) == (b"second", b"")
    assert sorted(files.names(path.parent)) == ["1.json", "2.json"]
    assert files.names(folder) in ([], ["sequence"])  # on a disk a folder may stand in a file's place
    found = files.stat(path)
    assert found is not None and found.size == 6 and abs(found.changed_ns / 1e9 - time.time()) < 60
    for _ in range(2):
        files.remove(path)
    assert files.names(path.parent) == ["2.json"]


def test_a_damaged_object_of_json_is_refused(folder: AnyPath) -> None:
    path = folder / "layout.json"
    files.write_json(path, {"slots": 2})
    assert files.read_json(path) == {"slots": 2}
    files.write(path, (files.read(path) or b"").replace(b"2", b"3", 1))
    with pytest.raises(StateError, match=rf"{path} — must be as this program wrote it; got another content"):
        files.read_json(path)


def test_what_waits_is_kept_under_the_checksum_of_its_content(folder: AnyPath) -> None:
    chunks = Checkpoint(folder).chunks
    content = bytes(range(256)) * 40_000

    def write(sink: Sink) -> None:
        for start in range(0, len(content), 1 << 20):
            sink.write(content[start : start + (1 << 20)])

    name, again = chunks.put(write), chunks.put(write)
    assert name == again and files.names(chunks.folder) == [name]
    assert bytes(pickle.loads(pickle.dumps(chunks)).get(name)) == content
    chunks.require_whole([name])
    with pytest.raises(StateError, match="must be as this program wrote it; got no file"):
        chunks.get("0" * 32)
    files.write(chunks.folder / name, b"other")
    with pytest.raises(StateError, match="got another content than its checksum is of"):
        chunks.require_whole([name])
    chunks.remove_all_but([])
    assert files.names(chunks.folder) == []


def test_what_waits_is_packed_in_a_store(in_a_store: StorePath) -> None:
    def fill(file: IO[bytes]) -> str:
        file.write(b"events " * 100_000)
        return "name"

    files.write_named(in_a_store, fill)
    assert len(files.content_of(in_a_store / "name")) < 10_000
    assert bytes(files.mapped(in_a_store / "name")) == b"events " * 100_000


def test_a_manifest_grows_and_is_read_again(folder: AnyPath) -> None:
    path = folder / "manifest.jsonl"
    for names in (["a", "b"], ["c"], ["d"]):
        Manifest(path).add(names)
    manifest = Manifest(path)
    manifest.tick(7)
    manifest.finish()
    assert Manifest(path).entries == ["a", "b", "c", "d", "\x007", ""]
    files.remove_appended(path)
    assert Manifest(path).entries == []


def test_a_manifest_of_many_parts_is_joined(remote: StorePath, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_MANY_PARTS", 3)
    path = remote / "manifest.jsonl"
    manifest = Manifest(path)
    for number in range(9):
        manifest.add([str(number)])
        if number % 4 == 3:
            files.join_appended(path)
    assert len(files.names(path)) == 2
    assert Manifest(path).entries == [str(number) for number in range(9)]


def test_parts_behind_a_lost_one_are_left_as_they_are(
    in_a_store: StorePath, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_MANY_PARTS", 3)
    path = in_a_store / "manifest.jsonl"
    manifest = Manifest(path)
    for number in range(6):
        manifest.add([str(number)])
    lost = sorted(files.names(path))[2]
    files.remove(path / lost)
    files.join_appended(path)
    assert len(files.names(path)) == 5
    assert Manifest(path).entries == ["0", "1"]


def test_of_two_who_add_to_one_manifest_one_is_refused(remote: StorePath) -> None:
    first, second = Manifest(remote / "m"), Manifest(remote / "m")
    first.add(["a"])
    second.add(["a"])  # the same entry: an answer may have been lost
    first.add(["b"])
    with pytest.raises(
        StateError, match=r"/m/\d+ — must be written by one job at a time; got what another job"
    ):
        second.add(["c"])
    assert Manifest(remote / "m").entries == ["a", "b"]


def test_the_text_of_a_path_has_no_secret_and_what_is_sent_of_it_has_all(in_a_store: StorePath) -> None:
    path = in_a_store / "clock.json"
    assert str(path).startswith("s3a://") and str(path).endswith("/jobs/of may/ck/clock.json")
    assert (path.name, path.parent, path.absolute()) == ("clock.json", in_a_store, path)
    assert SECRET not in f"{path!r} {path}"
    assert pickle.loads(pickle.dumps(path)) == path


def test_a_write_whose_answer_was_lost_counts(remote: StorePath) -> None:
    path = remote / "x"
    tag = files.replace(path, b"1", None)
    assert files.replace(path, b"1", None) == tag
    following = files.replace(path, b"2", tag)
    assert files.replace(path, b"2", tag) == following
    files.replace(path, b"3", following)
    files.write_new(path.parent / "y", b"1")
    files.write_new(path.parent / "y", b"1")
    for write in (
        lambda: files.replace(path, b"4", None),
        lambda: files.replace(path, b"4", tag),
        lambda: files.replace(path, b"4", following),
        lambda: files.write_new(path.parent / "y", b"4"),
    ):
        with pytest.raises(OtherFileError):
            write()
    assert files.tagged(path)[0] == b"3" and files.names(path.parent)[-1:] == ["y"]


def through(proxy: FaultyStore, path: StorePath) -> StorePath:
    """The same path by way of the proxy."""
    given = dict(path.settings.given) | {"endpoint": proxy.endpoint}
    return replace(path, settings=StoreSettings(tuple(given.items())))


@pytest.mark.parametrize(
    "fault", [LOSES_ANSWER, *(pytest.param(fault, marks=pytest.mark.stores) for fault in OTHER_FAULTS)]
)
def test_whatever_fails_between_a_job_and_its_store_a_request_is_made_again(
    server: StoreServer, in_a_store: StorePath, fault: str
) -> None:
    proxy = FaultyStore(int(server.endpoint.rpartition(":")[2]), 0.5, 1, (fault,))
    for number in range(3):
        path = through(proxy, in_a_store) / str(number)
        content = bytes(1_000 + number)
        files.write(path, content)
        found = files.tagged(path)
        assert found[0] == content == files.open_file(path).readall()
        assert files.replace(path, b"new", found[1]) == files.write_new(path, b"new")
        assert files.stat(path) is not None and files.names(path.parent) == [str(number)]
        files.remove(path)
        assert files.read(path) is None
    proxy.close()
    assert proxy.happened[fault] > 5


@pytest.mark.stores
def test_a_list_whose_pages_break_off_is_whole(server: StoreServer, in_a_store: StorePath) -> None:
    with ThreadPoolExecutor(16) as threads:
        list(threads.map(lambda number: files.write(in_a_store / f"{number:04d}", b""), range(2_100)))
    proxy = FaultyStore(int(server.endpoint.rpartition(":")[2]), 0.6, 1, (CUTS_ANSWER,), "list-type")
    names = [name for name, _ in object_store.walk(through(proxy, in_a_store), behind="0009")]
    proxy.close()
    assert names == [f"{number:04d}" for number in range(10, 2_100)]
    assert proxy.happened[CUTS_ANSWER] > 1
