"""Catching up (`make catchup`): the job reads a topic of events, beside Spark's own reader.

The reader parses the same records with `from_json` and throws them away, in the same session and with batches
of the same size. The two take turns; the ratio is the median of the turns' ratios. Before any figure is
printed, the matches are compared with the core's. Memory must be bounded by the batches, not by the backlog:
over the first run it may rise by at most half above what it was after the first batches. How much it is, is
that of a process that runs the job and nothing else.

The job also reads the topic without a limit of its own, with `admission` and without: what each batch read
and took is shown. With it, no batch behind the warm-up may take more than twice `batch_seconds`.
"""

from __future__ import annotations

import os
import shutil
import statistics
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Literal

import psutil
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from benchmarks.events import write_events
from benchmarks.jobs import DATA, ROOT, job, matches, run_anew
from benchmarks.processes import alone as alone_in
from benchmarks.processes import peak_mb, resident, watched
from benchmarks.rows import NO_RESULT, Row, Sizes, ratio_in_turns, require, wall
from examples.kafka.broker import Broker
from spark_pace.core.local_run import run
from spark_pace.core.order import OrderSpec
from spark_pace.core.plan.plan import build_plan
from spark_pace.io.event_files import read_events
from spark_pace.io.metrics import BatchReport
from spark_pace.job import run_job
from spark_pace.job_file import JobSpec, KafkaSource
from spark_pace.job_file.pace import Admission
from spark_pace.spark.session import build_session
from tests.long.soak.settings import MEMORY

FILES = 20
PARTITIONS = 4
BATCHES = 20
FIRST_BATCHES = 5
MOST_GROWTH = 1.5
TOPIC = "backlog"
OUT = ROOT / "out" / "catchup"
ADMISSION = Admission()
ADMISSIONS: dict[str, Admission | Literal["off"]] = {"with admission": ADMISSION, "without": "off"}


def measure(sizes: Sizes) -> Iterator[Row]:
    """Fill the topic, run both, compare; then the job without a limit of its own."""
    shutil.rmtree(OUT, ignore_errors=True)
    broker = Broker(OUT / "broker")
    broker.start()
    try:
        yield from _measure(broker, sizes)
    finally:
        broker.stop()


def _measure(broker: Broker, sizes: Sizes) -> Iterator[Row]:
    records = sizes.events // BATCHES
    ledgers = deal(write_events(DATA / f"stream-{sizes.events}", sizes.events, FILES, "number"))
    broker.create_topic(TOPIC, PARTITIONS)
    spec = _job(broker.servers, records)
    spark = build_session("catchup", MEMORY)
    try:
        fill(spark, broker.servers, ledgers)
        with watched(resident, 0.5) as memory:
            first, after = _first_run(spec, memory)
        require_equal(first, ledgers, sizes.events)
        found = alone_in("catchup", broker.servers, records)
        require(found["matches"] == matches(first).num_rows, f"catchup: {found['matches']} matches, alone")
        _floor(spark, spec)
        turns = range(sizes.rounds)
        ours, floors = zip(
            *((wall(lambda: run_anew(spec)), wall(lambda: _floor(spark, spec))) for _ in turns), strict=True
        )
        curves = {name: curve(spec, ledgers, how, sizes.events) for name, how in ADMISSIONS.items()}
    finally:
        spark.stop()
    checked = "the core's matches"
    speed, floor = (sizes.events / statistics.median(times) for times in (ours, floors))
    yield Row(
        "catchup",
        "Spark's Kafka reader, read only",
        floor,
        "events/s",
        1.0,
        None,
        NO_RESULT,
    )
    yield Row("catchup", "Kafka to Delta", speed, "events/s", ratio_in_turns(ours, floors), ">= 0.8", checked)
    yield Row("catchup", "growth of memory", max(memory) / after, "times", None, f"<= {MOST_GROWTH}", checked)
    yield Row("memory", "Kafka to Delta", found["peak_mb"], "MB", None, "<= 3221", checked)
    yield from _curves(curves, checked)


def _curves(curves: dict[str, list[dict[str, float]]], checked: str) -> Iterator[Row]:
    """Each batch of each way to read the backlog."""
    warm = max(warm_seconds(curves["with admission"]))
    limit = f"<= {2 * ADMISSION.batch_seconds:g}"
    yield Row("catchup", "longest warm batch with admission", warm, "s", None, limit, checked)
    for name, batches in curves.items():
        for number, batch in enumerate(batches):
            size = f"{batch['records']:,} records, {batch['resident_mb']:,} MB behind it"
            case = f"{name}: batch {number}, {size}"
            yield Row("catchup", case, batch["seconds"], "s", None, None, checked)


def alone(servers: str, records: int) -> dict[str, float]:
    """The memory of the job in a process that runs nothing else, and how many matches it found."""
    (done, _), peak = peak_mb(lambda: run_anew(replace(_job(servers, records), spark={})))
    return {"peak_mb": peak, "matches": matches(done).num_rows}


def _job(servers: str, records: int) -> JobSpec:
    spec = job("throughput_of_numbers", OUT)
    source = KafkaSource("json", servers, (TOPIC,), "earliest", records, (), {})
    events = replace(spec.events, order=OrderSpec(delay_us=1_000_000))
    return replace(spec, source=source, events=events, sink_path=str(OUT / "runs"), spark=MEMORY)


def curve(
    spec: JobSpec, ledgers: list[Path], admission: Admission | Literal["off"], events: int
) -> list[dict[str, float]]:
    """What each batch read and took where the source sets no limit, and the resident memory after it."""
    assert isinstance(spec.source, KafkaSource)
    batches: list[dict[str, float]] = []
    process = psutil.Process(os.getpid())
    times: list[float] = []

    def note(batch: BatchReport) -> None:
        times.append(time.monotonic())
        took = round(times[-1] - times[-2], 2) if times[1:] else round(batch.seconds, 2)
        batches.append({"records": batch.records, "seconds": took, "resident_mb": resident(process) >> 20})

    out = f"{spec.sink_path}/{'at_once' if admission == 'off' else 'admission'}"
    source = replace(spec.source, max_offsets_per_trigger=None)
    own = replace(
        spec, source=source, admission=admission, sink_path=out, checkpoint_path=f"{out}/_checkpoint"
    )
    run_job(own, on_progress=note)
    require_equal(own, ledgers, events)
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


def require_equal(spec: JobSpec, ledgers: list[Path], count: int) -> None:
    """End the program if the matches are not the core's, or `count` is not how many events there were."""
    reads = [
        read_events(str(ledger), "json", spec.events.schema, f"{TOPIC}/{number}")
        for number, ledger in enumerate(ledgers)
    ]
    events = pa.concat_tables([read.events for read in reads]).unify_dictionaries()
    expected = run(build_plan(spec.rules, order=OrderSpec()), [events]).matches
    found = matches(spec).select(expected.column_names).cast(expected.schema)
    if events.num_rows != count or not found.combine_chunks().equals(expected.combine_chunks()):
        raise SystemExit(
            f"the job's {found.num_rows:,} matches differ from the core's {expected.num_rows:,} over "
            f"{events.num_rows:,} events"
        )


def _floor(spark: SparkSession, spec: JobSpec) -> None:
    """Spark reads and parses the same records, and throws the rows away."""
    assert isinstance(spec.source, KafkaSource)
    options = {
        "kafka.bootstrap.servers": spec.source.servers,
        "subscribe": TOPIC,
        "startingOffsets": "earliest",
    }
    rows = (
        spark.readStream.format("kafka")
        .options(**options, maxOffsetsPerTrigger=spec.source.max_offsets_per_trigger)
        .load()
    )
    schema = ", ".join(f"{field.name} {field.type}" for field in spec.events.schema.fields)
    parsed = rows.select(F.from_json(F.col("value").cast("string"), schema).alias("event")).select("event.*")
    checkpoint = OUT / "floor" / os.urandom(8).hex()
    parsed.writeStream.format("noop").option("checkpointLocation", str(checkpoint)).trigger(
        availableNow=True
    ).start().awaitTermination()
