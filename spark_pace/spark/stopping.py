"""How a query ends: with its input, by a signal, or by a failure, which is told in our words."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from pyspark.sql.streaming.query import StreamingQuery

from spark_pace.errors import SparkPaceError
from spark_pace.spark.failures import as_our_error, is_of_spark
from spark_pace.spark.internals import is_ending, is_gone
from spark_pace.spark.stages.merger import MergerHost

_POLL_SECONDS = 1


@dataclass
class Stop:
    """The signal that has told the job to stop, if one has."""

    event: threading.Event = field(default_factory=threading.Event)
    signal: signal.Signals | None = None

    @property
    def ended_spark(self) -> bool:
        """True if the signal has ended the JVM too, so that calls to Spark fail.

        A service manager sends its signal to all processes of the job.
        """
        return self.event.is_set() and is_ending()

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Note SIGINT and SIGTERM while inside.

        A handler may interrupt a call to the JVM, so it must not make one itself.
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
def in_our_words(stop: Stop) -> Iterator[None]:
    """Turn what fails inside into an error of ours.

    If the signal to stop has ended Spark too, a call to Spark that fails is no failure.

    Raises:
        SparkPaceError: something failed.
        GatewayError, ConnectionError: the JVM is gone; `survived_in_words` makes an error of ours of
            that.
    """
    try:
        yield
    except Exception as error:
        if isinstance(error, SparkPaceError) or is_gone(error):
            raise
        if not (is_of_spark(error) and stop.ended_spark):
            raise as_our_error(error) from error


def wait(query: StreamingQuery, merger: MergerHost, stop: Stop) -> None:
    """Wait for the end of the query, or end it when a signal says so. What fails meanwhile is raised."""
    try:
        while not stop.event.is_set() and not query.awaitTermination(_POLL_SECONDS):
            pass
        if failure := query.exception():
            raise failure
    except Exception as error:
        if not stop.ended_spark:
            raise error if is_gone(error) else as_our_error(error, merger.failure) from error
    finally:
        try:
            query.stop()
        except Exception:
            if not stop.ended_spark:
                raise
        finally:
            merger.close()
    if merger.failure is not None and not is_of_spark(merger.failure):
        raise as_our_error(merger.failure)  # the end of the query makes calls to Spark fail, and no others
