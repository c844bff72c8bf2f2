"""Fixtures for all tests, and profiles of Hypothesis. Nothing starts Spark but the tests that ask for it.

The profile `ci`, the default, always takes the same examples; ``HYPOTHESIS_PROFILE=long`` searches at random.
It is chosen here, before any module of tests is imported, for some make settings of their own from it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Spark's JVMs live for seconds here: compiling for speed would take more of the processor than it gains.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1")
# Hundreds of processes are started: each would compile this program anew, which takes it a second and more.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

COMMON = settings(
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)

settings.register_profile("ci", COMMON, derandomize=True, max_examples=50, database=None)
settings.register_profile("long", COMMON, max_examples=int(os.environ.get("HYPOTHESIS_EXAMPLES", "2000")))
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The one local session of a test run: two task slots, as few partitions as will do."""
    from spark_pace.spark.session import build_session

    session = build_session(
        "tests",
        {"spark.master": "local[2]", "spark.sql.shuffle.partitions": "2", "spark.default.parallelism": "2"},
    )
    yield session
    session.stop()
