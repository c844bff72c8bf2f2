"""Four patterns over one stream: the whole job from JSON and from Parquet to Delta, the core, and the peers.

The stream is that of `benchmarks.events`; no rule has a key. Timed on Spark's side: from the start of the
query until it has ended, with its planning, in a warm session such as ``spark-pace run`` starts, in turns
with Spark's own reader of the same files into nothing, which is the floor: it has a session whose JVM
compiles thoroughly. The core: processor seconds, from the columns of all events to the numbered matches. The
peers run behind it (`benchmarks.peer_runs`) and throw their matches away. The matches of every run are
compared with the core's before a figure is given. The memory of a job is that of a process which runs nothing
else, as ``spark-pace run`` does: in the other one, Spark's own reader lets the JVM grow.
"""

from __future__ import annotations

import shutil
import statistics
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from benchmarks.core_runs import rules_of
from benchmarks.events import write_events
from benchmarks.jobs import DATA, OUT, RunJob, job, job_process, read_only, require_equal, run_anew
from benchmarks.peer_runs import DEFAULT_INTERVAL, Found, PeerRun, peer_runs
from benchmarks.processes import alone as alone_in
from benchmarks.processes import peak_mb
from benchmarks.rows import NO_RESULT, Row, Sizes, processor, ratio_in_turns, wall
from spark_pace.core.local_run import run
from spark_pace.core.order import OrderSpec
from spark_pace.core.plan.plan import build_plan
from spark_pace.core.plan.rule import Rule
from spark_pace.core.tables import Ints
from spark_pace.io.replay import read_all
from spark_pace.job_file import JobSpec
from spark_pace.spark.session import build_session

FILES = 20
PAIR = "a: etype = 'A', b: etype = 'B'"
PATTERNS = {
    "skip_past_last": f"pattern: {{sequence: [{PAIR}]}}, context: 'next, selected'",
    "each": f"pattern: {{sequence: [{PAIR}]}}, context: 'each, zero'",
    "four": (f"pattern: {{sequence: [{PAIR}, c: etype = 'C', d: etype = 'D']}}, context: 'next, selected'"),
    "where": f"pattern: {{sequence: [{PAIR}]}}, context: 'each, zero', where: b.value > a.value",
}
NOTHING = "pattern: {sequence: [a: etype = 'Y', b: etype = 'Z']}, context: 'each, zero'"
CASES = {**PATTERNS, "nothing": NOTHING}
OFFSET_BASIS, PRIME, MIX = (
    np.uint64(number) for number in (0xCBF29CE484222325, 0x100000001B3, 0x9E3779B97F4A7C15)
)
CORE, JSON, TEXT, PARQUET = (
    "core in memory",
    "spark_pace, JSON files to Delta",
    "spark_pace, JSON files to Delta, time as text",
    "spark_pace, Parquet files to Delta",
)
SPEED = "events/s"
CHECKED = "the core's matches"
GIB_3 = 3 * 1024**3 / 1e6

Speeds = dict[tuple[str, str], float]  # events a second, by engine and pattern


def measure(sizes: Sizes) -> Iterator[Row]:
    """The rows of all engines, then the ratios between them that have targets."""
    events = sizes.events
    folder = write_events(DATA / f"stream-{events}", events, FILES, "number")
    shutil.rmtree(OUT / "patterns", ignore_errors=True)
    expected: dict[str, Found] = {}
    speeds: Speeds = {}
    for row in [*_core(folder, events, sizes.rounds, expected)]:
        speeds[CORE, row.case.rpartition("; ")[2]] = row.value
        yield row
    for row in _jobs(sizes):
        engine, _, pattern = row.case.rpartition("; ")
        if row.unit == SPEED:
            speeds[engine, pattern] = row.value
        yield row
    if sizes.peer_rounds:
        del expected["nothing"]
        file = _whole(folder)
        for peer in peer_runs(file, events, sizes.peer_rounds, expected):
            speed = speeds[name_of(peer), peer.pattern] = events / peer.seconds
            floor = speeds[f"floor of {JSON}", "read only"]
            yield Row(
                "patterns", f"{name_of(peer)}; {peer.pattern}", speed, SPEED, speed / floor, None, CHECKED
            )
    yield from ratios(speeds)


def rule(pattern: str, time: str = "number") -> tuple[Rule, ...]:
    """The rule of a pattern, for events whose time is a number of milliseconds or text."""
    kind, event_time = (
        ("BIGINT", "event_time: ts, time_unit: ms") if time == "number" else ("TIMESTAMP", "event_time: ts")
    )
    schema = f"ts {kind}, id BIGINT, etype STRING, value DOUBLE"
    return rules_of(schema, event_time, [f"{{name: {pattern}, {CASES[pattern]}, within: 1 s}}"])


def name_of(peer: PeerRun) -> str:
    """An engine's line in the table."""
    text = f"{peer.engine}, {'JSON file' if peer.source == 'file' else 'in memory'}"
    default = " (default)" if peer.interval == DEFAULT_INTERVAL else ""
    return text if peer.interval is None else f"{text}, a watermark every {peer.interval} ms{default}"


def found_by(table: pa.Table, events: int) -> Found:
    """How many matches a table has, and the digest that the peers give of the same matches.

    Args:
        table: matches, whose events come from the files that `write_events` writes.
        events: how many there are in all files.
    """
    if not table.num_rows:
        return 0, f"{0:016x}"
    members = table["events"].combine_chunks()
    flat = members.flatten()
    part = pc.utf8_slice_codeunits(pc.struct_field(flat, "source"), 5, 8).cast(pa.int64()).to_numpy()
    firsts = np.cumsum([0, *map(len, np.array_split(np.empty(events, np.int8), FILES))])
    positions = firsts[part] + pc.struct_field(flat, "offset").to_numpy()
    return table.num_rows, digest_of(positions.reshape(table.num_rows, -1))


def digest_of(positions: Ints) -> str:
    """The digest that the peers give of matches (int64[matches, events], the positions of their events)."""
    digests = np.full(len(positions), OFFSET_BASIS)
    for column in positions.astype(np.uint64).T:
        mixed = (digests ^ column) * PRIME
        digests = (mixed ^ (mixed >> np.uint64(32))) * MIX
    return f"{int(np.add.reduce(digests)):016x}"


def _core(folder: Path, events: int, rounds: int, expected: dict[str, Found]) -> Iterator[Row]:
    """Each pattern in the core; what it finds goes to `expected`."""
    stream = read_all(folder, rule("each")[0].schema).events.combine_chunks()
    seconds = {}
    for pattern in CASES:
        plan = build_plan(rule(pattern), order=OrderSpec())
        matches = run(plan, [stream]).matches
        expected[pattern] = found_by(matches, events)
        del matches
        seconds[pattern] = statistics.median(processor(partial(run, plan, [stream])) for _ in range(rounds))
    for pattern, taken in seconds.items():
        target = {"nothing": None, "where": ">= 8e6"}.get(pattern, ">= 20e6")
        yield Row("patterns", f"{CORE}; {pattern}", events / taken, SPEED, None, target, CHECKED)


def _jobs(sizes: Sizes) -> Iterator[Row]:
    """The jobs on Spark, by their sources, and Spark's own reader of each source."""
    specs = _specs(sizes.events)
    pa.default_memory_pool().release_unused()
    for source in specs:
        peak = alone_in("patterns", source, sizes.events)["peak_mb"]
        yield Row("memory", source, peak, "MB", None, f"<= {GIB_3:.0f}", CHECKED)
    spark = build_session("bench")
    try:
        with job_process() as run_job:
            for source, by_pattern in specs.items():
                yield from _one_source(spark, run_job, source, by_pattern, sizes)
    finally:
        spark.stop()


def _specs(events: int) -> dict[str, dict[str, JobSpec]]:
    """The jobs on Spark, by their sources and patterns."""
    json = write_events(DATA / f"stream-{events}", events, FILES, "number")
    text = write_events(DATA / f"stream-{events}-text", events, FILES, "text")
    parquet = _as_parquet(json, events)
    return {
        JSON: {pattern: job("patterns", json, rule(pattern)) for pattern in CASES},
        TEXT: {"each": job("patterns", text, rule("each", "text"))},
        PARQUET: {pattern: job("patterns", parquet, rule(pattern), "parquet") for pattern in CASES},
    }


def alone(source: str, events: int) -> dict[str, float]:
    """The memory of one job from this source, in a process that runs nothing else."""
    spec = _specs(events)[source]["each"]
    (done, _), peak = peak_mb(lambda: run_anew(spec))
    require_equal(done)
    shutil.rmtree(done.sink_path)
    return {"peak_mb": peak}


def _one_source(
    spark: SparkSession, run_job: RunJob, source: str, specs: dict[str, JobSpec], sizes: Sizes
) -> Iterator[Row]:
    """Each pattern from one source, in turns with Spark's reader."""
    for spec in [run_job(spec)[0] for spec in specs.values()]:
        require_equal(spec)
        shutil.rmtree(spec.sink_path)
    any_spec = specs["each"]
    read_only(spark, any_spec)
    taken: dict[str, list[float]] = {name: [] for name in ("floor", *specs)}
    for _ in range(sizes.rounds):
        taken["floor"].append(wall(partial(read_only, spark, any_spec)))
        for pattern, spec in specs.items():
            taken[pattern].append(run_job(spec)[1].seconds)
    floor = sizes.events / statistics.median(taken["floor"])
    yield Row("patterns", f"floor of {source}; read only", floor, SPEED, 1.0, None, NO_RESULT)
    target = {JSON: ">= 1.5", TEXT: ">= 1.5"}.get(source)
    for pattern in specs:
        speed = sizes.events / statistics.median(taken[pattern])
        ratio = ratio_in_turns(taken[pattern], taken["floor"])
        wanted = None if pattern == "nothing" else target
        yield Row("patterns", f"{source}; {pattern}", speed, SPEED, ratio, wanted, CHECKED)


def ratios(speeds: Speeds) -> Iterator[Row]:
    """How many times as fast as the peers a job is, pattern by pattern; Flink CEP with its best setting."""
    for engine, source, places in (
        (JSON, "JSON file", {"Flink CEP": ">= 8", "Esper": ">= 2"}),
        (PARQUET, "in memory", {"Flink CEP": ">= 15", "Esper": ">= 1.2"}),
    ):
        for peer, target in places.items():
            for pattern in PATTERNS:
                theirs = [
                    speed
                    for (name, of), speed in speeds.items()
                    if of == pattern and name.startswith(f"{peer}, {source}")
                ]
                if theirs:
                    value = speeds[engine, pattern] / max(theirs)
                    yield Row(
                        "patterns",
                        f"{engine}, over {peer} {source}; {pattern}",
                        value,
                        "times",
                        None,
                        target,
                        CHECKED,
                    )


def _whole(folder: Path) -> Path:
    """All files as one, for the peers: not in the folder, where jobs would read it too."""
    path = folder.with_suffix(".jsonl")
    if not path.exists():
        with path.open("wb") as whole:
            for part in sorted(folder.glob("part-*.json")):
                whole.write(part.read_bytes())
    return path


def _as_parquet(folder: Path, events: int) -> Path:
    """Write the events of the JSON files as Parquet, file by file."""
    target = DATA / f"stream-{events}-parquet"
    schema = rule("each")[0].schema
    names: list[Any] = [field.name for field in schema.fields]
    if not (target / "_done").exists():
        target.mkdir(parents=True, exist_ok=True)
        for part in sorted(folder.glob("part-*.json")):
            pq.write_table(read_all(part, schema).events.select(names), target / f"{part.stem}.parquet")
        (target / "_done").touch()
    return target
