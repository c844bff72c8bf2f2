"""Deals with a JVM that ends before the job, or outlives the job's process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

from spark_pace.errors import SparkPaceError
from spark_pace.spark.checkpoint.checkpoint import Checkpoint
from spark_pace.spark.checkpoint.lock import orphan_error
from spark_pace.spark.internals import GatewayError, is_ending, is_gone, jvm_of, silent_gateway

if TYPE_CHECKING:  # only jobs whose checkpoint is in a store load what asks one
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
