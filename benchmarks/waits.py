"""A job's batches of 10,000 payments while more and more wait: seconds, bytes written, memory.

As `benchmarks.carry`, but the whole job: Parquet files to Delta. The first batches bring what waits, the last
ones are timed. The matches are compared with the core's before any figure is printed.

``python -m benchmarks.waits [CARRIED ...]``
"""

from __future__ import annotations

import itertools
import json
import shutil
import statistics
import subprocess
import sys
import uuid
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.carry import BATCH, LARGE, payments
from benchmarks.catchup import watched
from benchmarks.jobs import ROOT, job, require_equal
from spark_pace.io.metrics import BatchReport
from spark_pace.job import run_job
from spark_pace.job_file import JobSpec

CARRIED = (0, 2_000_000, 10_000_000)
FILLING = 200_000  # payments of a batch that brings what waits
WARM, TIMED = 5, 20
MEMORY = {"spark.driver.memory": "1g"}
COLUMNS = ["time", "value", "card"]


def main() -> int:
    """Measure with each number of payments that wait."""
    carried = [int(text) for text in sys.argv[1:]] or list(CARRIED)
    if len(carried) == 1:
        print(json.dumps({"carried": carried[0], **measure(job_of(carried[0]))}))
        return 0
    shutil.rmtree(ROOT / "out" / "bench" / "waits", ignore_errors=True)
    results = [in_a_process_of_its_own("benchmarks.waits", count) for count in carried]
    base = results[0]["seconds"]
    for row in results:
        told = ", ".join(f"{name} {value:,}" for name, value in row.items())
        print(f"{told}; x {row['seconds'] / base:.2f} of the first")
    print(json.dumps(results))
    return 0


def in_a_process_of_its_own(module: str, count: int) -> dict[str, Any]:
    """The figures of a benchmark with one count; what was measured before takes no memory then."""
    command = [sys.executable, "-m", module, str(count)]
    answer = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    return dict(json.loads(answer.stdout.splitlines()[-1]))


def measure(spec: JobSpec) -> dict[str, Any]:
    """The figures of the last batches of a job but the one that ends its input, and the memory of all.

    Raises:
        SystemExit: the matches are not the core's.
    """
    seconds: list[float] = []
    written: list[int] = []
    chunks = Path(spec.checkpoint_path) / "waiting"

    def note(report: BatchReport) -> None:
        seconds.append(report.seconds)
        state = report.state_bytes
        written.append(state + sum(path.stat().st_size for path in new_files(chunks)))

    with watched(proportional, 1) as sizes:
        run_job(spec, on_progress=note)
    first = len(seconds) - 1 - TIMED  # the last batch is the end of the input
    return {
        "seconds": round(statistics.median(seconds[first:-1]), 3),
        "mean": round(statistics.mean(seconds[first:-1]), 3),
        "slowest": round(max(seconds[first:-1]), 3),
        "written_bytes": round(statistics.mean(written[first:-1])),
        "peak_mb": round(max(sizes) / 1e6),
        "carry_files_mb": round(sum(path.stat().st_size for path in chunks.glob("*")) / 1e6),
        "matches": require_equal(spec),
    }


def proportional(process: psutil.Process) -> int:
    """The bytes of a process and all that it has started; shared pages count once."""
    total = 0
    for one in [process, *process.children(recursive=True)]:
        with suppress(psutil.Error):
            total += one.memory_full_info().pss
    return total


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
    folder = ROOT / "data" / "bench" / data
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for number, batch in enumerate(batches):
        pq.write_table(batch, folder / f"{number:04d}.parquet")
    spec = job(name, folder)
    source = replace(spec.files, format="parquet", max_files_per_trigger=1)
    out = Path(spec.sink_path) / uuid.uuid4().hex  # a session writes to a checkpoint after its query's end
    spec = replace(spec, sink_path=str(out), checkpoint_path=str(out / "_checkpoint"))
    return replace(spec, source=source, spark=MEMORY)


if __name__ == "__main__":
    sys.exit(main())
