"""The page of a running job: what it answers by HTTP and to whom, and how it tells whether all is well."""

from __future__ import annotations

import http.client
import json
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from examples.ports import free_port
from spark_pace.errors import ConfigError, SetupError, StateError
from spark_pace.io import timeline
from spark_pace.job_file import Endpoint, JobSpec, Page
from spark_pace.watching import page
from spark_pace.watching.answering import Health, answering
from spark_pace.watching.page import POLICY_OF_ANSWERS, Pages
from spark_pace.watching.page import served as answered
from tests.support.watched import HOSTILE, pairs_of_events, watched_job
from tests.unit.test_prometheus import HOST, batch


def asked(port: int, path: str, method: str = "GET", host: str = HOST) -> tuple[int, Any, bytes]:
    """(the code, the headers, the content) of an answer."""
    connection = http.client.HTTPConnection(HOST, port, timeout=30)
    connection.request(method, path, headers={"Host": f"{host}:{port}"})
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer.status, answer.headers, content


def with_page(spec: JobSpec, port: int, host: str = HOST) -> JobSpec:
    return replace(spec, page=Page(port, host))


@contextmanager
def served(look: Callable[[], Any], healthy: bool = True) -> Iterator[int]:
    port = free_port()
    pages = Pages("job", look, lambda: {"healthy": healthy})
    with answered("page", pages.answer, Endpoint(port), POLICY_OF_ANSWERS):
        yield port


def test_a_job_serves_the_page_with_what_the_report_tells(tmp_path: Path) -> None:
    watched = watched_job(tmp_path, 1, pairs_of_events(8))
    watched.batch({"rule_0": 4})
    port = free_port()
    with answering(with_page(watched.spec, port), list) as heard:
        code, headers, content = asked(port, "/")
        assert code == 200 and headers["Content-Type"] == "text/html; charset=utf-8"
        assert headers["Content-Security-Policy"].startswith("default-src 'none'; script-src 'self'; ")
        assert headers["Set-Cookie"] is None and headers["X-Content-Type-Options"] == "nosniff"
        assert HOSTILE not in content.decode() and b"<title>watched &lt;/script&gt;" in content
        told = json.loads(asked(port, "/told.json")[2])
        assert told["rules"]["matches"] == [4] and told["newest"][0]["rule"] == "rule_0"
        assert asked(port, "/plotly.js")[2].startswith(b"/**")
        assert b'"use strict"' in asked(port, "/page.js")[2]
        assert json.loads(asked(port, "/healthz")[2])["state"] == "starts"
        heard.batch(batch(0))
        heard.works(False)
        assert json.loads(asked(port, "/healthz")[2])["state"] == "waits"
        for path in ("/told", "/../job.yaml", "/told.json/", "/%2e%2e/job.yaml", "/page.html"):
            assert asked(port, path)[0] == 404
        for method in ("POST", "PUT", "DELETE", "HEAD", "OPTIONS"):
            code, headers, _ = asked(port, "/", method)
            assert code == 405 and headers["Allow"] == "GET"
    with pytest.raises(ConnectionRefusedError):
        asked(port, "/")


def test_rules_that_a_job_takes_over_stand_on_its_page_and_are_counted(tmp_path: Path) -> None:
    spec, port, counters = watched_job(tmp_path, 2).spec, free_port(), free_port()
    first = replace(
        with_page(spec, port), rules=spec.rules[:1], paused=("rule_1",), metrics=Endpoint(counters)
    )
    with answering(first, list) as heard:
        assert [f for f in json.loads(asked(port, "/told.json")[2])["figures"] if f[0] == "paused"]
        heard.ready(replace(first, rules=spec.rules, paused=()))
        assert b'rule="rule_1"} 0.0' in asked(counters, "/metrics")[2]
        heard.batch(batch(0))
        told: dict[str, Any] = {}
        while "rule_1" not in told.get("rules", {}).get("names", []):  # it looks again after a while
            told = json.loads(asked(port, "/told.json")[2])
        assert "paused" not in dict(told["figures"]) and told["rules"]["about"][1].startswith("Rule 1 ")


def test_a_name_that_others_let_lead_to_this_machine_is_refused() -> None:
    """A page of somebody else's could read the job's otherwise."""
    with served(dict) as port:
        assert [asked(port, "/", host=host)[0] for host in ("localhost", "127.0.0.1", "[::1]")] == [200] * 3
        assert [asked(port, "/told.json", host=host)[0] for host in ("evil.example", "[", "")] == [403] * 3


def test_the_counters_too_are_refused_to_a_foreign_name_and_to_who_would_change_them(tmp_path: Path) -> None:
    port = free_port()
    spec = replace(watched_job(tmp_path, 1).spec, metrics=Endpoint(port))
    with answering(spec, list):
        assert [asked(port, "/metrics", host=host)[0] for host in (HOST, "evil.example")] == [200, 403]
        assert asked(port, "/metrics", "POST")[0] == 405


def test_silent_connections_take_few_files_and_keep_nobody_waiting() -> None:
    with served(dict) as port:
        before = len(os.listdir("/proc/self/fd"))
        silent = [socket.create_connection((HOST, port)) for _ in range(300)]
        assert asked(port, "/healthz")[0] == 200
        assert len(os.listdir("/proc/self/fd")) - before - len(silent) <= 2 * page._MOST_CONNECTIONS
        assert silent[0].recv(1) == b""  # the first one was ended for the others
        for one in silent:
            one.close()


def test_who_says_nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page._Handler, "timeout", 0.1)
    with served(dict) as port, socket.create_connection((HOST, port)) as silent:
        silent.settimeout(30)
        silent.sendall(b"GET / HT")
        assert silent.recv(1) == b""


def test_who_asks_while_the_first_look_does_not_end_is_told_so_and_the_job_is_well(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun, go_on = threading.Event(), threading.Event()
    monkeypatch.setattr(page, "_FIRST_LOOK_SECONDS", 0.05)

    def look() -> bool:
        begun.set()
        return go_on.wait(30)

    with served(look) as port:
        looking = threading.Thread(target=asked, args=(port, "/told.json"))
        looking.start()
        assert begun.wait(30)
        answers = [asked(port, path)[0] for path in ("/told.json", "/healthz")]
        go_on.set()
        looking.join()
    assert answers == [503, 200]


def test_tables_that_are_not_there_yet_or_damaged_are_told_and_the_page_goes_on() -> None:
    found: list[Any] = [StateError("it — must be; got. Do."), ValueError("<b>"), {"name": "job"}]

    def look() -> Any:
        answer = found.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    with served(look) as port:
        answers = [asked(port, "/told.json") for _ in range(3)]
    assert [code for code, _, _ in answers] == [503, 503, 200]
    assert json.loads(answers[0][2]) == {"error": "it — must be; got. Do."}
    assert "ValueError" in json.loads(answers[1][2])["error"]


def test_however_many_ask_the_tables_are_looked_at_once() -> None:
    looks: list[int] = []
    looking, go_on = threading.Event(), threading.Event()

    def look() -> list[int]:
        looks.append(1)
        looking.set()
        go_on.wait(30)
        return looks

    told = Pages("job", look, dict)
    threads = [threading.Thread(target=told.told) for _ in range(5)]
    for thread in threads:
        thread.start()
    assert looking.wait(30)
    go_on.set()
    for thread in threads:
        thread.join()
    assert told.told() == b"[1]" and looks == [1]


def test_the_end_of_a_job_waits_for_a_look() -> None:
    looking, go_on, ended = threading.Event(), threading.Event(), threading.Event()

    def look() -> str:
        looking.set()
        go_on.wait(30)
        return "all"

    told = Pages("job", look, dict)
    asking = threading.Thread(target=told.told)
    asking.start()
    assert looking.wait(30)

    def end() -> None:
        told.end()
        ended.set()

    ending = threading.Thread(target=end)
    ending.start()
    assert not ended.is_set()
    go_on.set()
    ending.join(30)
    asking.join(30)
    assert ended.is_set() and told.told() == b'"all"'


def test_who_asks_nothing_costs_nothing(tmp_path: Path) -> None:
    watched = watched_job(tmp_path, 1)
    with answering(with_page(watched.spec, free_port()), list) as heard:
        before = threading.active_count()
        heard.batch(batch(0))
        assert threading.active_count() == before


def test_a_job_is_unhealthy_only_while_a_batch_is_under_way_for_too_long() -> None:
    health = Health(60.0)
    assert health.told(9_000.0)["state"] == "starts" and health.told(9_000.0)["healthy"]
    for now in (1_000.0, 1_030.0):
        health.works(True, now)
    assert health.told(1_060.0)["under_way_seconds"] == 60.0 and health.told(1_060.0)["healthy"]
    assert health.told(1_061.0) == {
        "healthy": False,
        "state": "hangs",
        "batch": None,
        "last_batch_seconds": None,
        "under_way_seconds": 61.0,
    }
    health.after(batch(0), 1_070.0)
    assert health.told(1_071.0)["state"] == "works"  # Spark has not noted its end yet
    health.works(False, 1_071.5)
    assert health.told(99_999.0) == {
        "healthy": True,
        "state": "waits",
        "batch": 0,
        "last_batch_seconds": 98_929.0,
        "under_way_seconds": None,
    }
    health.works(True, 100_000.0)
    assert (health.told(100_030.0)["state"], health.told(100_061.0)["state"]) == ("works", "hangs")


def test_whether_a_job_is_well_is_told_without_a_word_to_its_store(tmp_path: Path) -> None:
    with socket.create_server((HOST, 0)) as silent:
        settings = {
            "endpoint": f"http://{HOST}:{silent.getsockname()[1]}",
            "access.key": "a",
            "secret.key": "b",
        }
        spec = replace(
            watched_job(tmp_path, 1).spec,
            checkpoint_path="s3a://bucket/checkpoint",
            spark={f"spark.hadoop.fs.s3a.{name}": value for name, value in settings.items()},
        )
        port = free_port()
        with answering(with_page(spec, port), list) as heard:
            heard.works(True)
            assert json.loads(asked(port, "/healthz")[2])["under_way_seconds"] is not None
        silent.settimeout(0)
        with pytest.raises(BlockingIOError):
            silent.accept()


def test_an_unhealthy_job_answers_503() -> None:
    with served(dict, healthy=False) as port:
        assert (asked(port, "/healthz")[0], asked(port, "/")[0]) == (503, 200)


def test_a_port_that_is_taken_a_host_that_cannot_be_and_a_missing_package_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = watched_job(tmp_path, 1).spec
    with socket.socket() as taken:
        taken.bind((HOST, 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(SetupError) as refused, answering(with_page(spec, port), list):
            pass
    assert str(refused.value).startswith(
        f"page — must be an address of this machine that is free; got {HOST}:{port}, "
    )
    with (
        pytest.raises(SetupError, match="page — must be"),
        answering(with_page(spec, port, "a..b"), list),
    ):
        pass
    monkeypatch.setattr(timeline, "find_spec", lambda name: None)
    with (
        pytest.raises(ConfigError, match="must be installed to draw a page"),
        answering(with_page(spec, free_port()), list),
    ):
        pass
