"""A job's batches of 10,000 payments while more and more wait: seconds, bytes written, memory.

As `benchmarks.carry`, but the whole job: Parquet files to Delta. The first batches bring what waits, the last
ones are timed. The matches are compared with the core's before any figure is printed.
"""

from __future__ import annotations

import itertools
import shutil
import statistics
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.carry import BATCH, LARGE, payments
from benchmarks.jobs import DATA, job, require_equal
from benchmarks.processes import alone as alone_in
from benchmarks.processes import peak_mb
from benchmarks.rows import Row, Sizes
from spark_pace.io.metrics import BatchReport
from spark_pace.job import run_job
from spark_pace.job_file import JobSpec
from spark_pace.spark.stages.rows import keep_freed

FILLING = 200_000  # payments of a batch that brings what waits
WARM, TIMED = 5, 20
MEMORY = {"spark.driver.memory": "1g"}
COLUMNS = ["time", "value", "card"]


def measure(sizes: Sizes) -> Iterator[Row]:
    """Each number of payments that wait, in a process of its own; the floor is the first number."""
    base = None
    for carried in sizes.carried:
        figures = alone_in("waits", carried)
        base = base or figures["seconds"]
        case, of = f"{carried:,} wait", "the core's matches"
        yield Row("waits", case, 1000 * figures["seconds"], "ms a batch", figures["seconds"] / base, None, of)
        yield Row("waits", f"{case}: written", figures["written_bytes"], "bytes a batch", None, None, of)
        yield Row("memory", case, figures["peak_mb"], "MB", None, "<= 3221", of)


def alone(carried: int) -> dict[str, Any]:
    """The figures with so many payments that wait."""
    return run_job_over(job_of(carried))


def run_job_over(spec: JobSpec) -> dict[str, Any]:
    """The figures of the last batches of a job but the one that ends its input, and the memory of all.

    Raises:
        SystemExit: the matches are not the core's.
    """
    seconds: list[float] = []
    written: list[int] = []
    chunks = Path(spec.checkpoint_path) / "waiting"
    keep_freed()  # as `spark-pace run` does

    def note(report: BatchReport) -> None:
        seconds.append(report.seconds)
        state = report.state_bytes
        written.append(state + sum(path.stat().st_size for path in new_files(chunks)))

    _, peak = peak_mb(lambda: run_job(spec, on_progress=note))
    first = len(seconds) - 1 - TIMED  # the last batch is the end of the input
    return {
        "seconds": round(statistics.median(seconds[first:-1]), 3),
        "mean": round(statistics.mean(seconds[first:-1]), 3),
        "slowest": round(max(seconds[first:-1]), 3),
        "written_bytes": round(statistics.mean(written[first:-1])),
        "peak_mb": round(peak),
        "carry_files_mb": round(sum(path.stat().st_size for path in chunks.glob("*")) / 1e6),
        "matches": require_equal(spec),
    }


_seen: set[Path] = set()


def new_files(folder: Path) -> list[Path]:
    """The files that were not there at the last call."""
    new = [path for path in folder.glob("[0-9a-f]*") if path not in _seen]
    _seen.update(new)
    return new


def job_of(carried: int) -> JobSpec:
    """The job, and its files: those that bring what waits, then those that are timed."""
    random = np.random.default_rng(1)
    sizes = [(FILLING, 0)] * (carried // FILLING) + [(BATCH, LARGE)] * (WARM + TIMED)
    firsts = itertools.accumulate((count for count, _ in sizes), initial=0)
    batches = (payments(first, *size, random) for first, size in zip(firsts, sizes, strict=False))
    return job_over("waits", f"waits-{carried}", (batch.select(COLUMNS) for batch in batches))


def job_over(name: str, data: str, batches: Iterable[pa.Table]) -> JobSpec:
    """The job ``benchmarks/NAME.yaml`` over Parquet files of its own, each of them a batch."""
    folder = DATA / data
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for number, batch in enumerate(batches):
        pq.write_table(batch, folder / f"{number:04d}.parquet")
    spec = job(name, folder)
    source = replace(spec.files, format="parquet", max_files_per_trigger=1)
    out = Path(spec.sink_path) / uuid.uuid4().hex  # a session writes to a checkpoint after its query's end
    spec = replace(spec, sink_path=str(out), checkpoint_path=str(out / "_checkpoint"))
    return replace(spec, source=source, spark=MEMORY)
