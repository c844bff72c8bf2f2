"""Flights as they happened, sent to a topic: event time goes by faster than the clock by a factor.

The events of `examples.flights.events` in the order of their times; all of one airline go to one partition,
so that every partition is in order.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
import zlib
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from spark_pace.core.plan.rule import EventSchema
from spark_pace.errors import counted
from spark_pace.io.replay import read_all
from spark_pace.job_file import KafkaSource, read_job

PARTITIONS = 3
YEAR_IN_40_SECONDS = 800_000.0
_STEP_SECONDS = 0.05
_STEP_EVENTS = 10_000
_REPORT_SECONDS = 5.0


@dataclass(frozen=True)
class Timetable:
    """What is sent, in this order.

    Attributes:
        values: lines of JSON.
        times_us: int64, ascending.
        partitions: of each.
        offsets: of each in its partition, if the topic is new.
    """

    values: list[bytes]
    times_us: npt.NDArray[np.int64]
    partitions: npt.NDArray[np.int64]
    offsets: npt.NDArray[np.int64]


def timetable(folder: Path, schema: EventSchema) -> Timetable:
    """The events of a folder in the order of their times."""
    lines = [line for file in sorted(folder.glob("*.json")) for line in file.read_bytes().splitlines()]
    events = read_all(folder, schema).events
    times = events.column("@time").to_numpy()
    carriers = events.column("carrier").combine_chunks().dictionary_encode()
    of_carrier = np.array(
        [zlib.crc32(str(name).encode()) % PARTITIONS for name in carriers.dictionary], np.int64
    )
    partitions = of_carrier[pc.fill_null(carriers.indices, 0).to_numpy()]
    order = np.argsort(times, kind="stable")
    partitions = partitions[order]
    offsets = np.zeros(len(order), np.int64)
    for number in range(PARTITIONS):
        mine = partitions == number
        offsets[mine] = np.arange(mine.sum())
    return Timetable([lines[row] for row in order.tolist()], times[order], partitions, offsets)


def send(what: Timetable, servers: str, topic: str, speed: float) -> None:
    """Send each event when its time comes; says every few seconds how far it is.

    A producer that was stopped goes on where the topic ends.
    """
    what = _missing(what, servers, topic)
    began, told = time.monotonic(), 0.0
    pause = threading.Event()
    # nothing twice and nothing overtaken, whatever is sent again; small batches would keep the processor busy
    with KafkaProducer(
        bootstrap_servers=servers, enable_idempotence=True, linger_ms=20, batch_size=1 << 17
    ) as producer:
        sent = 0
        while sent < len(what.values):
            elapsed = time.monotonic() - began
            due = int(np.searchsorted(what.times_us, what.times_us[0] + elapsed * speed * 1e6, side="right"))
            due = min(due, sent + _STEP_EVENTS)
            for row in range(sent, due):
                producer.send(topic, what.values[row], partition=int(what.partitions[row]))
            behind, sent = due == sent + _STEP_EVENTS, due
            if elapsed - told >= _REPORT_SECONDS or sent == len(what.values):
                told = elapsed
                at = datetime.fromtimestamp(int(what.times_us[sent - 1]) / 1e6, timezone.utc)
                print(
                    f"producer: {at:%Y-%m-%d %H:%M}, "
                    f"{sent:,} of {counted(len(what.values), 'event')} sent in {elapsed:.0f} s",
                    flush=True,
                )
            if not behind:
                pause.wait(_STEP_SECONDS)


def _missing(what: Timetable, servers: str, topic: str) -> Timetable:
    """What the topic does not hold yet."""
    with KafkaConsumer(bootstrap_servers=servers) as consumer:
        ends = consumer.end_offsets([TopicPartition(topic, number) for number in range(PARTITIONS)])
    held = np.array([ends[TopicPartition(topic, number)] for number in range(PARTITIONS)])
    rows = np.flatnonzero(what.offsets >= held[what.partitions])
    return Timetable(
        [what.values[row] for row in rows.tolist()],
        what.times_us[rows],
        what.partitions[rows],
        what.offsets[rows],
    )


def main() -> int:
    """``FOLDER JOB [--speed N]``: the events of a folder to the first topic of a job."""
    parser = argparse.ArgumentParser(description="Flights as they happened, sent to Kafka.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("job", type=Path)
    parser.add_argument(
        "--speed", type=float, default=YEAR_IN_40_SECONDS, help="seconds of event time in a second"
    )
    arguments = parser.parse_args()
    spec = read_job(arguments.job)
    assert isinstance(spec.source, KafkaSource)
    send(
        timetable(arguments.folder, spec.events.schema),
        spec.source.servers,
        spec.source.topics[0],
        arguments.speed,
    )
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
