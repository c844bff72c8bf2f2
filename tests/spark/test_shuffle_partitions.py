"""A platform may choose the number of shuffle partitions by itself (``auto``, as Databricks writes it)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

import spark_pace
from spark_pace.errors import ConfigError
from spark_pace.spark.detect import SHUFFLE_PARTITIONS

pytestmark = pytest.mark.spark
RULES = """
events: {schema: "timestamp TIMESTAMP, value BIGINT", event_time: timestamp}
rules: [{name: r, pattern: {sequence: [a: value > 0]}}]
"""
QUERY = "SELECT * FROM range(9) MATCH_RECOGNIZE ({} ORDER BY id MEASURES LAST(id) AS n PATTERN (A+) {})"


@pytest.fixture
def by_itself(spark: SparkSession) -> Iterator[SparkSession]:
    """Spark's own check of the setting is passed by: the platforms that have `auto` do not have it."""
    settings: Any = spark._jsparkSession.sessionState().conf().settings()  # type: ignore[attr-defined]
    before = spark.conf.get(SHUFFLE_PARTITIONS)
    settings.put(SHUFFLE_PARTITIONS, "auto")
    yield spark
    settings.put(SHUFFLE_PARTITIONS, before)


def test_detect_needs_a_number_and_says_so(by_itself: SparkSession) -> None:
    events = by_itself.readStream.format("rate").load()
    told = r"^spark\.sql\.shuffle\.partitions — must be a number where detect is called; got auto\. Set it"
    with pytest.raises(ConfigError, match=told):
        spark_pace.detect(events, RULES)


def test_a_function_whose_value_does_not_follow_from_the_row_is_refused(spark: SparkSession) -> None:
    query = QUERY.format("", "DEFINE A AS rand() < 0.5 OR rand() > 0.5")
    told = r'^query:1:\d+ — must be a function whose value follows from the row; got "rand\(\)"\. Compute'
    with pytest.raises(ConfigError, match=told):
        spark_pace.sql(spark, query)
    computed = query.replace("range(9)", "(SELECT id, rand() AS r FROM range(9))").replace("rand() <", "r <")
    assert spark_pace.sql(spark, computed.replace("rand() >", "r >")).columns == ["n"]
