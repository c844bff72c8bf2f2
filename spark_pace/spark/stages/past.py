"""What is known of the records before a batch's, told to the batch's tasks.

The driver knows it from the batch before (`spark_pace.spark.checkpoint.sequences`). A local property of
Spark's carries it to the tasks.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from pyspark import TaskContext
from pyspark.sql import SparkSession

from spark_pace.core.intake.sift import Past
from spark_pace.errors import StateError
from spark_pace.spark.checkpoint.checkpoint import Checkpoint
from spark_pace.spark.internals import BATCH_ID, batch_of

_PASTS = "spark_pace.pasts"  # a local property: JSON of {batch id: the fields of its past}


def tell_pasts(spark: SparkSession, pasts: Mapping[int, Past]) -> None:
    """Tell the tasks of later batches what is known of the records before theirs, by the batch's number.

    Call it in the thread that starts the query, or inside the query's `foreachBatch`.
    """
    told = {batch_id: asdict(past) for batch_id, past in pasts.items()}
    spark.sparkContext.setLocalProperty(_PASTS, json.dumps(told))


def past_of_batch() -> Past:
    """In a task: what is known of the records before its batch's.

    Raises:
        StateError: the task was not told, or this Spark does not say which batch the task works for.
    """
    task = TaskContext.get()
    assert task is not None
    number = batch_of(task)
    if number is None:
        do = "Use a version of Spark that the README names."
        raise StateError(f"{BATCH_ID} — must tell each task of Spark its batch; got nothing. {do}")
    told = json.loads(task.getLocalProperty(_PASTS) or "{}").get(number)
    if told is not None:
        return Past(**told)
    if int(number) == 0:
        return Past()
    file = Checkpoint(Path()).sequence(int(number))  # a task does not know the folder
    must = f"must hold the frontier that batch {number} begins with"
    raise StateError(f"{file} — {must}; got none. Restore the whole checkpoint.")
