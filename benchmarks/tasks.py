"""What it takes Spark to schedule a task that does nothing: the driver's time grows with their number."""

from __future__ import annotations

import time
from collections.abc import Iterator

from benchmarks.rows import Row, Sizes, require
from spark_pace.spark.session import build_session

FEW, MANY = 1_000, 4_000
ROUNDS = 5


def measure(sizes: Sizes) -> Iterator[Row]:
    """Seconds for each further task of a job, on two cores that run the tasks too."""
    spark = build_session("tasks", {"spark.master": "local[2]"})
    try:
        seconds = {tasks: [] for tasks in (FEW, MANY)}  # type: dict[int, list[float]]
        for _ in range(ROUNDS):
            for tasks, taken in seconds.items():
                began = time.monotonic()
                counted = spark.range(0, tasks, 1, tasks).rdd.getNumPartitions()
                spark.range(0, tasks, 1, tasks).write.format("noop").mode("overwrite").save()
                taken.append(time.monotonic() - began)
                require(counted == tasks, f"a job must have {tasks} tasks; has {counted}")
    finally:
        spark.stop()
    each = (min(seconds[MANY]) - min(seconds[FEW])) / (MANY - FEW)
    yield Row("tasks", "a task that does nothing", 1000 * each, "ms", None, None, "their number")
