"""The frontier that held when a batch began, told to the batch's tasks.

The driver knows it from the batch before (`spark_pace.spark.checkpoint.sequences`). A local property of
Spark's carries it to the tasks.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from pyspark import TaskContext
from pyspark.sql import SparkSession

from spark_pace.core.columns import NO_FRONTIER
from spark_pace.errors import StateError
from spark_pace.spark.checkpoint.checkpoint import Checkpoint

_FRONTIERS = "spark_pace.frontiers"  # a local property: JSON of {batch id: frontier}
_BATCH_ID = "streaming.sql.batchId"  # Spark's own


def tell_frontiers(spark: SparkSession, frontiers: Mapping[int, int]) -> None:
    """Tell the tasks of later batches their frontiers, in microseconds since 1970.

    Call it in the thread that starts the query, or inside the query's `foreachBatch`.
    """
    spark.sparkContext.setLocalProperty(_FRONTIERS, json.dumps(frontiers))


def frontier_of_batch() -> int:
    """In a task: the frontier that held when its batch began, in microseconds since 1970.

    Raises:
        StateError: nobody has told it.
    """
    task = TaskContext.get()
    assert task is not None
    batch_id = int(task.getLocalProperty(_BATCH_ID) or 0)
    frontiers = json.loads(task.getLocalProperty(_FRONTIERS) or "{}")
    frontier_us: int | None = frontiers.get(str(batch_id), NO_FRONTIER if batch_id == 0 else None)
    if frontier_us is None:
        file = Checkpoint(Path()).sequence(batch_id)  # a task does not know the folder
        must = f"must hold the frontier that batch {batch_id} begins with"
        raise StateError(f"{file} — {must}; got none. Restore the whole checkpoint.")
    return frontier_us
