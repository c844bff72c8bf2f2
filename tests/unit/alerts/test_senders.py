"""What each kind of place is sent, and what its answers mean."""

from __future__ import annotations

import json
import socket
import sys
import time
from collections.abc import Iterator
from math import inf
from pathlib import Path

import pytest

from spark_pace.alerts.command_input import CommandInput
from spark_pace.alerts.sender import Alert, Sender, SendError, pause_seconds
from spark_pace.alerts.targets import sender_of
from spark_pace.errors import ConfigError
from spark_pace.job_file.alerts import AlertTarget, Command, HttpAddress, KafkaTopic
from spark_pace.job_file.secrets import Secrets
from tests.support.alerts import Answer, Server

ALERTS = [Alert(f"job/{number}", "rule", json.dumps({"id": number})) for number in range(3)]
ONE = ALERTS[:1]
ALL = [{"id": 0}, {"id": 1}, {"id": 2}]
KEEPER = """
import sys
for line in sys.stdin:
    with open(sys.argv[1], "a") as file:
        file.write(line)
"""


@pytest.fixture
def server() -> Iterator[Server]:
    with Server().running() as started:
        yield started


def made(to: HttpAddress | KafkaTopic | Command, seconds: float = 0.5) -> Sender:
    return sender_of(AlertTarget(to, "bus", timeout_us=round(seconds * 1e6)), Secrets())


def sender(server: Server, seconds: float = 10.0, **headers: str) -> Sender:
    return made(HttpAddress(server.url, headers), seconds)


@pytest.mark.parametrize("is_chunked", [False, True])
def test_alerts_are_posted_as_one_array_with_the_headers(server: Server, is_chunked: bool) -> None:
    server.is_chunked = is_chunked
    post = sender(server, Authorization="Bearer 1")
    assert post.send(ALERTS) == []
    assert post.send(ONE) == []
    assert server.posts == [ALL, ALL[:1]]
    assert len(server.clients) == 1
    assert server.headers[0]["Authorization"] == "Bearer 1"
    assert server.headers[0]["Content-Type"] == "application/json"
    post.close()


@pytest.mark.parametrize(
    ("answer", "text", "may_have_arrived", "pause"),
    [
        ((500, {}), "500 Internal Server Error", True, None),
        ((503, {"Retry-After": "7"}), "503 Service Unavailable", True, 7),
        ((429, {"Retry-After": "soon"}), "429 Too Many Requests", False, None),
        ((429, {"Retry-After": "9" * 5_000}), "429 Too Many Requests", False, inf),
        ((503, {"Retry-After": "Fri, 31 Dec 99999 23:59:59 GMT"}), "503 Service Unavailable", True, inf),
        ((503, {"Retry-After": "-" + "9" * 400}), "503 Service Unavailable", True, None),
        ((408, {}), "408 Request Timeout", True, None),
        ((401, {}), "401 Unauthorized", False, None),
        ((404, {}), "404 Not Found", False, None),
        ((302, {"Location": "/"}), "302 Found", True, None),
        ("drop", "a connection that was closed", True, None),
        ("hang", "no answer within 0.2 s", True, None),
        ("drip", "no answer within 0.8 s", True, None),
    ],
)
def test_what_may_pass_is_tried_again(
    server: Server, answer: Answer, text: str, may_have_arrived: bool, pause: float | None
) -> None:
    server.answers = [answer]
    post = sender(server, 0.2)
    with pytest.raises(SendError) as raised:
        post.send(ALERTS)
    assert (str(raised.value), raised.value.may_have_arrived) == (text, may_have_arrived)
    assert raised.value.pause_seconds == pause
    assert post.send(ALERTS) == []
    post.close()


def test_a_server_that_is_not_there_has_got_nothing() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        post = made(HttpAddress(f"http://127.0.0.1:{taken.getsockname()[1]}/?token=secret"))
        with pytest.raises(SendError) as raised:
            post.send(ONE)
    assert (str(raised.value), raised.value.may_have_arrived) == ("Connection refused", False)


def test_alerts_are_refused_together(server: Server) -> None:
    server.refused = lambda alert: alert["id"] == 1
    post = sender(server)
    refused = post.send(ALERTS)
    assert [refusal.alert for refusal in refused] == ALERTS
    assert {(refusal.status, refusal.reply) for refusal in refused} == {("400", "no such thing")}
    assert server.posts == [ALL]
    post.close()


def test_a_refusal_that_never_ends_is_taken_as_far_as_it_came(server: Server) -> None:
    server.answers = [(400, {"Content-Length": "99"})]
    post = sender(server, 0.2)
    (refusal,) = post.send(ONE)
    assert refusal.status == "400"
    post.close()


def lines(path: Path) -> list[int]:
    return [json.loads(line)["id"] for line in path.read_text().splitlines()] if path.exists() else []


def test_a_program_is_started_once_and_reads_a_line_for_each_alert(tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = made(Command((sys.executable, "-c", KEEPER, str(out))), 10)
    command.send(ALERTS)
    command.send(ONE)
    command.close()
    assert lines(out) == [0, 1, 2, 0]


def test_a_program_that_ends_is_started_again(tmp_path: Path) -> None:
    once = "import sys; open(sys.argv[1], 'a').write(sys.stdin.readline()); sys.exit(3)"
    command = made(Command((sys.executable, "-c", once, str(tmp_path / "out"))), 10)
    command.send(ONE)
    with pytest.raises(SendError) as raised:
        for _ in range(100_000):  # until the system notices its end
            command.send(ONE)
    assert str(raised.value) == "its end, with exit code 3"
    command.send(ONE)
    command.close()
    assert lines(tmp_path / "out") == [0, 0]


def test_a_program_that_reads_nothing_is_ended() -> None:
    idle = "import threading; threading.Event().wait()"
    command = made(Command((sys.executable, "-c", idle)), 0.2)
    long = Alert("job/1", "rule", "x" * 1_000_000)
    with pytest.raises(SendError, match=r"a program that reads nothing for 0\.2 s, and was ended") as raised:
        command.send([long])
    assert raised.value.may_have_arrived


def test_a_program_that_reads_too_slowly_is_ended() -> None:
    slow = "import os, threading\nwhile os.read(0, 4096): threading.Event().wait(0.05)"
    command = made(Command((sys.executable, "-c", slow)))
    with pytest.raises(SendError, match=r"a program that reads .*, and was ended") as raised:
        command.send([Alert("job/1", "rule", "x" * 1_000_000)])
    assert raised.value.may_have_arrived


def test_a_full_queue_of_kafka_s_client_is_waited_for_once() -> None:
    records = made(KafkaTopic("127.0.0.1:9", "alerts", {"queue.buffering.max.messages": "1"}))
    began = time.monotonic()
    with pytest.raises(SendError):
        records.send([Alert(f"job/{number}", "rule", "{}") for number in range(60)])
    assert time.monotonic() - began < 15  # of which each alert once took half a second
    records.close()


def test_a_program_that_is_not_there_is_a_failure() -> None:
    to = Command(("./nowhere",))
    command = CommandInput(to, AlertTarget(to, "local"))
    with pytest.raises(SendError, match=r"No such file or directory: \./nowhere"):
        command.send(ONE)


def test_an_option_of_kafka_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigError) as raised:
        made(KafkaTopic("localhost:9092", "alerts", {"sasl.jaas.config": "secret"}))
    assert str(raised.value).startswith("alerts.bus.kafka.options — must be options of Kafka's client; got ")
    assert "secret" not in str(raised.value)


def test_a_broker_that_is_not_there_is_named() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        servers = f"127.0.0.1:{taken.getsockname()[1]}"
        records = made(KafkaTopic(servers, "alerts"))
        with pytest.raises(SendError, match=f"{servers}/bootstrap: .*[Cc]onnect"):
            records.send(ONE)
    records.close()


def test_pauses_grow_to_half_a_minute_or_to_what_is_asked() -> None:
    found = [pause_seconds(failures, None) for failures in range(1, 2000)]
    assert found[0] == 0
    assert all(0.25 * 2**number <= found[number] <= 0.25 * 2**number + 1 for number in range(1, 5))
    assert set(found[20:]) == {30.0}
    assert pause_seconds(1, 50) == pause_seconds(2000, 50) == 50
    assert pause_seconds(1, 1e9) == pause_seconds(1, inf) == 3600
