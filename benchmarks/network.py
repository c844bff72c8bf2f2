"""What the model says of a network, beside a real one: two executors on machines of their own.

The machines are network namespaces of this one, so this needs root. Their links are held to a bandwidth, the
bytes that pass them are counted, and the seconds of batches are those of the job. The job is that of
`benchmarks.growth` from Parquet files that both machines see.
"""

from __future__ import annotations

import shutil
import statistics
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.carry import SCHEMA, payments
from benchmarks.core_runs import plan_of
from benchmarks.growth import RULE
from benchmarks.jobs import OUT, ROOT, require_equal
from benchmarks.rows import Row, Sizes
from benchmarks.waits import job_over
from examples.cluster.machines import Machines
from examples.cluster.standalone import Cluster
from spark_pace.io.metrics import BatchReport
from spark_pace.job import run_job
from spark_pace.job_file import JobSpec

FILES_A_BATCH, WARM, TIMED = 4, 2, 5
LARGE = 250  # of a file
MEGABITS = (None, 50, 10)


def measure(sizes: Sizes) -> Iterator[Row]:
    """Bytes and seconds of a batch, with each bandwidth."""
    size = sizes.kernel_events // FILES_A_BATCH
    random = np.random.default_rng(1)
    files = (payments(size * number, size, LARGE, random) for number in range((WARM + TIMED) * FILES_A_BATCH))
    spec = _job(job_over("waits", "network", files))
    folder = OUT / "network-machines"
    for megabits in MEGABITS:
        shutil.rmtree(folder, ignore_errors=True)
        with Machines(2) as machines, Cluster(folder, machines=machines) as cluster:
            if megabits is not None:
                for number in range(2):
                    machines.hold_to(number, megabits)
            out = Path(f"{spec.sink_path}-{megabits}")
            here = replace(spec, sink_path=str(out), checkpoint_path=str(out / "_checkpoint"))
            seconds, left = _run(replace(here, spark=_settings(cluster)), machines)
            require_equal(here)
        link = "no bound" if megabits is None else f"{megabits} Mbit/s"
        yield Row("network", f"{link}; s a batch", seconds, "s", None, None, "the core's matches")
        yield Row("network", f"{link}; bytes that leave machines", left, "bytes", None, None, "the core's")


def _job(spec: JobSpec) -> JobSpec:
    rules = tuple(planned.rule for planned in plan_of(SCHEMA, "event_time: time", [RULE]).rules)
    events = replace(spec.events, schema=rules[0].schema)
    return replace(
        spec, rules=rules, events=events, source=replace(spec.files, max_files_per_trigger=FILES_A_BATCH)
    )


def _settings(cluster: Cluster) -> dict[str, str]:
    return {
        "spark.master": cluster.master,
        "spark.driver.host": cluster.host,
        "spark.driver.bindAddress": cluster.host,
        "spark.executor.memory": "1g",
        "spark.pyspark.python": sys.executable,
        "spark.executorEnv.PYTHONPATH": str(ROOT),
    }


def _run(spec: JobSpec, machines: Machines) -> tuple[float, int]:
    """The median of the seconds of batches, and of the bytes that left the machines for each."""
    seconds: list[float] = []
    left = [0]

    def note(report: BatchReport) -> None:
        seconds.append(report.batch_seconds)
        left.append(sum(machines.sent(number) for number in range(2)))

    run_job(spec, on_progress=note)
    of_batches = np.diff(left)[WARM : WARM + TIMED]
    return statistics.median(seconds[WARM : WARM + TIMED]), int(statistics.median(of_batches.tolist()))
