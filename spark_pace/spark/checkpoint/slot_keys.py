"""Finds a key for each slot with which Spark sends the slot's rows to a partition of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def slot_keys(spark: SparkSession, slots: int, partitions: int | None = None) -> tuple[int, ...]:
    """The least integer for each slot that Spark hashes to the partition with the slot's number.

    With the keys 0, 1, 2, 3 some slots would share a partition. The query contains the numbers itself, so
    Spark answers without a job, in a third of a second, and only at the first start of a checkpoint.

    Args:
        spark: the session.
        slots: the number of keys.
        partitions: the number of partitions of the exchange, at least `slots`; None: `slots`.
    """
    partitions = partitions or slots
    each = f"transform(sequence(0, {64 * partitions - 1}), key -> pmod(hash(key), {partitions}))"
    ((hashed,),) = spark.sql(f"SELECT {each} FROM VALUES (0)").collect()
    return tuple(hashed.index(partition) for partition in range(slots))
