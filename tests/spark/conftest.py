"""Where jobs keep their tables and checkpoints in tests that ask for both places."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from examples.cluster.store_server import StoreServer
from spark_pace.io.files.store_path import StorePath
from spark_pace.io.files.store_settings import StoreSettings
from spark_pace.spark.java.store_settings import store_settings
from tests.support.both_places import Kept

OF_HADOOP = "spark.hadoop."


@pytest.fixture(params=["folder", pytest.param("store", marks=pytest.mark.in_store)])
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Kept:
    """A place for a job in `tmp_path`."""
    if request.param == "folder":
        return Kept(tmp_path)
    return Kept.in_store(request.getfixturevalue("reached_store"), tmp_path.name)


@pytest.fixture(scope="module")
def reached_store(spark: SparkSession, store: StoreServer) -> Iterator[StoreServer]:
    """A server of buckets, which jobs here and in other processes reach.

    The session of these tests is told of it, for one that runs takes no settings of jobs.
    """
    place = StorePath.of("s3a://any", StoreSettings.of("s3a://any", {}, store.environment))
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()  # type: ignore[union-attr]
    for settings in store_settings(place, {}):
        for key, value in settings.items():
            if key.startswith(OF_HADOOP):
                hadoop.set(key.removeprefix(OF_HADOOP), value)
    with pytest.MonkeyPatch.context() as patch:
        for variable, value in store.environment.items():
            patch.setenv(variable, value)
        yield store
