"""Where jobs keep their tables and checkpoints in tests that ask for both places."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from examples.cluster.store_server import StoreServer
from tests.support.both_places import Kept, reach


@pytest.fixture(params=["folder", pytest.param("store", marks=pytest.mark.stores)])
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Kept:
    """A place for a job in `tmp_path`."""
    if request.param == "folder":
        return Kept(tmp_path)
    return Kept.in_store(request.getfixturevalue("reached_store"), tmp_path.name)


@pytest.fixture(scope="module")
def reached_store(spark: SparkSession, store: StoreServer) -> Iterator[StoreServer]:
    """A server of buckets, which jobs here and in other processes reach."""
    reach(spark, store.environment)
    with pytest.MonkeyPatch.context() as patch:
        for variable, value in store.environment.items():
            patch.setenv(variable, value)
        yield store
