"""The frontier that held when a batch began, told to its tasks.

The driver knows it from the batch before, and keeps it in `sequence/N.json` beside the checkpoint: so a batch that runs
again after a crash has the frontier of the first time, and takes the same events for late.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark import TaskContext
from pyspark.sql import SparkSession

from spark_pace.core.columns import NO_FRONTIER
from spark_pace.errors import StateError
from spark_pace.spark.checkpoint.durable import RESTORE, read_json

_FRONTIERS = "spark_pace.frontiers"  # a local property: JSON of {batch id: frontier}
_BATCH_ID = "streaming.sql.batchId"  # Spark's own
_NUMBERS = {"out_seq", "frontier_us"}


def kept_frontiers(sequences: Path) -> dict[int, int]:
    """The frontiers of the batches that may run next.

    Raises:
        StateError: a file is damaged.
    """
    kept = {int(path.stem): read_sequence(path) for path in sequences.glob("[0-9]*.json")}
    return {batch_id: begin["frontier_us"] for batch_id, begin in kept.items() if begin is not None}


def read_sequence(path: Path) -> dict[str, Any] | None:
    """What a batch begins with; None if there is no such file.

    `out_seq` has the number of the next match of each rule, `frontier_us` the frontier. `tables` names for each table the
    last batch that was appended to it, and `offsets` is the digest of what Spark wrote of the input of the batch before;
    checkpoints of version 2 have neither.

    Raises:
        StateError: the file is damaged.
    """
    stored = read_json(path)
    if stored is None:
        return None
    whole = set(stored) in (_NUMBERS, _NUMBERS | {"tables", "offsets"})
    if not whole or not isinstance(stored["out_seq"], dict) or not isinstance(stored["frontier_us"], int):
        raise StateError(f"{path} — must hold out_seq and frontier_us; got {str(stored)[:100]}. {RESTORE}")
    return stored


def tell_frontiers(spark: SparkSession, frontiers: Mapping[int, int]) -> None:
    """Tell the tasks of later batches; from the thread that starts the query, or inside its `foreachBatch`."""
    spark.sparkContext.setLocalProperty(_FRONTIERS, json.dumps(frontiers))


def frontier_of_batch() -> int:
    """In a task: the frontier that held when its batch began.

    Raises:
        StateError: it is not known.
    """
    task = TaskContext.get()
    assert task is not None
    batch_id = int(task.getLocalProperty(_BATCH_ID) or 0)
    frontiers = json.loads(task.getLocalProperty(_FRONTIERS) or "{}")
    frontier_us: int | None = frontiers.get(str(batch_id), NO_FRONTIER if batch_id == 0 else None)
    if frontier_us is None:
        raise StateError(
            f"sequence/{batch_id}.json — must hold the frontier that batch {batch_id} begins with; got none. Restore the whole checkpoint."
        )
    return frontier_us
