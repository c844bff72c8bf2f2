"""What Py4J says of a JVM that has ended stays out of the job's standard error."""

from __future__ import annotations

import logging
import socket
import struct
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from py4j.java_gateway import GatewayClient, GatewayParameters
from pyspark import SparkContext

from spark_pace.spark.checkpoint.checkpoint import Checkpoint
from spark_pace.spark.queries import Stop, in_our_words

RESET_ON_CLOSE = struct.pack("ii", 1, 0)


@pytest.fixture
def ending_jvm() -> Iterator[GatewayClient]:
    """A client of a JVM that takes one command and ends before it answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def end() -> None:
            connection, _ = server.accept()
            connection.recv(1)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
            connection.close()

        thread = threading.Thread(target=end, daemon=True)
        thread.start()
        parameters = GatewayParameters(port=server.getsockname()[1])
        yield GatewayClient(gateway_parameters=parameters)
        thread.join(10)  # it waits for ever if no command came


@pytest.mark.parametrize("stopped", [False, True])
def test_py4j_tells_of_the_end_of_a_jvm_unless_the_job_was_stopped(
    ending_jvm: GatewayClient,
    stopped: bool,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Python lets go of the JVM's objects when the job is over, and sends a message for each."""
    monkeypatch.setattr(SparkContext, "_jvm", None)  # as it is when the JVM has ended
    root, py4j = logging.getLogger(), logging.getLogger("py4j")
    before = list(root.filters), py4j.level
    try:
        stop = Stop()
        if stopped:
            stop.event.set()
        with in_our_words(stop, Checkpoint(Path("checkpoint"))):
            pass
        assert (py4j.level == before[1]) is not stopped
        ending_jvm.send_command("x\n", retry=False)
        told = [record.getMessage() for record in caplog.records]
    finally:
        root.filters[:], level = before
        py4j.setLevel(level)
    assert ("Exception while sending command." in told) is not stopped
