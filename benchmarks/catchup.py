"""Catching up (`make catchup`): the job reads a topic of events, beside Spark's own reader.

The reader parses the same records with `from_json` and throws them away, in the same session and with
batches of the same size. The two take turns; the ratio is the median of the turns' ratios. Batches of two
sizes tell what a batch takes whatever is in it, and how fast events are beyond that. Before any figure is
printed, the matches are compared with the core's. Memory must be bounded by the batches, not by the backlog:
over the first run it may rise by at most half above what it was after the first batches. How much it is, is
that of a process that runs the job and nothing else.

The job also reads the topic without a limit of its own, with `admission` and without, beside Spark's reader
without a limit: what each batch of the job read and took is shown. With `admission` no batch behind the
warm-up may take more than twice `batch_seconds`.
"""

from __future__ import annotations

import os
import shutil
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

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
from spark_pace.core.order.order import OrderSpec
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
SMALLER = 5  # how many times as large the batches are as those that they are compared with
FIRST_BATCHES = 5
MOST_GROWTH = 1.5
TOPIC = "backlog"
OUT = ROOT / "out" / "catchup"
ADMISSION = Admission()
ADMISSIONS = {"with admission": ADMISSION, "without": None}
READER, JOB = "Spark's Kafka reader, read only", "Kafka to Delta"
CHECKED = "the core's matches"


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
        smaller = _job(broker.servers, records // SMALLER)
        turns = [_turn(spark, spec, smaller) for _ in range(sizes.rounds)]
        curves = {name: curve(spec, ledgers, how, sizes.events) for name, how in ADMISSIONS.items()}
        at_once = [wall(lambda: _floor(spark, _job(broker.servers, None))) for _ in range(sizes.rounds)]
    finally:
        spark.stop()
    yield from _beside(turns, sizes.events)
    yield from _at_once({name: seconds for name, (_, seconds) in curves.items()}, at_once, sizes.events)
    yield Row("catchup", "growth of memory", max(memory) / after, "times", None, f"<= {MOST_GROWTH}", CHECKED)
    yield Row("memory", JOB, found["peak_mb"], "MB", None, "<= 3221", CHECKED)
    yield from _curves({name: batches for name, (batches, _) in curves.items()})


@dataclass(frozen=True)
class Turn:
    """The seconds of the job and of Spark's reader over the whole topic.

    Attributes:
        job, reader: in `BATCHES` batches.
        job_in_smaller, reader_in_smaller: in batches that are smaller by `SMALLER`.
    """

    job: float
    reader: float
    job_in_smaller: float
    reader_in_smaller: float


def _turn(spark: SparkSession, spec: JobSpec, smaller: JobSpec) -> Turn:
    return Turn(
        wall(lambda: run_anew(spec)),
        wall(lambda: _floor(spark, spec)),
        wall(lambda: run_anew(smaller)),
        wall(lambda: _floor(spark, smaller)),
    )


def _beside(turns: list[Turn], events: int) -> Iterator[Row]:
    """The job beside the reader: over the whole topic, of a batch, and of events beyond that."""
    job, reader = [turn.job for turn in turns], [turn.reader for turn in turns]
    speed, floor = (events / statistics.median(times) for times in (job, reader))
    yield Row("catchup", READER, floor, "events/s", 1.0, None, NO_RESULT)
    yield Row("catchup", JOB, speed, "events/s", ratio_in_turns(job, reader), ">= 0.8", CHECKED)
    more = BATCHES * (SMALLER - 1)  # how many batches there are more if they are smaller
    of_job = statistics.median((turn.job_in_smaller - turn.job) / more for turn in turns)
    of_reader = statistics.median((turn.reader_in_smaller - turn.reader) / more for turn in turns)
    beyond = [
        events / (statistics.median(times) - BATCHES * batch)
        for times, batch in ((job, of_job), (reader, of_reader))
    ]
    yield Row("catchup", f"{READER}: what a batch takes", of_reader, "s", 1.0, None, NO_RESULT)
    yield Row("catchup", f"{JOB}: what a batch takes", of_job, "s", of_job / of_reader, None, CHECKED)
    yield Row("catchup", f"{READER}: events beyond that", beyond[1], "events/s", 1.0, None, NO_RESULT)
    ratio = beyond[0] / beyond[1]
    yield Row("catchup", f"{JOB}: events beyond that", beyond[0], "events/s", ratio, None, CHECKED)


def _at_once(job: dict[str, float], reader: list[float], events: int) -> Iterator[Row]:
    """The job without a limit of its own beside the reader without one."""
    floor = statistics.median(reader)
    yield Row("catchup", f"{READER}: no limit", events / floor, "events/s", 1.0, None, NO_RESULT)
    for name, seconds in job.items():
        yield Row(
            "catchup",
            f"{JOB}: no limit, {name}",
            events / seconds,
            "events/s",
            floor / seconds,
            None,
            CHECKED,
        )


def _curves(curves: dict[str, list[dict[str, float]]]) -> Iterator[Row]:
    """Each batch of each way to read the backlog."""
    warm = max(warm_seconds(curves["with admission"]))
    limit = f"<= {2 * ADMISSION.batch_seconds:g}"
    yield Row("catchup", "longest warm batch with admission", warm, "s", None, limit, CHECKED)
    for name, batches in curves.items():
        for number, batch in enumerate(batches):
            size = f"{batch['records']:,} records, {batch['resident_mb']:,} MB behind it"
            case = f"{name}: batch {number}, {size}"
            yield Row("catchup", case, batch["seconds"], "s", None, None, CHECKED)


def alone(servers: str, records: int) -> dict[str, float]:
    """The memory of the job in a process that runs nothing else, and how many matches it found."""
    (done, _), peak = peak_mb(lambda: run_anew(replace(_job(servers, records), spark={})))
    return {"peak_mb": peak, "matches": matches(done).num_rows}


def _job(servers: str, records: int | None) -> JobSpec:
    spec = job("throughput_of_numbers", OUT)
    source = KafkaSource("json", servers, (TOPIC,), "earliest", records, (), {})
    events = replace(spec.events, order=OrderSpec(delay_us=1_000_000))
    return replace(spec, source=source, events=events, sink_path=str(OUT / "runs"), spark=MEMORY)


def curve(
    spec: JobSpec, ledgers: list[Path], admission: Admission | None, events: int
) -> tuple[list[dict[str, float]], float]:
    """What each batch read and took where the source sets no limit, and the resident memory after it.

    With it the seconds of the whole run.
    """
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
    seconds = wall(lambda: run_job(own, on_progress=note))
    require_equal(own, ledgers, events)
    return batches, seconds


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
    most = spec.source.max_offsets_per_trigger
    if most is not None:
        options["maxOffsetsPerTrigger"] = str(most)
    rows = spark.readStream.format("kafka").options(**options).load()
    schema = ", ".join(f"{field.name} {field.type}" for field in spec.events.schema.fields)
    parsed = rows.select(F.from_json(F.col("value").cast("string"), schema).alias("event")).select("event.*")
    checkpoint = OUT / "floor" / os.urandom(8).hex()
    parsed.writeStream.format("noop").option("checkpointLocation", str(checkpoint)).trigger(
        availableNow=True
    ).start().awaitTermination()
