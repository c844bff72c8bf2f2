"""A running job tells Prometheus what it has done so far."""

from __future__ import annotations

import socket
from dataclasses import replace
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families

from spark_pace.io.metrics import BatchReport
from spark_pace.job import run_job
from spark_pace.job_file import Endpoint
from tests.spark.jobs import job, random_events, write_files

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]


def test_a_running_job_answers_prometheus_and_an_ended_one_does_not(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    spec, address = replace(job(tmp_path), metrics=Endpoint(port)), f"http://127.0.0.1:{port}/metrics"
    write_files(tmp_path, random_events(5), 3)
    told: list[dict[str, float]] = []

    def ask(_: BatchReport) -> None:
        with urlopen(address, timeout=10) as answer:
            families = list(text_string_to_metric_families(answer.read().decode()))
        samples = [sample for family in families for sample in family.samples]
        told.append({sample.labels.get("rule", sample.name): sample.value for sample in samples})

    summary = run_job(spec, on_progress=ask)
    assert [one["spark_pace_batches_total"] for one in told] == list(range(1, summary.batches + 1))
    assert told[-1]["spark_pace_events_total"] == summary.events == 200
    assert {name: told[-1][name] for name in summary.matches} == summary.matches
    with pytest.raises(URLError):
        urlopen(address, timeout=10)
