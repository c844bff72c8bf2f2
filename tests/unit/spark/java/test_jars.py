"""Which jars of S3 fit the installed PySpark."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_pace.spark.java import jars


def versions(coordinates: list[str]) -> dict[str, str]:
    return {name: version for _, name, version in (one.split(":") for one in coordinates)}


@pytest.mark.parametrize(
    ("spark", "hadoop", "sdk", "cloud"),
    [
        ("4.0.2", "3.4.1", "2.25.53", "4.0.2"),
        ("4.1.3", "3.4.2", "2.29.52", "4.1.1"),
        ("4.2.0", "3.5.0", "2.35.4", "4.1.1"),
        ("4.10.0", "3.6.0", "2.35.4", "4.1.1"),  # none that is known
    ],
)
def test_jars_of_s3_are_those_of_the_hadoop_that_pyspark_brings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: str, hadoop: str, sdk: str, cloud: str
) -> None:
    (tmp_path / f"hadoop-client-api-{hadoop}.jar").touch()
    monkeypatch.setattr(jars, "pyspark_jars", lambda: tmp_path)
    monkeypatch.setattr(jars, "version", lambda name: spark)
    found = versions(jars.s3a_coordinates())
    assert found["hadoop-aws"] == hadoop
    assert {found[name] for name in ("s3", "s3-transfer-manager", "sts", "apache-client")} == {sdk}
    assert found["spark-hadoop-cloud_2.13"] == cloud


def test_jars_of_s3_are_known_for_the_installed_pyspark() -> None:
    assert versions(jars.s3a_coordinates())["hadoop-aws"] in jars._VERSIONS_OF_S3A
