"""Tables in an object store: the same as in a folder, by a server that speaks S3; also while it fails."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from examples.cluster.store_server import StoreServer
from spark_pace.errors import StateError
from spark_pace.io import delta_tables
from spark_pace.io.delta_log import DeltaLog
from spark_pace.io.delta_tables import DeltaTables
from spark_pace.io.event_files import stored_rows
from spark_pace.io.files.addresses import AnyPath, StorePath, StoreSettings
from spark_pace.io.own_tables import require_columns
from spark_pace.io.query import read_table
from tests.support.faulty_store import FAULTS, LOSES_ANSWER, FaultyStore

SCHEMA = pa.schema([("rule", pa.string()), ("out_seq", pa.int64()), ("at", pa.timestamp("us", "UTC"))])
KINDS = ("folder", "store")
BATCHES = 15


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> AnyPath:
    if request.param == "folder":
        return tmp_path / "out of it"
    server: StoreServer = request.getfixturevalue("server")
    return in_store(server, f"s3a://{request.getfixturevalue('bucket')}/out of it", server.endpoint)


def in_store(server: StoreServer, address: str, endpoint: str) -> StorePath:
    return StorePath.of(
        address, StoreSettings.of(address, {}, server.environment | {"AWS_ENDPOINT_URL": endpoint})
    )


def rows(first: int, count: int = 1) -> pa.Table:
    numbers = range(first, first + count)
    return pa.table({"rule": ["a"] * count, "out_seq": numbers, "at": numbers}, SCHEMA)


def numbers(place: AnyPath) -> list[int]:
    return sorted(read_table(place, "matches", ["out_seq"])["out_seq"].to_pylist())


def made(place: AnyPath) -> DeltaTables:
    tables = DeltaTables(place, "app")
    tables.prepare({"matches": SCHEMA})
    tables.claim()
    return tables


def test_an_append_is_done_once(place: AnyPath) -> None:
    tables = made(place)
    tables.append("matches", rows(0, 2), 0)
    for again in (tables, made(place)):
        again.append("matches", rows(0, 2), 0)
    again.append("matches", SCHEMA.empty_table(), 1)
    tables.append("matches", rows(5), 1)  # another process has done it meanwhile
    assert numbers(place) == [0, 1]
    assert made(place).written(["matches", "late"]) == {"matches": 1}
    assert again.last_batch("late") == -1 and again.last_batch("matches") == 1


def test_a_log_is_read_commit_by_commit_and_from_its_checkpoints(place: AnyPath) -> None:
    tables = made(place)
    for batch in range(25):
        tables.append("matches", rows(batch), batch)
    log = DeltaLog(place / "matches")
    assert log.versions()[-1] == 25 and log.has(25) and not log.has(26)
    found = [stored_rows(log.folder, file, ["out_seq"], {})["out_seq"].to_pylist() for file in log.files(25)]
    assert found == [[number] for number in range(25)]
    assert numbers(place) == [*range(25)]
    tables.append_missing("matches", rows(24, 3), ["rule", "out_seq"])
    assert numbers(place) == [*range(27)]


def test_an_append_to_a_table_of_a_store_reads_no_commit_again_until_another_writes(
    server: StoreServer, bucket: str
) -> None:
    proxy = FaultyStore(int(server.endpoint.rpartition(":")[2]), 0.0, 1)
    place = in_store(server, f"s3a://{bucket}/out", proxy.endpoint)
    tables, asked = made(place), list[int]()
    for batch in range(12):
        if batch == 8:
            DeltaTables(place, "other").append("matches", rows(100), 0)
        before = proxy.requests
        tables.append("matches", rows(batch), batch)
        asked.append(proxy.requests - before)
    proxy.close()
    assert asked[1:8] + asked[10:] == [8] * 9
    # the other's commit too is read twice; then all ten, newest first and many at once, until one of ours
    # is found: the two newest at least, mostly all, of which one may come when the next append has begun
    assert asked[8] >= 8 + 2 + 2
    assert asked[8] + asked[9] <= 8 + 2 + 10 + 8
    assert numbers(in_store(server, str(place), server.endpoint)) == [*range(12), 100]


def test_columns_are_added_and_others_refused(place: AnyPath) -> None:
    tables = made(place)
    tables.append("matches", rows(0), 0)
    tables.prepare({"matches": pa.schema([*SCHEMA, ("total", pa.float64())])})
    tables.append("matches", rows(1).append_column("total", pa.array([0.5])), 1)
    assert read_table(place, "matches").sort_by("out_seq")["total"].to_pylist() == [None, 0.5]
    with pytest.raises(StateError, match=r"/matches — must have a column rule of type BIGINT; got rule of"):
        require_columns(place, {"matches": pa.schema([("rule", pa.int64())])})


def test_a_sink_has_one_owner_as_long_as_its_tables_are_there(
    request: pytest.FixtureRequest, place: AnyPath
) -> None:
    tables = made(place)
    tables.append("matches", rows(0), 0)
    tables.claim()
    with pytest.raises(StateError, match="must be written by this checkpoint alone; got the mark"):
        DeltaTables(place, "other").claim()
    with pytest.raises(StateError, match="must be written by this checkpoint alone; got the mark"):
        DeltaTables(place, "other").written(["matches"])
    remove(request, place / "_owner")
    with pytest.raises(StateError, match="_owner — must stay as long as a job writes to it"):
        tables.claim()


def remove(request: pytest.FixtureRequest, place: AnyPath, ending: str = "") -> None:
    """Remove files of a table by their ending."""
    folder = Path(str(place))
    if isinstance(place, StorePath):
        server: StoreServer = request.getfixturevalue("server")
        folder = server.data / str(place).removeprefix("s3a://")
    for path in folder.rglob(f"*{ending}"):
        if path.is_file():
            path.unlink()


def test_a_table_that_has_lost_a_file_is_refused(request: pytest.FixtureRequest, place: AnyPath) -> None:
    tables = made(place)
    tables.append("matches", rows(0), 0)
    remove(request, place / "matches", ".parquet")
    with pytest.raises(StateError, match=r"matches — must have all its files as they were written; got none"):
        made(place).written(["matches"])
    with pytest.raises(StateError, match="must have all its files as they were written"):
        numbers(place)


@pytest.mark.stores
@pytest.mark.parametrize("fault", FAULTS)
def test_whatever_fails_between_job_and_store_each_batch_is_written_once(
    server: StoreServer, bucket: str, fault: str
) -> None:
    write_while_it_fails(server, bucket, fault, 0.1, "")


def test_a_commit_whose_answer_is_lost_is_met_in_the_log(
    server: StoreServer, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = list[str]()
    write = delta_tables.write_deltalake

    def noted(*args: Any, **options: Any) -> None:
        try:
            write(*args, **options)
        except Exception as error:
            failed.append(type(error).__name__)
            raise

    monkeypatch.setattr(delta_tables, "write_deltalake", noted)
    write_while_it_fails(server, bucket, LOSES_ANSWER, 0.5, "^PUT .*/_delta_log/")
    assert "CommitFailedError" in failed


def write_while_it_fails(server: StoreServer, bucket: str, fault: str, share: float, of: str) -> None:
    """Write batches, and hold what is there against them."""
    proxy = FaultyStore(int(server.endpoint.rpartition(":")[2]), share, 7, (fault,), of)
    address = f"s3a://{bucket}/out"
    sound = in_store(server, address, server.endpoint)
    tables = made(in_store(server, address, proxy.endpoint))
    for batch in range(BATCHES):
        tables.append("matches", rows(batch), batch)
        tables.claim()
    proxy.close()
    assert proxy.happened[fault] > 5
    assert numbers(sound) == [*range(BATCHES)]
    log = DeltaLog(sound / "matches")
    assert log.versions() == [*range(BATCHES + 1)]
    assert made(sound).written(["matches"]) == {"matches": BATCHES - 1}
