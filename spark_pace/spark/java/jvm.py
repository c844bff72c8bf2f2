"""Spark's JVM as the job sees it: it may end at any time, and may outlive the job's process for a moment."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from spark_pace.errors import SparkPaceError
from spark_pace.spark.checkpoint.checkpoint import Checkpoint
from spark_pace.spark.checkpoint.lock import orphan_error


@contextmanager
def held_by_jvm(spark: SparkSession, checkpoint: Checkpoint) -> Iterator[None]:
    """Let the JVM hold the checkpoint too: if this process is killed, the JVM may go on writing for a while.

    The kernel lets go of the lock when the JVM ends. Until then `checkpoint_lock` refuses other processes.

    Raises:
        SetupError: another JVM holds it.
    """
    jvm = spark._jvm
    assert jvm is not None
    path = checkpoint.jvm_lock_file
    file = jvm.java.io.RandomAccessFile(str(path), "rw")
    try:
        if file.getChannel().tryLock() is None:
            raise orphan_error(checkpoint)
        path.write_text(str(jvm.java.lang.ProcessHandle.current().pid()), encoding="ascii")
        yield
    finally:
        file.close()


@contextmanager
def survived_in_words(stopped: Callable[[], bool]) -> Iterator[None]:
    """Turn the end of the JVM into one error, without the traces that Py4J logs of it.

    Py4J stays silent after the JVM's end: Python lets go of the JVM's objects later, and each of them would
    send it a message. So it does if the signal that stopped the job has ended the JVM as well.

    Args:
        stopped: says whether a signal has told the job to stop. A service manager sends its signal to all
            processes of the job, so it may have ended the JVM too: then that is no error.

    Raises:
        SparkPaceError: the JVM has ended.
    """
    root, py4j = logging.getLogger(), logging.getLogger("py4j")
    level = py4j.level
    ended = False
    root.addFilter(_not_of_py4j)
    py4j.setLevel(logging.CRITICAL + 1)
    try:
        yield
    except Exception as error:
        if stopped() and (is_gone(error) or isinstance(error, Py4JError)):
            return  # it was one of the last calls, which let go of what is held
        if not is_gone(error):
            raise
        ended = True
        got = "its end (killed, or out of memory). If it lacked memory, raise spark.driver.memory"
        do = "start the job again: it goes on where it stopped."
        raise SparkPaceError(f"Spark's JVM — must run as long as the job; got {got}; {do}") from error
    finally:
        if not (ended or (stopped() and is_ending())):
            py4j.setLevel(level)
            root.removeFilter(_not_of_py4j)


def is_gone(error: BaseException | None) -> bool:
    """Whether this error, or one that led to it, says that the JVM does not answer."""
    while error is not None:
        if isinstance(error, Py4JNetworkError):
            return True
        if isinstance(error, ConnectionError) and _raised_in_py4j(error):
            return True
        error = error.__cause__ or error.__context__
    return False


def is_ending() -> bool:
    """Whether this process's JVM is ending or has ended, as after a signal to all processes of the job."""
    jvm: Any = SparkContext._jvm
    if jvm is None:
        return True
    try:
        return bool(jvm.org.apache.spark.util.ShutdownHookManager.inShutdown())
    except (Py4JError, OSError):
        return True


def end_jvm() -> None:
    """Let this process's JVM end in order, and wait for it. Its sessions are stopped already."""
    gateway: Any = SparkContext._gateway
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait()


def _raised_in_py4j(error: BaseException) -> bool:
    return any("py4j" in frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__))


def hush_updates(spark: SparkSession) -> None:
    """Let the server for accumulators print nothing if the JVM ends in the middle of a message to it."""
    server = spark.sparkContext._accumulatorServer
    server.handle_error = lambda request, client_address: None  # type: ignore[method-assign]


def hush_ends(spark: SparkSession) -> None:
    """Let a thread that fails tell the log of Spark so, which stays silent here, not standard error.

    A signal to all processes of the job ends the JVM while its threads work. What makes a query fail is told
    by the query, and a lack of memory in any thread ends the JVM.
    """
    jvm: Any = spark._jvm
    with suppress(Py4JError, TypeError):  # it is no public class of Spark's
        handler = jvm.org.apache.spark.util.SparkUncaughtExceptionHandler(False)
        jvm.java.lang.Thread.setDefaultUncaughtExceptionHandler(handler)


def _not_of_py4j(record: logging.LogRecord) -> bool:
    """A filter for the root logger: Py4J logs some of its errors there."""
    return "py4j" not in record.pathname
