"""Tells a batch's tasks what the batches before it have left.

The driver has it from the batch before (`spark_pace.spark.checkpoint.batch_begin`). A local property of Spark
brings it to the tasks.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from pyspark import TaskContext
from pyspark.sql import SparkSession

from spark_pace.core.intake.sift import Past
from spark_pace.errors import StateError
from spark_pace.spark.checkpoint.batch_begin import FIRST, Begin
from spark_pace.spark.checkpoint.checkpoint import Checkpoint
from spark_pace.spark.internals import BATCH_ID, batch_of

_EARLIER = "spark_pace.earlier"  # a local property: JSON of {batch id: the fields of its `Earlier` but one}


@dataclass(frozen=True)
class Earlier:
    """What a task knows of the batches before its own.

    Attributes:
        batch_id: its own batch.
        past: the facts about earlier records.
        states: the batch that has left the slots their states; -1: none has.
    """

    batch_id: int
    past: Past
    states: int


def tell_earlier(spark: SparkSession, begins: Mapping[int, Begin]) -> None:
    """Tell the tasks of later batches what each begins with, by the batch's number.

    Call it in the thread that starts the query, or inside the query's `foreachBatch`.
    """
    told = {batch_id: [asdict(begin.past), begin.states] for batch_id, begin in begins.items()}
    spark.sparkContext.setLocalProperty(_EARLIER, json.dumps(told))


def earlier_than_batch() -> Earlier:
    """In a task: what is known of the batches before its own.

    Raises:
        StateError: the task was not told, or Spark does not say which batch the task belongs to.
    """
    task = TaskContext.get()
    assert task is not None
    number = batch_of(task)
    if number is None:
        do = "Use a version of Spark that the README names."
        raise StateError(f"{BATCH_ID} — must tell each task of Spark its batch; got nothing. {do}")
    told = json.loads(task.getLocalProperty(_EARLIER) or "{}").get(number)
    if told is not None:
        return Earlier(int(number), Past(**told[0]), told[1])
    if int(number) == 0:
        return Earlier(0, FIRST.past, FIRST.states)
    file = Checkpoint(Path()).sequence(int(number))  # without the folder, which a task does not know
    must = f"must hold the frontier that batch {number} begins with"
    raise StateError(f"{file} — {must}; got none. Restore the whole checkpoint.")
