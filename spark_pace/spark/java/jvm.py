"""Spark's JVM as the job sees it: it may end at any time, and may outlive the job's process for a moment."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from spark_pace.errors import SparkPaceError
from spark_pace.spark.checkpoint.checkpoint import Checkpoint
from spark_pace.spark.checkpoint.lock import orphan_error
from spark_pace.spark.internals import GatewayError, is_ending, is_gone, jvm_of, silent_gateway


@contextmanager
def held_by_jvm(spark: SparkSession, checkpoint: Checkpoint) -> Iterator[None]:
    """Let the JVM hold the checkpoint too: if this process is killed, the JVM may go on writing for a while.

    The kernel lets go of the lock when the JVM ends. Until then `checkpoint_lock` refuses other processes.

    Raises:
        SetupError: another JVM holds it.
    """
    jvm = jvm_of(spark)
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
    send it a message. It also stays silent if the signal that stopped the job has ended the JVM.

    Args:
        stopped: says whether a signal has told the job to stop. A service manager sends its signal to all
            processes of the job, so it may have ended the JVM too: then that is no error.

    Raises:
        SparkPaceError: the JVM has ended.
    """
    ended = False
    with silent_gateway(stays=lambda: ended or (stopped() and is_ending())):
        try:
            yield
        except Exception as error:
            if stopped() and (is_gone(error) or isinstance(error, GatewayError)):
                return  # one of the last calls has failed, which only let go of what is held
            if not is_gone(error):
                raise
            ended = True
            got = "its end (killed, or out of memory). If it lacked memory, raise spark.driver.memory"
            do = "start the job again: it goes on where it stopped."
            raise SparkPaceError(f"Spark's JVM — must run as long as the job; got {got}; {do}") from error
