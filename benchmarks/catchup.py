"""Catching up (`make catchup`): the job reads a topic of five million events, beside Spark's own reader.

The reader parses the same records with `from_json` and throws them away, in the same session and with batches
of the same size. The two take turns; the ratio is the median of the turns' ratios. Before any figure is
printed, the matches are compared with the core's. Memory must be bounded by the batches, not by the backlog:
over the first run it may rise by at most half above what it was after the first batches.

The job also reads the topic without a limit of its own, with `admission` and without: what each batch read
and took is shown. With it, no batch behind the warm-up may take more than twice `batch_seconds`.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from benchmarks.events import write_events
from benchmarks.jobs import ROOT, job, matches, run_anew
from benchmarks.throughput import seconds
from examples.kafka.broker import Broker
from spark_pace.core.local import run
from spark_pace.core.order.order import OrderSpec
from spark_pace.core.plan.plan import build_plan
from spark_pace.io.files import read_events
from spark_pace.io.metrics import BatchReport
from spark_pace.job import run_job
from spark_pace.job_file import JobSpec, KafkaSource
from spark_pace.job_file.pace import Admission
from spark_pace.sizing.bench.results.watch import memory
from spark_pace.spark.session import build_session
from tests.long.soak.settings import MEMORY

EVENTS = 5_000_000
FILES = 20
PARTITIONS = 4
BATCH_RECORDS = 250_000
FIRST_BATCHES = 5
MOST_GROWTH = 1.5
ROUNDS = 3
TOPIC = "backlog"
OUT = ROOT / "out" / "catchup"
ADMISSION = Admission()


def main() -> int:
    """Run; 1 if memory is not bounded, or a batch takes too long."""
    shutil.rmtree(OUT, ignore_errors=True)
    broker = Broker(OUT / "broker")
    broker.start()
    try:
        result = measure(broker)
    finally:
        broker.stop()
    (OUT / "results.json").write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    print("\n".join(f"{name}: {value}" for name, value in result.items()))
    too_long = result["longest_warm_batch"] > 2 * ADMISSION.batch_seconds
    return 1 if too_long or result["memory_growth"] > MOST_GROWTH else 0


def measure(broker: Broker) -> dict[str, Any]:
    """Fill the topic, run both, compare; the figures."""
    ledgers = deal(write_events(ROOT / "data" / "bench" / "throughput_of_numbers", EVENTS, FILES, "number"))
    broker.create_topic(TOPIC, PARTITIONS)
    spec = _job(broker.servers)
    spark = build_session("catchup", MEMORY)
    try:
        fill(spark, broker.servers, ledgers)
        with watched(resident, 0.5) as sizes:
            first, after = _first_run(spec, sizes)
        found = require_equal(first, ledgers)
        _floor(spark, spec)
        rounds = [
            (seconds(lambda: run_anew(spec)), seconds(lambda: _floor(spark, spec))) for _ in range(ROUNDS)
        ]
        admitted, at_once = (curve(spec, ledgers, admission) for admission in (ADMISSION, None))
    finally:
        spark.stop()
    ours, theirs = (statistics.median(times) for times in zip(*rounds, strict=True))
    return {
        "what": (
            f"{EVENTS:,} events waiting in Kafka, {BATCH_RECORDS:,} a batch: "
            "spark_pace to Delta over Spark's Kafka reader with from_json to nothing"
        ),
        "matches": found,
        "events_per_second": round(EVENTS / ours),
        "floor_events_per_second": round(EVENTS / theirs),
        "ratio": round(statistics.median(floor / our for our, floor in rounds), 3),
        "memory_after_first_batches_mb": after >> 20,
        "memory_greatest_mb": max(sizes) >> 20,
        "memory_growth": round(max(sizes) / after, 3),
        "rounds_seconds": rounds,
        "with_admission": admitted,
        "without": at_once,
        "longest_warm_batch": max(warm_seconds(admitted)),
    }


def _job(servers: str) -> JobSpec:
    spec = job("throughput_of_numbers", OUT)
    source = KafkaSource("json", servers, (TOPIC,), "earliest", BATCH_RECORDS, (), {})
    events = replace(spec.events, order=OrderSpec(delay_us=1_000_000))
    return replace(spec, source=source, events=events, sink_path=str(OUT / "runs"), spark=MEMORY)


def curve(spec: JobSpec, ledgers: list[Path], admission: Admission | None) -> list[dict[str, float]]:
    """What each batch read and took where the source sets no limit, and the resident memory after it."""
    assert isinstance(spec.source, KafkaSource)
    batches: list[dict[str, float]] = []
    process = psutil.Process(os.getpid())
    times: list[float] = []

    def note(batch: BatchReport) -> None:
        times.append(time.monotonic())
        took = round(times[-1] - times[-2], 2) if times[1:] else round(batch.seconds, 2)
        batches.append({"records": batch.records, "seconds": took, "resident_mb": resident(process) >> 20})

    out = f"{spec.sink_path}/{'admission' if admission else 'at_once'}"
    source = replace(spec.source, max_offsets_per_trigger=None)
    own = replace(
        spec, source=source, admission=admission, sink_path=out, checkpoint_path=f"{out}/_checkpoint"
    )
    run_job(own, on_progress=note)
    require_equal(own, ledgers)
    return batches


def warm_seconds(batches: list[dict[str, float]]) -> list[float]:
    """What each batch behind the warm-up took; at least one 0."""
    return [0.0, *(batch["seconds"] for batch in batches[ADMISSION.warm_up + 1 :])]


def deal(directory: Path) -> list[Path]:
    """Deal the events' lines out in turn, a file for each partition; so each is in the order of time."""
    ledgers = [OUT / "ledger" / f"{number}.jsonl" for number in range(PARTITIONS)]
    ledgers[0].parent.mkdir(parents=True)
    for path in sorted(directory.glob("*.json")):
        lines = path.read_bytes().splitlines(keepends=True)
        for number, ledger in enumerate(ledgers):
            with open(ledger, "ab") as file:
                file.writelines(lines[number::PARTITIONS])
    return ledgers


def fill(spark: SparkSession, servers: str, ledgers: list[Path]) -> None:
    """Write each file to its partition, in the order of its lines: so line n has offset n."""
    for number, ledger in enumerate(ledgers):
        lines = spark.read.text(str(ledger)).coalesce(1).select("value", F.lit(number).alias("partition"))
        lines.write.format("kafka").option("kafka.bootstrap.servers", servers).option("topic", TOPIC).save()


@contextmanager
def watched(measure: Callable[[psutil.Process], int], seconds: float) -> Iterator[list[int]]:
    """What is measured of this process every so many seconds."""
    sizes: list[int] = []
    over = threading.Event()
    process = psutil.Process(os.getpid())

    def watch() -> None:
        while not over.wait(seconds):
            sizes.append(measure(process))

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield sizes
    finally:
        over.set()
        thread.join()


def resident(process: psutil.Process) -> int:
    """Resident bytes of a process and all that it has started."""
    found = memory(process)
    return int(found["driver_rss"] + found["jvm_rss"] + found["workers_rss"])


def _first_run(spec: JobSpec, sizes: list[int]) -> tuple[JobSpec, int]:
    """Run the job once; with it the most memory up to the end of its first batches."""
    after: list[int] = []

    def note(progress: BatchReport) -> None:
        if progress.batch_id == FIRST_BATCHES - 1:
            after.append(max(sizes))

    own = replace(
        spec, sink_path=f"{spec.sink_path}/first", checkpoint_path=f"{spec.sink_path}/first/_checkpoint"
    )
    run_job(own, on_progress=note)
    return own, after[0]


def require_equal(spec: JobSpec, ledgers: list[Path]) -> int:
    """The number of matches, if they are the core's; ends the program if not."""
    reads = [
        read_events(str(ledger), "json", spec.events.schema, f"{TOPIC}/{number}")
        for number, ledger in enumerate(ledgers)
    ]
    events = pa.concat_tables([read.events for read in reads]).unify_dictionaries()
    expected = run(build_plan(spec.rules, order=OrderSpec()), [events]).matches
    found = matches(spec).select(expected.column_names).cast(expected.schema)
    if events.num_rows != EVENTS or not found.combine_chunks().equals(expected.combine_chunks()):
        raise SystemExit(
            f"the job's {found.num_rows:,} matches differ from the core's {expected.num_rows:,} over "
            f"{events.num_rows:,} events"
        )
    return int(found.num_rows)


def _floor(spark: SparkSession, spec: JobSpec) -> None:
    """Spark reads and parses the same records, and throws the rows away."""
    assert isinstance(spec.source, KafkaSource)
    options = {
        "kafka.bootstrap.servers": spec.source.servers,
        "subscribe": TOPIC,
        "startingOffsets": "earliest",
    }
    rows = spark.readStream.format("kafka").options(**options, maxOffsetsPerTrigger=BATCH_RECORDS).load()
    schema = ", ".join(f"{field.name} {field.type}" for field in spec.events.schema.fields)
    parsed = rows.select(F.from_json(F.col("value").cast("string"), schema).alias("event")).select("event.*")
    checkpoint = OUT / "floor" / os.urandom(8).hex()
    parsed.writeStream.format("noop").option("checkpointLocation", str(checkpoint)).trigger(
        availableNow=True
    ).start().awaitTermination()


if __name__ == "__main__":
    sys.exit(main())
