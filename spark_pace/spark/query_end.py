"""Ends a query: with its input, by a signal, or by a failure, which becomes one of our errors."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from pyspark.sql.streaming.query import StreamingQuery

from spark_pace.errors import SparkPaceError
from spark_pace.spark.checkpoint.checkpoint import Checkpoint
from spark_pace.spark.failures import as_our_error, is_of_spark
from spark_pace.spark.internals import is_ending, is_gone
from spark_pace.spark.stages.merger import MergerHost

_POLL_SECONDS = 1


@dataclass
class Stop:
    """The request to stop the job, once a signal has made it.

    Attributes:
        event: set with the request.
        signal: which one it was.
        require_held: raises if another job has taken the checkpoint over; may ask a store.
        require_not_lost: raises if it is known that another job has; asks nobody.
    """

    event: threading.Event = field(default_factory=threading.Event)
    signal: signal.Signals | None = None
    require_held: Callable[[], None] = lambda: None
    require_not_lost: Callable[[], None] = lambda: None

    @property
    def ended_spark(self) -> bool:
        """True if the signal has ended the JVM too, so that calls to Spark fail.

        Service managers send their signal to all processes of a job.
        """
        return self.event.is_set() and is_ending()

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Record SIGINT and SIGTERM inside the block.

        The handler may interrupt a call to the JVM, so it must not make one itself.
        """
        if threading.current_thread() is not threading.main_thread():
            yield  # only the main thread may set handlers
            return

        def note(number: int, _frame: object) -> None:
            self.signal = signal.Signals(number)
            self.event.set()

        before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


@contextmanager
def in_our_words(stop: Stop, checkpoint: Checkpoint) -> Iterator[None]:
    """Turn errors inside the block into errors of ours.

    If the signal to stop has ended Spark too, an error of a call to Spark is ignored.

    Raises:
        SparkPaceError: something failed.
        GatewayError, ConnectionError: the JVM is gone; `survived_in_words` turns that into one of ours.
    """
    try:
        yield
    except Exception as error:
        if isinstance(error, SparkPaceError) or is_gone(error):
            raise
        if not (is_of_spark(error) and stop.ended_spark):
            raise as_our_error(error, checkpoint.path) from error


def wait(
    query: StreamingQuery,
    merger: MergerHost,
    stop: Stop,
    works: Callable[[bool], None],
    enough: Callable[[], bool] = lambda: False,
) -> None:
    """Wait until the query ends, or end it: when a signal asks for that, or once there is `enough`.

    `works` hears each second whether a batch is under way. Raises what fails meanwhile.
    """
    try:
        while not (stop.event.is_set() or enough() or query.awaitTermination(_POLL_SECONDS)):
            stop.require_not_lost()
            status = query.status
            works(status["isTriggerActive"] and status["isDataAvailable"])
        if failure := query.exception():
            raise failure
    except Exception as error:
        if not stop.ended_spark:
            if isinstance(error, SparkPaceError) or is_gone(error):
                raise
            stop.require_held()  # if another job has taken the checkpoint over, it was in the way
            raise as_our_error(error, merger.checkpoint.path, merger.failure, merger.failed_at) from error
    finally:
        try:
            query.stop()
        except Exception:
            if not stop.ended_spark:
                raise
        finally:
            merger.close()
            works(False)
    # at the end of a query only calls to Spark may fail
    if merger.failure is not None and not is_of_spark(merger.failure):
        raise as_our_error(merger.failure, merger.checkpoint.path, at=merger.failed_at)
