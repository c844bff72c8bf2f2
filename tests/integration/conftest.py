"""One Kafka broker for the whole test run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from examples.kafka.broker import Broker

USER, PASSWORD = "reader", "correct-horse-battery"


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """On free ports of this machine, with a second listener for `USER`."""
    started = Broker(tmp_path_factory.mktemp("kafka"), users={USER: PASSWORD})
    started.start()
    yield started
    started.kill()
