"""Starts Spark's JVM through PySpark, in a folder of its own, and tells of one that fails or ends early.

If the start fails, Java's output becomes one line. A process that is killed leaves its folder behind, perhaps
with gigabytes in it. The next start removes it: each process holds a lock on its folder, so a folder without
a lock has no owner.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import re
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from spark_pace.errors import SparkPaceError
from spark_pace.spark.checkpoint.checkpoint import Checkpoint
from spark_pace.spark.checkpoint.lock import orphan_error
from spark_pace.spark.internals import GatewayError, is_ending, is_gone, jvm_of, launch_jvm, silent_gateway

if TYPE_CHECKING:
    from spark_pace.spark.checkpoint.lease import Lease


@contextmanager
def held_by_jvm(spark: SparkSession, checkpoint: Checkpoint, lease: Lease | None = None) -> Iterator[None]:
    """Let the JVM hold a lock on the checkpoint: if this process is killed, the JVM may still write a while.

    The kernel releases the lock when the JVM ends. Until then `checkpoint_lock` refuses other processes. In a
    store the lease names the JVM.

    Raises:
        SetupError: another JVM holds the lock.
    """
    jvm = jvm_of(spark)
    pid = jvm.java.lang.ProcessHandle.current().pid()
    if lease is not None:
        lease.jvm = pid
        lease.renew()
        yield
        return
    path = Path(str(checkpoint.jvm_lock_file))
    file = jvm.java.io.RandomAccessFile(str(path), "rw")
    try:
        if file.getChannel().tryLock() is None:
            raise orphan_error(checkpoint)
        path.write_text(str(pid), encoding="ascii")
        yield
    finally:
        file.close()


@contextmanager
def survived_in_words(stopped: Callable[[], bool]) -> Iterator[None]:
    """Turn the end of the JVM into one error, without the traces that Py4J logs about it.

    Py4J stays silent afterwards, because Python frees objects of the JVM later and each would log a message.
    It also stays silent if the signal that stopped the job has ended the JVM.

    Args:
        stopped: returns True if a signal has told the job to stop. Service managers send their signal to all
            processes of a job; if it has ended the JVM too, that is no error.

    Raises:
        SparkPaceError: the JVM has ended.
    """
    ended = False
    with silent_gateway(stays=lambda: ended or (stopped() and is_ending())):
        try:
            yield
        except Exception as error:
            if stopped() and (is_gone(error) or isinstance(error, GatewayError)):
                return  # one of the last calls has failed; these only release resources
            if not is_gone(error):
                raise
            ended = True
            got = "its end (killed, or out of memory). If it lacked memory, raise spark.driver.memory"
            do = "start the job again: it goes on where it stopped."
            raise SparkPaceError(f"Spark's JVM — must run as long as the job; got {got}; {do}") from error


_PREFIX = "spark-pace-session-"
_FOLDER = re.compile(re.escape(_PREFIX) + r"\w{8}", re.ASCII)


@cache
def session_folder() -> Path:
    """Make the folder of this process, once; it is removed when the process ends.

    Folders of processes that were killed are removed first.
    """
    temporary = tempfile.gettempdir()
    for entry in os.scandir(temporary):
        if _FOLDER.fullmatch(entry.name):
            with suppress(OSError):  # its process is alive, or it belongs to another user
                _remove_if_free(entry.path)
    made = tempfile.mkdtemp(prefix=f".{_PREFIX}", dir=temporary)
    with suppress(OSError):  # a file system without locks: then no process removes folders
        fcntl.flock(os.open(made, os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB)
    folder = Path(temporary, os.path.basename(made)[1:])
    os.rename(made, folder)  # only now do others see it, and it is locked
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _remove_if_free(path: str) -> None:
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        if os.fstat(folder).st_uid == os.getuid():
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path, ignore_errors=True)
    finally:
        os.close(folder)


_LAST_WORDS_SECONDS = 2
_PIECE_BYTES = 1 << 16
# lines that Java prints before the reason, and complaints of bash because of Java's missing output
_OF_NOTHING = re.compile(r": line \d+: |^Picked up |^Error occurred during initialization")
# Java prints this at every start, about a module that Spark asks for (for MLlib)
_OF_MODULES = re.compile(rb"WARNING: Using incubator modules: [^\n]*\n")


class HeldBack:
    """The standard error of a process: held back while it starts, then passed on."""

    def __init__(self) -> None:
        """Open the pipe and begin to hold back its content.

        The process writes to `end`, which must be closed in this process once the other has it.
        """
        self._read, self.end = os.pipe()
        self._lock = threading.Lock()
        self._held: bytes | None = b""
        self._reader = threading.Thread(target=self._pass_on, daemon=True)
        self._reader.start()

    def release(self) -> None:
        """Print what was held back, and print everything at once from now on."""
        with self._lock:
            held, self._held = self._held, None
            _say(_OF_MODULES.sub(b"", held or b""))

    def reason(self) -> str:
        """The reason why the process has ended, as one line."""
        self._reader.join(_LAST_WORDS_SECONDS)  # another process may still hold the pipe open
        held = _OF_MODULES.sub(b"", self._held or b"").decode("utf-8", "replace")
        told = [line.strip() for line in held.splitlines() if line.strip() and not _OF_NOTHING.search(line)]
        return f"Java's end before it was ready: {told[0] if told else 'it was killed, or gave no reason'}"

    def _pass_on(self) -> None:
        with open(self._read, "rb", buffering=0) as pipe:
            while piece := pipe.read(_PIECE_BYTES):
                with self._lock:
                    if self._held is None:
                        _say(piece)
                    else:
                        self._held += piece


def _say(piece: bytes) -> None:
    with suppress(OSError):
        os.write(2, piece)


@contextmanager
def _temporary_files_in(folder: Path) -> Iterator[None]:
    """Make temporary files of this process in `folder`, because PySpark leaves one there if it is killed."""
    usual, tempfile.tempdir = tempfile.tempdir, str(folder)
    try:
        yield
    finally:
        tempfile.tempdir = usual


def launch(settings: Mapping[str, str]) -> Any:
    """Start the JVM with these settings on its command line, and return PySpark's connection to it.

    Raises:
        RuntimeError: the JVM has ended before it was ready.
    """
    errors = HeldBack()
    try:
        with _temporary_files_in(session_folder()):
            gateway = launch_jvm(settings, errors.end)
    except PySparkRuntimeError as error:
        raise RuntimeError(errors.reason()) from error
    errors.release()
    return gateway
