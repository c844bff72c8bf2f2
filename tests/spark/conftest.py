"""Where jobs keep their tables and checkpoints in tests that ask for both places."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from examples.cluster.store_server import StoreServer
from spark_pace.io.files.store_path import StorePath
from spark_pace.io.files.store_settings import StoreSettings
from spark_pace.spark.java.store_settings import store_settings
from tests.support.both_places import Kept

OF_HADOOP = "spark.hadoop."


@pytest.fixture(params=["folder", "store"])
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Kept:
    """A place for a job in `tmp_path`."""
    if request.param == "folder":
        return Kept(tmp_path)
    found: Kept = request.getfixturevalue("kept_in_store")
    return found


@pytest.fixture
def kept_in_store(
    spark: SparkSession, store: StoreServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Kept:
    """A new bucket, which jobs and the session of these tests reach."""
    name = tmp_path.name[-40:].replace("_", "-").strip("-")
    store.bucket(name)
    reach(spark, store, monkeypatch)
    return Kept(store.data / name, name)


def reach(spark: SparkSession, store: StoreServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let jobs here and in other processes reach a server. A session that runs takes no settings of jobs."""
    for variable, value in store.environment.items():
        monkeypatch.setenv(variable, value)
    place = StorePath.of("s3a://any", StoreSettings.of("s3a://any", {}, store.environment))
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()  # type: ignore[union-attr]
    for settings in store_settings(place, {}):
        for key, value in settings.items():
            if key.startswith(OF_HADOOP):
                hadoop.set(key.removeprefix(OF_HADOOP), value)
