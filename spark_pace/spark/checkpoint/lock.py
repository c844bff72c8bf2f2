"""Locks a checkpoint, so that one process uses it: two would both run a batch before Spark notices.

On a disk the kernel holds the lock, and releases it when its process ends. In a store there is a lease, and
claims fix what a batch reads.

The owner of the lease is an object in the store, which it renews while it lives. A kernel releases a lock
when its process ends; a store does not. So the owner writes the object anew every few seconds, and one that
has not changed for as long as a lease lasts may be taken over. Every write of it names the version that it
replaces, so of two who want it one gets it, and an owner that was paused for longer finds that out. What it
could write until then does no harm (`docs/reliability.md`). Who waits compares no clocks of two machines: it
looks how long the object stays as it is.

On a disk too, ``claims/N`` has Spark's note of what batch N reads once more, written before any task of it
runs. So a note that was changed since then is refused. In a store, Spark looks whether its note of a batch is
there, and then writes it. A job that was paused between the two, and has lost its lease meanwhile, writes
over the note of the job that went on. But the store lets nobody write over a claim: whoever finds another
content there has lost the checkpoint, and ends before its tasks begin. At a start there, Spark's notes are
mended by the claims.

The class of Spark that writes its files to S3 (`AbortableStreamBasedCheckpointFileManager`) only logs that a
file was refused, and goes on as if it were there. Notes are written again (`mend_notes`); a state cannot be,
so its batch must not be done without it.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import re
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from spark_pace.errors import FullStoreError, SetupError, StateError
from spark_pace.io.files import files
from spark_pace.io.files.addresses import AT_START_S, WHILE_RUNNING_S, AnyPath, StorePath
from spark_pace.io.files.contract import OtherFileError
from spark_pace.io.files.files import RESTORE
from spark_pace.spark.checkpoint.batch_begin import read_begin
from spark_pace.spark.checkpoint.checkpoint import COMMIT, Checkpoint, began_at, not_of_spark, offsets_in

_PATIENCE_S = 60  # a JVM ends within seconds of its driver's end, unless the machine is very busy
_LOOK_S = 0.1
_MOMENT_S = 0.5


@contextmanager
def checkpoint_lock(checkpoint: Checkpoint, patience_s: float = _PATIENCE_S) -> Iterator[Lease | None]:
    """Hold the checkpoint's lock inside the block; the kernel releases it however the process ends.

    In an object store and on HDFS there is a lease instead, which is given to the block.

    A job whose process was killed leaves a JVM behind, which holds a second lock until it ends (see
    `spark_pace.spark.java.launch`). The next job waits for that.

    Args:
        checkpoint: the checkpoint.
        patience_s: how many seconds to wait for such a JVM.

    Raises:
        SetupError: another process, or such a JVM, holds the lock; the message names its pid.
    """
    if isinstance(checkpoint.lock_file, StorePath):
        with leased(checkpoint.lock_file) as lease:
            yield lease
        return
    checkpoint.lock_file.parent.mkdir(parents=True, exist_ok=True)
    with open(checkpoint.lock_file, "a+", encoding="ascii") as file:
        # `holder` has it for a moment, so that is waited for
        if not _got(partial(fcntl.flock, file, fcntl.LOCK_EX | fcntl.LOCK_NB), _MOMENT_S):
            file.seek(0)
            raise _in_use(checkpoint.path, f"process {file.read().strip() or 'unknown'}")
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        with open(str(checkpoint.jvm_lock_file), "a+", encoding="ascii") as of_jvm:
            # Java takes this kind of lock
            if not _got(partial(fcntl.lockf, of_jvm, fcntl.LOCK_EX | fcntl.LOCK_NB), patience_s):
                raise orphan_error(checkpoint)
        yield None


def _got(take: Callable[[], None], patience_s: float) -> bool:
    """Take a lock, and wait for it so many seconds; False if another process has it still."""
    until = time.monotonic() + patience_s
    while True:
        try:
            take()
            return True
        except (BlockingIOError, PermissionError):
            if time.monotonic() >= until:
                return False
            threading.Event().wait(_LOOK_S)


def _in_use(place: AnyPath, process: str) -> SetupError:
    must, got = "must be used by one job at a time", f"a second while {process} runs"
    do = "Wait for it or stop it, or give this job a checkpoint of its own."
    return SetupError(f"{place} — {must}; got {got}. {do}")


@dataclass(frozen=True)
class Holder:
    """The process that holds a lock, or has lost it without giving it back.

    Attributes:
        process: its number; in a store with its machine, on a disk it is one of this machine.
        began: when it has taken the lock, in seconds since 1970.
        renewed: when it has renewed its lease, likewise by the store's clock; None on a disk.
        holds: False if the lease has run out, by the clock of this machine.
    """

    process: str
    began: float
    renewed: float | None = None
    holds: bool = True


def holder(checkpoint: Checkpoint) -> Holder | None:
    """The process that holds the lock, or has not given it back; None if nobody has it."""
    path = checkpoint.lock_file
    if isinstance(path, StorePath):
        there = _read(path)
        written = files.stat(path) if there is not None and there[0]["processes"] else None
        if there is None or written is None:
            return None
        process, renewed = f"{there[0]['pid']} on {there[0]['host']}", written.changed_ns / 1e9
        return Holder(process, float(there[0]["since"]), renewed, time.time() - renewed <= LEASE_S)
    try:
        with open(path, encoding="ascii") as file:
            began = os.fstat(file.fileno()).st_mtime
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return Holder(file.read().strip() or "unknown", began)
    except FileNotFoundError:
        pass
    return None


def orphan_error(checkpoint: Checkpoint) -> SetupError:
    """The error if the JVM of a killed job still holds the checkpoint."""
    pid = Path(str(checkpoint.jvm_lock_file)).read_text(encoding="ascii") or "unknown"
    return _in_use(checkpoint.path, f"the JVM of a job that was killed, process {pid},")


def claim(checkpoint: Checkpoint, batch_id: int, planned: Callable[[int], bytes | None]) -> bytes:
    """Claim a batch for what this job is about to read in it.

    Args:
        checkpoint: the checkpoint.
        batch_id: the batch.
        planned: gives Spark's note of what the batch reads, from its memory; None if Spark has none there.

    Returns:
        Spark's note.

    Raises:
        StateError: Spark has none.
        SetupError: another job has claimed it, to read something else.
    """
    path = checkpoint.claim_of(batch_id)
    if not isinstance(path, StorePath):  # on a disk nobody else can have it, and a start has compared them
        noted = checkpoint.note_of(batch_id)
        if not noted:
            raise not_of_spark(checkpoint.offsets_of(batch_id), "no file")
        if files.read(path) != noted:  # a machine that stops may lose a note and keep its claim
            files.write(path, noted)
        return noted
    note = planned(batch_id)
    if note is None:
        must, do = "must be planned by the query that runs it", "Start the job again."
        raise StateError(f"{checkpoint.offsets_of(batch_id)} — {must}; got no such note. {do}")
    try:
        files.write_new(path, note)
    except OtherFileError:
        must, got = "must be run by one job", f"batch {batch_id} with another input by another job"
        do = "Let that job run; start this one again if it has ended."
        raise SetupError(f"{checkpoint} — {must}; got {got}. {do}") from None
    return note


def mend_notes(checkpoint: Checkpoint) -> None:
    """Write Spark's notes of the last batches anew, where another job has changed them or they are missing.

    A batch only begins once
    the batch before it is done. The notes of the last two that are done are needed; a third may be under way.

    Raises:
        StateError: what was claimed is damaged.
    """
    if not isinstance(checkpoint.path, StorePath):
        return
    last = sorted({*checkpoint.begun(), *checkpoint.claimed()})[-3:]
    for batch_id in last[-2:]:
        _mend_offsets(checkpoint, batch_id)
    done = files.names(checkpoint.commits)
    for batch_id in last[:-1]:
        if str(batch_id) not in done:
            files.write(checkpoint.commit_of(batch_id), COMMIT)


def _mend_offsets(checkpoint: Checkpoint, batch_id: int) -> None:
    """Write Spark's note of what a batch reads as it was claimed.

    All notes of a query are of as many sources, and what a batch has written says which note it was of.
    """
    claimed = files.read(checkpoint.claim_of(batch_id))
    noted = files.read(checkpoint.offsets_of(batch_id))
    if claimed is None or claimed == noted:
        return
    before = files.read(checkpoint.offsets_of(batch_id - 1)) if batch_id else None
    following = read_begin(checkpoint, batch_id + 1)
    known = None if following is None else following.offsets
    if known not in (None, checkpoint.offsets_digest(batch_id, claimed)) or not _may_replace(
        claimed, before or noted or b""
    ):
        must, got = "must be the note that Spark had of this batch", "another content"
        raise StateError(f"{checkpoint.claim_of(batch_id)} — {must}; got {got}. {RESTORE}")
    files.write(checkpoint.offsets_of(batch_id), claimed)


def _may_replace(claimed: bytes, other: bytes) -> bool:
    """True if this is a note of Spark's, of as many sources as another note of the query is."""
    sources = _sources(claimed)
    return sources > 0 and began_at(claimed) is not None and _sources(other) in (0, sources)


def _sources(note: bytes) -> int:
    """Of how many sources a note of Spark's is; 0 if it is none."""
    try:
        return len(offsets_in(note.decode()))
    except ValueError:
        return 0


def require_states(checkpoint: Checkpoint, batch_id: int, slots: int) -> None:
    """Refuse to go on behind a batch whose states have not reached S3; elsewhere Spark itself does.

    S3 is asked for a list, by one request for each thousand files.

    Args:
        checkpoint: the checkpoint.
        batch_id: the batch, whose tasks have ended.
        slots: how many have a state.

    Raises:
        SetupError: one is not there.
    """
    path = checkpoint.path / "state" / "0"
    if not isinstance(path, StorePath) or not path.is_in_s3:
        return
    of_batch = re.compile(rf"(\d+)/{batch_id + 1}(?:_[^/.]*)?\.\w+")
    found = map(of_batch.fullmatch, files.listing(path).look(""))
    there = len({file[1] for file in found if file})
    if there < slots:
        must = f"must have Spark's state of batch {batch_id} for each of {slots} slots"
        got = f"it for {there}: the store has refused the others"
        do = "Start the job again: it does the batch again."
        raise SetupError(f"{checkpoint.path / 'state'} — {must}; got {got}. {do}")


_LOG = logging.getLogger(__name__)
LEASE_S, _RENEWED_S = 20.0, 5.0
_POLL_S = 0.5
_UNKNOWN = "?"
_STARTED_AT = 21  # of the fields of `/proc/PID/stat`, counted from 0


@dataclass
class Lease:
    """The lock of a checkpoint, held by this process.

    Attributes:
        path: the object.
        content: what it says now.
        tag: the version of it that this process wrote last.
        jvm: the number of the job's JVM, which may outlive this process; None before it is started.
    """

    path: StorePath
    content: dict[str, Any]
    tag: str
    jvm: int | None = None
    _renewed_s: float = field(default_factory=lambda: _now_s())
    _writing: threading.Lock = field(default_factory=threading.Lock)
    _ended: threading.Event = field(default_factory=threading.Event)
    _lost: str | None = None

    def require(self) -> None:
        """Refuse to go on if another process has taken the checkpoint over.

        Asks the store only where this process has not done so for as long as the lease lasts.

        Raises:
            SetupError: it has.
        """
        if self._lost is None and _now_s() - self._renewed_s > LEASE_S - _RENEWED_S:
            self.renew(WHILE_RUNNING_S)
        self.require_not_lost()

    def require_not_lost(self) -> None:
        """Refuse to go on if it is known that another process has taken the checkpoint over.

        Raises:
            SetupError: it has.
        """
        if self._lost is not None:
            raise SetupError(self._lost)

    def renew(self, patience_s: int = AT_START_S) -> None:
        """Write the object anew; if it is another process's by now, remember that it is lost.

        Raises:
            SetupError: the store has not answered for so many seconds.
        """
        with self._writing:
            if self._lost is not None or self._ended.is_set():
                return
            began_s = _now_s()
            self.content["renewed"] += 1
            self.content["processes"] = _processes(self.jvm)
            try:
                self._write(patience_s)
                self._renewed_s = began_s
            except OtherFileError:
                self._lost = self._taken()

    def keep(self) -> None:
        """Renew it until it is given back. A store that does not answer is asked again."""
        while not self._ended.wait(_RENEWED_S):
            try:
                self.renew()
            except SetupError as error:
                if isinstance(error, FullStoreError):  # Spark asks a full one again for minutes
                    self._lost = str(error)
                    return
                _LOG.warning("%s The lease of the checkpoint is not renewed meanwhile.", error)
            if self._lost is not None:
                return

    def give_back(self) -> None:
        """Say that nobody holds the checkpoint, unless another process does."""
        with self._writing:
            self._ended.set()
            if self._lost is None:
                self.content |= {"renewed": self.content["renewed"] + 1, "processes": {}}
                with suppress(OtherFileError, SetupError):
                    self._write(AT_START_S)

    def _write(self, patience_s: int) -> None:
        """Write the object in place of the one that this process wrote last.

        Raises:
            OtherFileError: another process has written it.
        """
        content, path = _bytes(self.content), self.path.within(patience_s)
        try:
            self.tag = files.replace(path, content, self.tag)
        except OtherFileError:
            there = _read(self.path)
            if there is None or there[0].get("owner") != self.content["owner"]:
                raise
            # it was written by an earlier try, whose answer was lost
            self.tag = files.replace(path, content, there[1])

    def _taken(self) -> str:
        there = _read(self.path)
        by = "nobody" if there is None else _named(there[0])
        must, got = "must be held by this job as long as it runs", f"it taken over by {by}"
        do = "Let that job run; start this one again if it has ended."
        return f"{self.path.parent} — {must}; got {got}. {do}"


@contextmanager
def leased(path: StorePath) -> Iterator[Lease]:
    """Hold the lock that an object is, inside the block.

    Raises:
        SetupError: another process holds it.
    """
    files.reach(path.parent)  # what is wrong with the place is told first
    lease = _take(path)
    if path.is_on_hdfs:
        from spark_pace.io.files.hdfs import remove_unfinished  # a store has no such files

        remove_unfinished(path.parent)
    thread = threading.Thread(target=lease.keep, name="lease", daemon=True)
    thread.start()
    try:
        yield lease
    finally:
        lease.give_back()


def _take(path: StorePath) -> Lease:
    """Become the owner: at once if there is none or it has ended, else when its lease has run out."""
    told, seen, until_s = False, None, 0.0
    while True:
        there = _read(path)
        mine = _content()
        with suppress(OtherFileError):  # another process was faster
            if there is None:
                return Lease(path, mine, files.replace(path, _bytes(mine), None))
            if _is_over(there[0]):
                return Lease(path, mine, files.replace(path, _bytes(mine), there[1]))
            if seen is not None and seen != there[1]:
                raise _in_use(path.parent, _named(there[0]))
            if seen is not None and _now_s() >= until_s:
                return Lease(path, mine, files.replace(path, _bytes(mine), there[1]))
        if seen is None and there is not None:
            seen, until_s = there[1], _now_s() + LEASE_S
        if not told and there is not None:
            what = f"it is held by {_named(there[0])}, perhaps one that was killed"
            _LOG.warning("%s — %s; waiting up to %.0f s for its lease to end.", path.parent, what, LEASE_S)
            told = True
        threading.Event().wait(_POLL_S)


def _named(there: dict[str, Any]) -> str:
    return f"process {there['pid']} on {there['host']}"


def _content() -> dict[str, Any]:
    return {
        "owner": uuid.uuid4().hex,
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "machine": _machine(),
        "processes": _processes(None),
        "since": time.time(),
        "renewed": 0,
    }


def _is_over(there: dict[str, Any]) -> bool:
    """True if the owner has given it back, or is known to have ended: its processes were of this machine."""
    if there["machine"] != _machine() and there["processes"]:
        return False
    return all(_started(int(pid)) not in (started, _UNKNOWN) for pid, started in there["processes"].items())


def _processes(jvm: int | None) -> dict[str, str]:
    """The job's processes that may write, by their numbers: when the machine started each."""
    pids = [os.getpid(), *([] if jvm is None else [jvm])]
    return {str(pid): _started(pid) or "" for pid in pids}


def _started(pid: int) -> str | None:
    """When a process of this machine was started, in the kernel's own measure; None if there is none.

    `_UNKNOWN` if there is one of which the kernel does not tell it, such as another user's.
    """
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return _UNKNOWN if _is_there(pid) else None
    state, *fields = text.rpartition(")")[2].split()
    return None if state == "Z" else fields[_STARTED_AT - 3]


def _is_there(pid: int) -> bool:
    """True if this machine has a process of this number."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _machine() -> str:
    """What only processes that see each other have alike; empty where the kernel does not tell."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')} {socket.gethostname()}"
    except OSError:
        return uuid.uuid4().hex


def _read(path: StorePath) -> tuple[dict[str, Any], str] | None:
    try:
        found = files.tagged(path)
        there: dict[str, Any] = json.loads(found[0])
        return {"host": "?", "pid": "?", "machine": "", "processes": {}, **there}, found[1]
    except FileNotFoundError:
        return None
    except (ValueError, TypeError) as error:
        do = "Remove it if no job uses the checkpoint."
        raise SetupError(f"{path} — must say who uses the checkpoint; got other text. {do}") from error


def _bytes(content: dict[str, Any]) -> bytes:
    return json.dumps(content).encode()


def _now_s() -> float:
    """Seconds of a clock that also goes on while this process, or the machine, is stopped."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
