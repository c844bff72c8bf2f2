"""Tells a batch's tasks what is known about earlier records.

The driver has it from the batch before (`spark_pace.spark.checkpoint.batch_begin`). A local property of Spark
brings it to the tasks.
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
    """Tell the tasks of later batches what is known about earlier records, for each batch by its number.

    Call it in the thread that starts the query, or inside the query's `foreachBatch`.
    """
    told = {batch_id: asdict(past) for batch_id, past in pasts.items()}
    spark.sparkContext.setLocalProperty(_PASTS, json.dumps(told))


def past_of_batch() -> Past:
    """In a task: what is known about the records before its batch.

    Raises:
        StateError: the task was not told, or Spark does not say which batch the task belongs to.
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
    file = Checkpoint(Path()).sequence(int(number))  # without the folder, which a task does not know
    must = f"must hold the frontier that batch {number} begins with"
    raise StateError(f"{file} — {must}; got none. Restore the whole checkpoint.")
