"""What is told, and done again, where HDFS is not there, does not answer or does not let somebody in."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hdfs_native import Client, FileStatus, FileWriter

from spark_pace.errors import SetupError, UnfitError
from spark_pace.io.files import files
from spark_pace.io.files import hdfs as on_hdfs
from spark_pace.io.files.addresses import StorePath, StoreSettings
from spark_pace.io.files.hdfs import HdfsFile, client_of
from spark_pace.spark.checkpoint.checkpoint import Checkpoint
from spark_pace.spark.checkpoint.lock import checkpoint_lock
from tests.support.hdfs_server import HdfsServer

pytestmark = pytest.mark.stores

MUST = "must be a place on HDFS that answers and that this job may use; got:"
NODE = r"Start the name node, or correct the host and the port\.$"


@pytest.fixture
def folder(hdfs: HdfsServer, tmp_path: Path) -> StorePath:
    return StorePath.of(f"{hdfs.address}/{tmp_path.name}", StoreSettings())


@pytest.fixture
def stranger(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("HADOOP_USER_NAME", "stranger")
    client_of.cache_clear()
    yield
    client_of.cache_clear()


def test_a_folder_that_is_not_there_is_refused_for_a_source_alone(folder: StorePath) -> None:
    with pytest.raises(
        UnfitError, match=rf"^{folder} — must be a folder or a file on HDFS; got no such folder"
    ):
        files.require_source(folder)
    assert not files.reach(folder)


@pytest.mark.usefixtures("stranger")
def test_a_user_who_may_not_write_is_told_so(folder: StorePath) -> None:
    told = (
        rf"{folder}/.lock/0+ — {MUST} AccessControlException: Permission denied: user=stranger, access=WRITE"
    )
    with pytest.raises(UnfitError, match=told), checkpoint_lock(Checkpoint(folder)):
        pass


def test_a_server_that_falls_silent_is_not_waited_for_without_end(
    hdfs: HdfsServer, folder: StorePath
) -> None:
    path = folder / "x"
    files.write(path, b"1")
    hdfs.send(signal.SIGSTOP)
    try:
        with pytest.raises(SetupError, match=rf"^{path} — {MUST} no answer for 10 s\. {NODE}"):
            files.tagged(path.within(1))
        with ThreadPoolExecutor() as threads:
            written = threads.submit(files.write, path, b"2")
            hdfs.send(signal.SIGCONT)
            written.result(60)
    finally:
        hdfs.send(signal.SIGCONT)
    assert files.tagged(path) == (b"2", "")


def test_a_try_without_an_answer_writes_nothing_when_it_goes_on_later(
    hdfs: HdfsServer, folder: StorePath, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, late = folder / "x", threading.Event()
    first, create = [True], Client.create

    def create_late(client: Client, name: str) -> FileWriter:
        if first and first.pop():
            late.wait(60)
        return create(client, name)

    monkeypatch.setattr(Client, "create", create_late)
    monkeypatch.setattr(on_hdfs, "AT_START_S", 0.2)
    files.replace(path.within(2), b"old", "4")
    assert not first
    files.replace(path, b"new", "5")
    late.set()
    for thread in threading.enumerate():
        if thread.name == "hdfs":
            thread.join(60)
    assert [name.rpartition("/")[2] for name in hdfs.files(f"/{path.key}")] == [f"{6:020d}"]
    assert files.tagged(path) == (b"new", "6")


def test_a_name_service_is_asked_at_its_next_name_node(
    hdfs: HdfsServer, folder: StorePath, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {
        "dfs.nameservices": "cluster",
        "dfs.ha.namenodes.cluster": "gone,there",
        "dfs.namenode.rpc-address.cluster.gone": "127.0.0.1:1",
        "dfs.namenode.rpc-address.cluster.there": hdfs.address.removeprefix("hdfs://"),
    }
    told = [
        f"<property><name>{key}</name><value>{value}</value></property>" for key, value in settings.items()
    ]
    (tmp_path / "hdfs-site.xml").write_text(f"<configuration>{''.join(told)}</configuration>")
    (tmp_path / "core-site.xml").write_text("<configuration></configuration>")
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    client_of.cache_clear()
    path = StorePath.of(f"hdfs://cluster/{folder.key}/x", StoreSettings())
    files.write_new(path, b"1")
    assert files.tagged(folder / "x") == files.tagged(path) == (b"1", "")


def test_a_file_that_is_being_written_is_waited_for(hdfs: HdfsServer, folder: StorePath) -> None:
    source = files.listing(folder)
    with hdfs.client.create(f"/{folder.key}/x") as file:
        file.write(b"ab")
        assert list(source.look("")) == []
        file.hsync()
        assert list(source.look("")) == ["x"]
        told = rf"^{folder}/x — {MUST} a file that is still being written\. Write it under a name that begins"
        with pytest.raises(SetupError, match=told):
            HdfsFile((folder / "x").within(1))
        with ThreadPoolExecutor() as threads:
            read = threads.submit(lambda: files.open_in(folder, "x").read())
            file.write(b"cd")
            file.close()
            assert read.result(60) == b"abcd"


def test_a_folder_of_many_files_is_listed_piece_by_piece(
    hdfs: HdfsServer, folder: StorePath, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"{day}/{hour}" for day in range(3) for hour in range(4)]
    for name in names:
        hdfs.put(f"/{folder.key}/{name}", b"1")
    monkeypatch.setattr(on_hdfs, "PAGE", 4)
    asked_for: list[str] = []
    list_status = Client.list_status

    def lost_once(client: Client, path: str, recursive: bool = False) -> Iterator[FileStatus]:
        asked_for.append(path)
        for number, one in enumerate(list_status(client, path, recursive)):
            if number == 6 and len(asked_for) == 1:
                raise OSError("Connection reset by peer")
            yield one

    monkeypatch.setattr(Client, "list_status", lost_once)
    assert sorted(files.listing(folder).look("")) == names
    assert asked_for == [f"/{folder.key}"] * 2


def test_a_server_that_is_killed_is_asked_again_until_it_is_back(hdfs: HdfsServer, folder: StorePath) -> None:
    large = bytes(range(256)) * 40_000
    files.write(folder / "large", large)
    file = HdfsFile(folder / "large")
    assert file.read(10) == large[:10]
    hdfs.kill()
    with ThreadPoolExecutor() as threads:
        written = threads.submit(files.write_new, folder / "new", b"1")
        read = threads.submit(file.readall)
        hdfs.start()
        assert (written.result(60), read.result(60)) == ("", large[10:])
    assert files.tagged(folder / "new") == (b"1", "")
    assert [name.rpartition("/")[2] for name in hdfs.files(f"/{folder.key}")] == ["large", "new"]
    files.write(folder / "large", large[:-1])
    assert file.seek(0) == 0
    file._reader = None  # as if it had found nothing where the blocks were
    with pytest.raises(
        SetupError, match="must stay as it is while it is read; got another file of that name"
    ):
        file.readall()
