"""What a record holds is read as Spark reads it, for the types that have parts or digits."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_pace.core.plan.rule import EventSchema, Field
from spark_pace.io.files import read_events

pytestmark = pytest.mark.spark

NUMBERS = [
    "0",
    "-0",
    "1",
    "1.5",
    '"1.5"',
    "1.005",
    "-1.005",
    "1.00499",
    '"1.005"',
    "1e2",
    "1E-3",
    '"1e2"',
    '"+1"',
    '".5"',
    '"1."',
    "99999999.99",
    "99999999.995",
    "-99999999.994",
    "100000000",
    "123456789",
    '"abc"',
    '""',
    '" 1"',
    '"NaN"',
    "true",
    "null",
    '"0x10"',
    '"1_0"',
    '"--1"',
    "0.1234567890123456789",
    "12345678.900000000000000001",
]


@pytest.mark.parametrize("kind", ["DECIMAL(10,2)", "DECIMAL(38,30)", "DECIMAL(9,0)"])
def test_a_decimal_in_json_is_read_as_spark_reads_it(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    lines = [f'{{"t":"2024-01-01","n":{n},"d":{value}}}' for n, value in enumerate(NUMBERS)]
    path = tmp_path / "e.json"
    path.write_text("\n".join(lines))
    schema = EventSchema((Field("t", "TIMESTAMP"), Field("n", "BIGINT"), Field("d", kind)), "t")
    read = read_events(str(path), "json", schema, "e")
    ours = {row["n"]: row["d"] for row in read.events.to_pylist()}
    rows = spark.read.schema(f"t STRING, n BIGINT, d {kind}, bad STRING").json(
        str(path), columnNameOfCorruptRecord="bad"
    )
    theirs = {row["n"]: row["d"] for row in rows.collect() if row["bad"] is None}
    assert {n: str(value) for n, value in ours.items()} == {n: str(value) for n, value in theirs.items()}
    assert len(theirs) > 10
    assert read.bad.num_rows == len(lines) - len(ours)
