"""The demo through Kafka: a broker, a producer that replays a year of flights, and the job that follows it.

``make demo-kafka`` runs it; ``SPEED=…`` sets how fast the year goes by. The job runs while the producer
sends; then the input ends, and every row of the table `matches` is compared with what the core alone finds in
the same records.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
from rich.console import Console

from examples.flights.demo import compare, results
from examples.flights.events import write_events
from examples.flights.producer import PARTITIONS, YEAR_IN_40_SECONDS, timetable
from examples.kafka.broker import FOLDER, Broker
from spark_pace.cli.run import run_shown
from spark_pace.core.local_run import run
from spark_pace.core.order import OrderSpec
from spark_pace.core.plan.plan import build_plan
from spark_pace.errors import SparkPaceError, counted
from spark_pace.io.query import read_table
from spark_pace.io.records import read_records
from spark_pace.job_file import JobSpec, KafkaSource, read_job
from spark_pace.spark.session import build_session

ROOT = Path(__file__).parents[2]
JOB = ROOT / "conf" / "jobs" / "flights_kafka.yaml"
EVENTS = ROOT / "data" / "flights"


def main(speed: float) -> int:
    """Run the whole demo; 0 if the results agree, else 1."""
    spec = read_job(JOB)
    assert isinstance(spec.source, KafkaSource)
    topic = spec.source.topics[0]
    if not EVENTS.exists():
        print(f"{counted(write_events(EVENTS), 'event')} written to {EVENTS}")
    broker = Broker(FOLDER, int(spec.source.servers.rpartition(":")[2]))
    ours = broker.pid is None
    if ours:
        broker.start()
    try:
        broker.delete_topic(topic)  # the demo's own, as its output: each time from the start
        broker.create_topic(topic, PARTITIONS)
        shutil.rmtree(spec.sink_path, ignore_errors=True)
        return _run(spec, topic, speed)
    finally:
        if ours:
            broker.stop()


def _run(spec: JobSpec, topic: str, speed: float) -> int:
    began = time.monotonic()
    spark = build_session(spec.name, spec.spark)
    try:
        with _producer(speed) as producer:
            watch = threading.Thread(target=_stop_with, args=(producer,))
            watch.start()
            followed = run_shown(spec)
            if producer.poll() is None:
                producer.terminate()  # the user wants to stop
            watch.join()
        if producer.returncode:
            return 130 if followed.stopped_by else 1
        ended = run_shown(replace(spec, trigger_us="available_now", finish=True))
        Console(highlight=False, width=None if sys.stdout.isatty() else 140).print(results(spec))
        found = read_table(spec.sink_path, "matches")
    finally:
        spark.stop()
    difference = compare("matches", found, _replayed(spec, topic))
    events, late = followed.events + ended.events, followed.late + ended.late
    print(
        f"{counted(events, 'event')}, {late:,} late, {counted(found.num_rows, 'match')}; "
        f"everything {time.monotonic() - began:.1f} s"
    )
    print(f"replay without Spark: {difference or 'identical'}")
    return 1 if difference or late else 0


def _producer(speed: float) -> subprocess.Popen[str]:
    command = [
        sys.executable,
        "-m",
        "examples.flights.producer",
        str(EVENTS),
        str(JOB),
        "--speed",
        str(speed),
    ]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)


def _stop_with(producer: subprocess.Popen[str]) -> None:
    """Pass on what the producer says; when it has sent everything, stop the job as ctrl-C does."""
    assert producer.stdout is not None
    for line in producer.stdout:
        print(line, end="", flush=True)
    if producer.wait() >= 0:
        os.kill(os.getpid(), signal.SIGINT)


def _replayed(spec: JobSpec, topic: str) -> pa.Table:
    """The matches that the core alone finds in the records as they were sent."""
    sent = timetable(EVENTS, spec.events.schema)
    names = pa.array([f"{topic}/{number}" for number in range(PARTITIONS)])
    sources = pa.DictionaryArray.from_arrays(pa.array(sent.partitions.astype(np.int32)), names)
    read = read_records(
        pa.table(
            {
                "@value": pa.array(sent.values, pa.binary()),
                "@source": sources,
                "@offset": pa.array(sent.offsets),
            }
        ),
        "json",
        spec.events.schema,
    )
    return run(build_plan(spec.rules, order=OrderSpec()), [read.events]).matches


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="The demo through Kafka.")
    parser.add_argument(
        "--speed", type=float, default=YEAR_IN_40_SECONDS, help="seconds of event time in a second"
    )
    try:
        sys.exit(main(parser.parse_args().speed))
    except SparkPaceError as error:
        print(error, file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
