"""How many partitions Spark makes where rows go to other tasks."""

from __future__ import annotations

from pyspark.sql import SparkSession

from spark_pace.errors import ConfigError

SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"


def shuffle_partitions(spark: SparkSession) -> int | None:
    """The number that the session is set to; None where the platform chooses it, by ``auto``."""
    number = spark.conf.get(SHUFFLE_PARTITIONS) or "1"
    return int(number) if number.isdecimal() else None


def known_partitions(spark: SparkSession) -> int:
    """The number that the session is set to.

    Raises:
        ConfigError: the platform chooses it.
    """
    number = shuffle_partitions(spark)
    if number is None:
        must, do = "must be a number where detect is called", "Set it to about the number of cores."
        raise ConfigError.of(SHUFFLE_PARTITIONS, must, spark.conf.get(SHUFFLE_PARTITIONS) or "none", do)
    return number
