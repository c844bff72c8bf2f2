"""Locks a checkpoint, so that one process uses it: two would both run a batch before Spark notices."""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from spark_pace.errors import SetupError
from spark_pace.io.files.addresses import StorePath
from spark_pace.spark.checkpoint.checkpoint import Checkpoint

if TYPE_CHECKING:  # only jobs whose checkpoint is in a store load what asks one
    from spark_pace.spark.checkpoint.lease import Lease

_PATIENCE_S = 60  # a JVM ends within seconds of its driver's end, unless the machine is very busy
_POLL_S = 0.1
_TRIES = 5


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
        from spark_pace.spark.checkpoint.lease import leased

        with leased(checkpoint.lock_file) as lease:
            yield lease
        return
    checkpoint.lock_file.parent.mkdir(parents=True, exist_ok=True)
    with open(checkpoint.lock_file, "a+", encoding="ascii") as file:
        try:
            _take(file)
        except BlockingIOError:
            file.seek(0)
            pid = file.read().strip() or "unknown"
            raise SetupError(
                f"{checkpoint} — must be used by one job at a time; got a second while process {pid} runs. "
                "Wait for it or stop it, or give this job a checkpoint of its own."
            ) from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        _await_orphan(checkpoint, patience_s)
        yield None


def _take(file: IO[str]) -> None:
    """Lock the file. `holder` has it for a moment, so that is waited for."""
    for left in reversed(range(_TRIES)):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            if not left:
                raise
            threading.Event().wait(_POLL_S)


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
    """The process that holds the lock; None if nobody does."""
    if isinstance(checkpoint.lock_file, StorePath):
        from spark_pace.spark.checkpoint.lease import LEASE_S, last_holder

        found = last_holder(checkpoint.lock_file)
        return None if found is None else Holder(*found, holds=time.time() - found[2] <= LEASE_S)
    try:
        with open(checkpoint.lock_file, encoding="ascii") as file:
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
    got = f"the JVM of a job that was killed, process {pid}, still running"
    do = "Wait for its end, or kill it."
    return SetupError(f"{checkpoint} — must be used by one job at a time; got {got}. {do}")


def _await_orphan(checkpoint: Checkpoint, patience_s: float) -> None:
    until = time.monotonic() + patience_s
    with open(str(checkpoint.jvm_lock_file), "a+", encoding="ascii") as file:
        while True:
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # Java takes this kind of lock
                return
            except OSError:
                if time.monotonic() >= until:
                    raise orphan_error(checkpoint) from None
                threading.Event().wait(_POLL_S)
