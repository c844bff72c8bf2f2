"""One Kafka broker for these tests, and topics on it; places in a store and on HDFS.

The broker goes with its tests: idle, it takes a tenth of a core.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaProducer

from examples.cluster.store_server import StoreServer
from examples.kafka.broker import Broker
from spark_pace.io.files.addresses import StorePath, StoreSettings
from tests.support.both_places import FOLDER, Both, OnHdfs, Pair
from tests.support.certificates import Certificates
from tests.support.hdfs_server import HdfsServer

USER, PASSWORD = "reader", "correct-horse-battery"
NUMBERS = count()


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """Of the broker and of one client."""
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="package")
def broker(tmp_path_factory: pytest.TempPathFactory, certificates: Certificates) -> Iterator[Broker]:
    """A broker on free ports: open, for `USER` with the password, and for the client with the certificate."""
    started = Broker(
        tmp_path_factory.mktemp("kafka"), users={USER: PASSWORD}, tls=certificates.of_the_broker()
    )
    started.start()
    yield started
    started.kill()


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[Broker]:
    """A broker for one test, which may kill it."""
    broker = Broker(tmp_path / "broker")
    broker.start()
    yield broker
    broker.kill()


@pytest.fixture
def topic(broker: Broker) -> str:
    """A new topic of two partitions."""
    name = f"events-{next(NUMBERS)}"
    broker.create_topic(name, 2)
    return name


@pytest.fixture
def send(broker: Broker) -> Callable[..., None]:
    """Send (partition, keyword arguments) for each record, and wait until they are stored."""

    def all_of(topic: str, *records: tuple[int, dict[str, Any]]) -> None:
        with KafkaProducer(bootstrap_servers=broker.servers) as producer:
            for partition, record in records:
                producer.send(topic, partition=partition, **record)

    return all_of


@pytest.fixture(scope="module")
def server(store: StoreServer) -> StoreServer:
    return store


@pytest.fixture
def bucket(server: StoreServer, tmp_path: Path) -> str:
    """The name of a new bucket."""
    name = tmp_path.name[-40:].replace("_", "-").strip("-")
    server.bucket(name)
    return name


@pytest.fixture
def both(server: StoreServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Both:
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    name = tmp_path.name[-40:].replace("_", "-").strip("-")
    address = f"s3a://{name}/{FOLDER}"
    (tmp_path / "in").mkdir()
    settings = StoreSettings.of(address, {}, server.environment)
    return Both(tmp_path / "in", address, settings, server.bucket(name), server)


@pytest.fixture
def both_hdfs(hdfs: HdfsServer, tmp_path: Path) -> OnHdfs:
    (tmp_path / "in").mkdir()
    hdfs.client.mkdirs(f"/{tmp_path.name}/{FOLDER}", create_parent=True)
    return OnHdfs(tmp_path / "in", f"{hdfs.address}/{tmp_path.name}/{FOLDER}", StoreSettings(), hdfs)


@pytest.fixture(params=["both", pytest.param("both_hdfs", marks=pytest.mark.stores)])
def pair(request: pytest.FixtureRequest) -> Pair:
    """A folder, and in turn a bucket and a folder of HDFS, with the same files."""
    found: Pair = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def in_a_store(server: StoreServer, bucket: str) -> StorePath:
    """The place of a checkpoint in that bucket."""
    address = f"s3a://{bucket}/jobs/of may/ck"
    return StorePath.of(address, StoreSettings.of(address, {}, server.environment))


@pytest.fixture
def on_hdfs(hdfs: HdfsServer, tmp_path: Path) -> StorePath:
    return StorePath.of(f"{hdfs.address}/{tmp_path.name}/of may/ck", StoreSettings())


@pytest.fixture(params=["in_a_store", pytest.param("on_hdfs", marks=pytest.mark.stores)])
def remote(request: pytest.FixtureRequest) -> StorePath:
    place: StorePath = request.getfixturevalue(request.param)
    return place
