"""How many partitions Spark makes where rows go to other tasks."""

from __future__ import annotations

from pyspark.sql import SparkSession

SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"


def shuffle_partitions(spark: SparkSession) -> int | None:
    """The number that the session is set to; None where the platform chooses it, by ``auto``."""
    number = spark.conf.get(SHUFFLE_PARTITIONS) or "1"
    return int(number) if number.isdecimal() else None
