"""The lease of a checkpoint in an object store, and the claims of its batches."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

import obstore
import pyarrow as pa
import pytest
from deltalake import write_deltalake

from spark_pace.cli.status import status_command
from spark_pace.core.tables import UTC_TIME
from spark_pace.errors import SetupError, StateError
from spark_pace.io.files import files, object_store
from spark_pace.io.files.addresses import StorePath
from spark_pace.io.metrics import METRICS_SCHEMA
from spark_pace.spark.checkpoint import lock
from spark_pace.spark.checkpoint.batch_begin import Begin, write_begin
from spark_pace.spark.checkpoint.checkpoint import COMMIT, Checkpoint
from spark_pace.spark.checkpoint.lock import checkpoint_lock, claim, holder, mend_notes
from spark_pace.watching.subject import Subject
from tests.support.hdfs_server import HdfsServer

MATCHES = pa.schema([("rule", pa.string()), ("matched_at", UTC_TIME)])


def test_a_lease_keeps_others_out_until_it_is_given_back(
    remote: StorePath, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(lock, "_RENEWED_S", 0.1)
    checkpoint = Checkpoint(remote)
    assert holder(checkpoint) is None
    told = rf"^{remote} — must be used by one job at a time; got a second while process {os.getpid()} on "
    with checkpoint_lock(checkpoint) as held:
        assert held is not None
        told_by_status = holder(checkpoint)
        assert told_by_status is not None and told_by_status.process.startswith(f"{os.getpid()} on ")
        with pytest.raises(SetupError, match=told), checkpoint_lock(checkpoint):
            pass
        held.require()
    assert "waiting up to 20 s for its lease to end" in caplog.text
    assert holder(checkpoint) is None
    with checkpoint_lock(checkpoint):
        pass


def test_status_tells_of_a_lease_only_what_it_knows(
    remote: StorePath,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    for name, columns in (("metrics", METRICS_SCHEMA), ("matches", MATCHES)):
        write_deltalake(tmp_path / name, columns.empty_table())

    def first_line() -> str:
        status_command(Subject(str(tmp_path), checkpoint=remote))
        return capfd.readouterr().out.split("\n")[0]

    nobody = "stopped: does not run: nobody holds the lease of its checkpoint"
    assert first_line() == nobody
    with checkpoint_lock(Checkpoint(remote)):
        runs = rf"runs: as process {os.getpid()} on \S+ since \S+ \S+Z, for 0:00:\d\d; its lease was renewed "
        assert re.fullmatch(rf"{runs}0:00:\d\d ago", first_line())
        monkeypatch.setattr(lock, "LEASE_S", -9.0)
        lapsed = rf"stopped: is not known to run: process {os.getpid()} on \S+ has not renewed its lease "
        lapsed += r"since \S+ \S+Z"
        assert re.fullmatch(lapsed, first_line())
    assert first_line() == nobody


def test_a_lease_that_is_not_renewed_is_taken_over_and_its_owner_finds_out(
    remote: StorePath, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock, "LEASE_S", 1.0)
    monkeypatch.setattr(lock, "_RENEWED_S", 600.0)  # its thread is as if it were stopped
    checkpoint = Checkpoint(remote)
    with checkpoint_lock(checkpoint) as first, checkpoint_lock(checkpoint) as second:
        assert first is not None and second is not None
        second.require()
        monkeypatch.setattr(lock, "_RENEWED_S", 0.0)
        monkeypatch.setattr(lock, "LEASE_S", 0.0)
        told = rf"^{remote} — must be held by this job as long as it runs; got it taken over by process"
        with pytest.raises(SetupError, match=told):
            first.require()
        second.require()


def test_an_owner_who_has_not_heard_of_its_last_renewal_stays_the_owner(
    remote: StorePath, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock, "_RENEWED_S", 600.0)  # its thread does nothing
    path = Checkpoint(remote).lock_file
    assert isinstance(path, StorePath)
    with checkpoint_lock(Checkpoint(remote)) as held:
        assert held is not None
        unheard = {**held.content, "renewed": held.content["renewed"] + 1}
        files.replace(path, lock._bytes(unheard), held.tag)
        held.renew()
        held.renew()
        held.require_not_lost()
        files.replace(path, lock._bytes({**unheard, "owner": "another"}), held.tag)
        held.renew()
        with pytest.raises(SetupError, match="must be held by this job as long as it runs"):
            held.require_not_lost()


def test_the_lease_of_processes_that_have_ended_is_taken_at_once(remote: StorePath) -> None:
    path = Checkpoint(remote).lock_file
    assert isinstance(path, StorePath)
    gone = {**lock._content(), "processes": {"1": "never started then", "99999999": "3"}}
    files.replace(path, lock._bytes(gone), None)
    began = time.monotonic()
    with checkpoint_lock(Checkpoint(remote)):
        assert time.monotonic() - began < lock.LEASE_S / 2


def note_of(*entries: int) -> bytes:
    """Spark's note of what a batch reads, of a source for each number."""
    lines = ["v1", '{"batchTimestampMs": 1}', *(f'{{"entries": {number}}}' for number in entries)]
    return "\n".join(lines).encode()


def test_a_batch_is_claimed_once_and_spark_s_note_is_mended(remote: StorePath) -> None:
    checkpoint = Checkpoint(remote)
    own = note_of(3)
    files.write(checkpoint.offsets_of(3), own)
    claim(checkpoint, 3, lambda batch_id: own)
    claim(checkpoint, 3, lambda batch_id: own)
    with pytest.raises(SetupError, match="must be run by one job; got batch 3 with another input by another"):
        claim(checkpoint, 3, lambda batch_id: b"other")
    for changed in (b"other", note_of(4), note_of(3, 4)):
        files.write(checkpoint.offsets_of(3), changed)
        if changed != note_of(3, 4):
            mend_notes(checkpoint)
            assert files.read(checkpoint.offsets_of(3)) == own
    with pytest.raises(StateError, match="claims/3 — must be the note that Spark had of this batch"):
        mend_notes(checkpoint)


@pytest.mark.parametrize(
    "damaged",
    [note_of(8, 2)[:5], note_of(8, 2).replace(b"1}", b"1"), note_of(8), note_of(8, 2, 2), note_of(9, 2)],
    ids=["cut", "without its time", "without a source", "with one more", "of other offsets"],
)
def test_a_claim_that_is_damaged_is_told_and_spark_s_note_stays(remote: StorePath, damaged: bytes) -> None:
    checkpoint = Checkpoint(remote)
    for batch_id, note in ((2, note_of(5, 1)), (3, note_of(8, 2))):
        files.write(checkpoint.offsets_of(batch_id), note)
        claim(checkpoint, batch_id, lambda batch_id, note=note: note)  # type: ignore[misc]
    write_begin(checkpoint, 4, Begin({}, 0, offsets=files.digest(note_of(8, 2))))
    files.write(checkpoint.claim_of(3), damaged)
    told = "claims/3 — must be the note that Spark had of this batch; got another content. Restore"
    with pytest.raises(StateError, match=told):
        mend_notes(checkpoint)
    assert files.read(checkpoint.offsets_of(3)) == note_of(8, 2)
    if damaged != note_of(9, 2):  # without what the batch has written too
        files.remove(checkpoint.sequence(4))
        with pytest.raises(StateError, match=told):
            mend_notes(checkpoint)


@pytest.mark.parametrize(("claimed", "refused"), [(4, 1), (4, 2), (3, 1), (3, 2)])
def test_a_note_that_a_batch_is_done_is_written_anew_where_the_next_one_has_begun(
    remote: StorePath, claimed: int, refused: int
) -> None:
    checkpoint = Checkpoint(remote)
    for batch_id in range(4):
        note = note_of(batch_id)
        files.write(checkpoint.offsets_of(batch_id), note)
        if batch_id < claimed:
            claim(checkpoint, batch_id, lambda batch_id, note=note: note)  # type: ignore[misc]
        if batch_id not in (refused, 3):
            files.write(checkpoint.commit_of(batch_id), COMMIT)
    mend_notes(checkpoint)
    assert sorted(files.names(checkpoint.commits)) == ["0", "1", "2"]
    assert files.read(checkpoint.commit_of(refused)) == COMMIT
    assert (checkpoint.last_begun(), checkpoint.last_done()) == (3, 2)


@pytest.mark.stores
def test_files_of_hdfs_that_were_never_finished_are_removed_by_the_next_owner(
    hdfs: HdfsServer, on_hdfs: StorePath
) -> None:
    path = on_hdfs / "sequence" / "1.json"
    files.write(path, b"1")
    folder = f"/{path.parent.key}"
    left = [f".2.json.{'0' * 32}", ".3.01234567-89ab-cdef-0123-456789abcdef.tmp", ".hidden"]
    for name in left:
        hdfs.put(f"{folder}/{name}", b"a part")
    assert files.names(path.parent) == ["1.json"]
    with checkpoint_lock(Checkpoint(on_hdfs)):
        assert hdfs.files(folder) == [f"{folder}/.hidden", f"{folder}/1.json"]
    with checkpoint_lock(Checkpoint(on_hdfs)):
        pass
    assert [name.rpartition("/")[0] for name in hdfs.files(f"/{on_hdfs.key}/.lock")] == [
        f"/{on_hdfs.key}/.lock"
    ]


def test_a_store_that_is_not_there_is_told_in_one_line(in_a_store: StorePath) -> None:
    gone = StorePath.of("s3a://no-such-bucket/ck", in_a_store.settings)
    told = r"^s3a://no-such-bucket/ck — must be a place in a store that answers .* got: NoSuchBucket"
    with pytest.raises(SetupError, match=told), checkpoint_lock(Checkpoint(gone)):
        pass


def test_the_objects_of_a_checkpoint_are_those_that_it_names(in_a_store: StorePath) -> None:
    with checkpoint_lock(Checkpoint(in_a_store)):
        pass
    bucket = object_store._bucket(in_a_store)
    assert [found["path"] for page in obstore.list(bucket) for found in page] == ["jobs/of may/ck/.lock"]
