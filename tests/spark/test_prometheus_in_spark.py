"""A running job tells Prometheus and its page what it has done so far."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families

from spark_pace.io.metrics import BatchReport
from spark_pace.job import run_job
from spark_pace.job_file import Endpoint, Page
from tests.spark.jobs import job, random_events, write_files

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]


def free_ports() -> tuple[int, int]:
    with socket.socket() as one, socket.socket() as other:
        one.bind(("127.0.0.1", 0))
        other.bind(("127.0.0.1", 0))
        return one.getsockname()[1], other.getsockname()[1]


def stop_once_it_waits(page: str) -> None:
    state = ""
    while state != "waits":
        with urlopen(f"{page}/healthz", timeout=30) as answer:
            state = json.loads(answer.read())["state"]
    os.kill(os.getpid(), signal.SIGTERM)


def test_a_running_job_answers_and_an_ended_one_does_not(tmp_path: Path) -> None:
    port, of_page = free_ports()
    spec = replace(job(tmp_path), metrics=Endpoint(port), page=Page(of_page))
    spec = replace(spec, trigger_us=1_000_000, finish=False)
    address, page = f"http://127.0.0.1:{port}/metrics", f"http://127.0.0.1:{of_page}"
    write_files(tmp_path, random_events(5), 2)
    told: list[dict[str, float]] = []
    shown: list[Any] = []
    health: list[Any] = []

    def ask(_: BatchReport) -> None:
        with urlopen(address, timeout=10) as answer:
            families = list(text_string_to_metric_families(answer.read().decode()))
        samples = [sample for family in families for sample in family.samples]
        told.append({sample.labels.get("rule", sample.name): sample.value for sample in samples})
        for path, answers in (("told.json", shown), ("healthz", health)):
            with urlopen(f"{page}/{path}", timeout=30) as answer:
                answers.append(json.loads(answer.read()))
        with urlopen(page, timeout=10) as answer:
            assert b'<script src="page.js">' in answer.read()
        with pytest.raises(HTTPError, match="404"):
            urlopen(f"{page}/checkpoint", timeout=10)
        if len(told) == 1:
            threading.Thread(target=stop_once_it_waits, args=[page]).start()

    summary = run_job(spec, on_progress=ask)
    assert summary.stopped_by == signal.SIGTERM
    assert [one["spark_pace_batches_total"] for one in told] == list(range(1, summary.batches + 1))
    assert told[-1]["spark_pace_events_total"] == summary.events == 200
    assert {name: told[-1][name] for name in summary.matches} == summary.matches
    assert [one["batch"] for one in health] == list(range(summary.batches))
    assert {one["state"] for one in health} == {"works"}
    assert shown[0]["state"]["word"] == "runs" and shown[0]["wrong"] is None
    assert sorted(shown[0]["rules"]["names"]) == sorted(summary.matches)
    for closed in (address, page):
        with pytest.raises(URLError):
            urlopen(closed, timeout=10)
