"""The clock of a job that reads Kafka: notes its ticks in the checkpoint, where `EndSource` finds them.

No record that was there when a tick was due may be read after the tick. So it is noted only once batches are
planned that read all of them, and goes into a later batch.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

from spark_pace.errors import one_line
from spark_pace.io.files.files import write_json
from spark_pace.spark.checkpoint.checkpoint import Checkpoint
from spark_pace.spark.checkpoint.layout import id_of
from spark_pace.spark.internals import is_gone
from spark_pace.spark.sources.end_source import TICK
from spark_pace.spark.sources.kafka_client import Offsets, client, offsets_noted
from spark_pace.spark.sources.ticks import Ticks

if TYPE_CHECKING:
    from spark_pace.job_file import Clock, KafkaSource

_LOG = logging.getLogger(__name__)
_POLL_SECONDS = 0.2
_PATIENCE_SECONDS = 2  # a question to a broker that is gone takes longer, and ends with the client


@contextmanager
def ticking(spark: SparkSession, source: KafkaSource, clock: Clock, checkpoint: Checkpoint) -> Iterator[None]:
    """Let the clock of a job tick inside the block."""
    with client(spark, source) as kafka:
        one = KafkaClock(Ticks(clock.every_us, clock.slack_us), checkpoint, kafka.ends)
        thread = threading.Thread(target=one.tick, name="clock", daemon=True)
        thread.start()
        try:
            yield
        finally:
            one.stopped.set()
            thread.join(_PATIENCE_SECONDS)


@dataclass
class KafkaClock:
    """Notes one tick after the other.

    Attributes:
        ticks: when they are due.
        checkpoint: the job's checkpoint.
        ends: asks Kafka where the partitions end.
        stopped: set to end it.
    """

    ticks: Ticks
    checkpoint: Checkpoint
    ends: Callable[[], Offsets]
    stopped: threading.Event = field(default_factory=threading.Event)

    def tick(self) -> None:
        """Note ticks until it is stopped. Where that fails, say so, but for the JVM's end, and try again."""
        while not self.stopped.is_set():
            try:
                self.note()
            except Exception as error:  # nobody else notices the end of this thread
                if not (self.stopped.is_set() or is_gone(error)):
                    got = one_line(str(error))[:200]
                    _LOG.warning("clock — must learn from Kafka where topics end; got: %s. It stands.", got)
            self.stopped.wait(self.ticks.seconds_to_next())

    def note(self) -> None:
        """Note the tick that is due now, once all that is there now is planned to be read."""
        due_us, ends = self.ticks.due_us(), self.ends()
        while not self.stopped.is_set():
            planned = offsets_noted(self.checkpoint.last_offsets())
            is_planned = all(planned.get(part, 0) >= end for part, end in ends.items())
            if is_planned and (own_id := id_of(self.checkpoint)):  # a new one gets it with its first query
                write_json(self.checkpoint.clock_file, {TICK: due_us}, own_id)
                return
            self.stopped.wait(_POLL_SECONDS)
