"""The broker of `make kafka`: one at a time, on the port that it says."""

from __future__ import annotations

import sys

import pytest

import examples.kafka.broker as program
from examples.kafka.broker import Broker

pytestmark = pytest.mark.integration


def test_a_broker_on_another_port_than_the_one_that_runs_is_refused(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(program, "FOLDER", broker.folder)
    port = broker.servers.rpartition(":")[2]
    for asked, code in (("1", 1), (port, 0)):
        monkeypatch.setattr(sys, "argv", ["broker", "start", "--port", asked])
        assert program.main() == code
    said = capsys.readouterr()
    assert said.out.startswith(f"Kafka answers at {broker.servers} (process {broker.pid}, log ")
    assert said.err == (
        f"port 1 — must be that of the broker that runs; got one at {broker.servers} (process {broker.pid}). "
        "Use that one, or stop it first: make kafka-stop\n"
    )
