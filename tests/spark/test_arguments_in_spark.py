"""Spark's own objects in the place of others are told in one line."""

from __future__ import annotations

import subprocess
import sys

import pytest
from pyspark.sql import SparkSession

from spark_pace import replay
from spark_pace.errors import ConfigError

RULES = """
events: {schema: "time TIMESTAMP, x DOUBLE", event_time: time}
rules: [{name: rise, pattern: {sequence: [a: x < 5, b: x > 5]}, within: 1 min}]
"""
WITHOUT_DELTA = """
from pyspark.sql import SparkSession
from spark_pace import create_views
from spark_pace.errors import ConfigError

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
try:
    create_views(spark, "out")
except ConfigError as error:
    print(error)
spark.stop()
"""


@pytest.mark.spark
def test_replay_refuses_a_frame_of_spark(spark: SparkSession) -> None:
    with pytest.raises(ConfigError) as caught:
        replay(RULES, spark.sql("SELECT current_timestamp() AS time, 1.0 AS x"))
    assert str(caught.value) == (
        "events — must be a pyarrow.Table, a frame of pandas or polars, a list of dicts, or the path of "
        "files; got DataFrame. Give df.toArrow(), or call detect for one that streams."
    )


@pytest.mark.spark
@pytest.mark.long
def test_views_are_refused_to_a_session_that_knows_no_delta_tables() -> None:
    told = subprocess.run([sys.executable, "-c", WITHOUT_DELTA], capture_output=True, text=True, check=True)
    assert told.stdout == (
        "spark — must know Delta tables; got a session without Delta's jars, or its extension and catalog. "
        "Build it by build_session of spark_pace.spark.session, or as Delta's documents say.\n"
    )
