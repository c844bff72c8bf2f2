"""What a batch of 10,000 events costs with ten live keys and with a million: in the core, and in the job.

Each key has a login that is open. A batch ends half as many as it has events, of random keys, and opens
them anew; so there are as many matches with few keys as with many. The matches of the core are compared with
those of one batch of all events, and those of the job with the core's.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.carry import BATCH
from benchmarks.core_runs import records, timed_batches
from benchmarks.processes import alone as alone_in
from benchmarks.rows import Row, Sizes
from benchmarks.waits import FILLING, TIMED, WARM, job_over, run_job_over
from spark_pace.core.order import OrderSpec
from spark_pace.core.plan.plan import build_plan
from spark_pace.rules import load_rules

COLUMNS = ["time", "out", "user"]
TARGET = "<= 2"
CHECKED = "one batch of all in the core"


def measure(sizes: Sizes) -> Iterator[Row]:
    """Each number of keys, in a process of its own; the floor is the least number."""
    base: dict[str, float] = {}
    for count in sizes.keys:
        figures = alone_in("keys", count)
        for name in ("core", "job"):
            value = figures[name]
            ratio = value / base.setdefault(name, value)
            target = TARGET if count >= 1_000_000 else None
            yield Row(
                "keys",
                f"{name}; {count:,} keys",
                1000 * value,
                "ms a batch",
                ratio,
                target,
                CHECKED,
            )
        yield Row("memory", f"{count:,} keys", figures["peak_mb"], "MB", None, "<= 3221", CHECKED)


def alone(keys: int) -> dict[str, Any]:
    """The figures with so many live keys: seconds of a batch in the core and in the job."""
    job = run_job_over(
        job_over("keys", f"keys-{keys}", (batch.select(COLUMNS) for batch in batches_of(keys)))
    )
    plan = build_plan(load_rules(Path(__file__).with_name("keys.yaml")), order=OrderSpec())
    seconds, _ = timed_batches(plan, batches_of(keys))
    return {
        "core": statistics.median(seconds[-TIMED:]),
        "job": job["seconds"],
        "peak_mb": job["peak_mb"],
    }


def batches_of(keys: int) -> Iterator[pa.Table]:
    """A login of every key; then batches in which keys log out and in again."""
    random = np.random.default_rng(1)
    for first in range(0, keys, FILLING):
        users = np.arange(first, min(keys, first + FILLING))
        yield events(first, users, np.zeros(len(users), np.bool_))
    for turn in range(WARM + TIMED):
        users = np.repeat(random.permutation(np.arange(max(keys, BATCH // 2)) % keys)[: BATCH // 2], 2)
        yield events(keys + turn * BATCH, users, np.arange(BATCH) % 2 == 0)


def events(first: int, users: np.ndarray[Any, Any], out: np.ndarray[Any, Any]) -> pa.Table:
    """Events, 500 a second."""
    numbers = np.arange(first, first + len(users))
    return records(numbers * 2000, first, out=out, user=[f"user{number:07d}" for number in users])
