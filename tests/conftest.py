"""Fixtures for all tests, and profiles of Hypothesis. Nothing starts Spark but the tests that ask for it.

The profile `ci`, the default, takes the same examples wherever the same modules are loaded (Hypothesis also
draws constants that it finds in them); ``HYPOTHESIS_PROFILE=long`` searches at random.
It is chosen here, before any module of tests is imported, for some make settings of their own from it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadFileScheduling

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from examples.cluster.store_server import StoreServer
    from tests.support.hdfs_server import HdfsServer

# one worker runs these, with one broker of Kafka for all of them
OF_ONE_BROKER = (
    *("test_topics", "test_kafka", "test_kafka_lateness", "test_kafka_tls", "test_bench_topic"),
    *("test_broker", "test_ticks", "test_alerts_to_kafka", "test_offsets_without_records"),
)
# and these, with one server of buckets
OF_ONE_STORE = (
    *("test_leases_in_stores", "test_checkpoint_files_in_stores", "test_tables_in_stores"),
    *("test_commands_on_stores", "test_stores"),
)
# the slowest files, slowest first: one that began last would keep a worker busy while others have nothing
FIRST = (
    *OF_ONE_BROKER,
    *("test_checkpoints_in_stores", "test_cluster", "test_kills", "test_soak", "test_ended_processes"),
    *("test_full_store", "test_interrupted_jobs", "test_full_disk", "test_shared_sinks"),
    *("test_delta_source", "test_wheel", "test_table", "test_clock", "test_costly_rules"),
    *("test_bench_command", "test_damaged_checkpoints", "test_hdfs_that_fails"),
    *("test_house", "test_job", "test_changed_rules_in_spark"),
    *(*OF_ONE_STORE, "test_requests_of_batches"),
)

# The JVMs of Spark and Kafka live for seconds here: to compile for speed takes more than it gains.
for options in ("SPARK_SUBMIT_OPTS", "KAFKA_OPTS"):
    os.environ.setdefault(options, "-XX:TieredStopAtLevel=1")
# Hundreds of processes are started: each would compile this program anew, which takes it a second and more.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

COMMON = settings(
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)

settings.register_profile("ci", COMMON, derandomize=True, max_examples=8, database=None)
settings.register_profile("long", COMMON, max_examples=int(os.environ.get("HYPOTHESIS_EXAMPLES", "2000")))
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


def name_of(item: str) -> str:
    """The name of the module that a test is in."""
    return PurePath(item.partition("::")[0]).stem


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    places = {name: place for place, name in enumerate(FIRST)}
    items.sort(key=lambda item: places.get(name_of(item.nodeid), len(FIRST)))


class Modules(LoadFileScheduling):  # type: ignore[misc]
    """Gives whole modules to workers, and those of one server to one worker."""

    def _split_scope(self, nodeid: str) -> str:
        name = name_of(nodeid)
        return next((group[0] for group in (OF_ONE_BROKER, OF_ONE_STORE) if name in group), name)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadFileScheduling | None:
    return Modules(config, log) if config.getvalue("dist") == "loadfile" else None


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The one local session of a test run: two task slots, as few partitions as will do."""
    from spark_pace.spark.java.jars import S3A
    from spark_pace.spark.java.launch import jar_directory
    from spark_pace.spark.session import build_session

    with pytest.MonkeyPatch.context() as patch:  # behind the other jars, so that the archive of classes fits
        patch.setenv("SPARK_DIST_CLASSPATH", f"{jar_directory() / S3A}/*")
        session = build_session(
            "tests",
            {
                "spark.master": "local[2]",
                "spark.sql.shuffle.partitions": "2",
                "spark.default.parallelism": "2",
            },
            quick=True,
        )
    yield session
    session.stop()


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreServer]:
    """A server of buckets."""
    from examples.cluster.store_server import StoreServer

    with StoreServer(tmp_path_factory.mktemp("store")) as started:
        yield started


@pytest.fixture(scope="session")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HdfsServer]:
    """A server of HDFS."""
    from tests.support.hdfs_server import HdfsServer

    server = HdfsServer(tmp_path_factory.mktemp("hdfs"))
    yield server
    server.kill()
