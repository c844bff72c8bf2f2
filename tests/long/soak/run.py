"""A soak (`make soak MINUTES=30`): broker, producer and job, watched from outside, then checked and reported.

Events come at a constant rate, for a while at ten times of it. When they have stopped, the job is stopped and
run to the end of what there is, on the same checkpoint. It fails if a record or a match is lost or too many,
or if the memory of the driver, of the JVM (outside the heap, and in use inside it) or of the workers grows:
see `tolerance.grows`.
"""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import replace

import click

from benchmarks.jobs import ROOT
from examples.kafka.broker import Broker
from tests.long.soak import producer, report
from tests.long.soak.check import Account, check
from tests.long.soak.sampler import Sample, Sampler, Watched
from tests.long.soak.settings import TOPIC, Settings, from_environment
from tests.long.soak.tolerance import Tolerance
from tests.support.commands import environment

FIRST_MINUTES = 1 / 60  # of events, so that there is a first batch
SAMPLE_SECONDS = 3
CATCH_UP_SAMPLES = 100
STOP_SECONDS = 60


def run(settings: Settings) -> tuple[Account, Watched]:
    """Everything but the report."""
    shutil.rmtree(settings.out, ignore_errors=True)
    settings.out.mkdir(parents=True)
    broker = Broker(settings.out / "broker")
    broker.start()
    try:
        broker.create_topic(TOPIC, settings.partitions)
        settings.write_job(broker.servers)
        watched = _watch(settings, broker.servers)
        with _job(settings, "finish") as last:
            _require(last, 0)
    finally:
        broker.stop()
    return check(settings), watched


def _watch(settings: Settings, servers: str) -> Watched:
    """Produce and run the job until it has caught up after the last event; then stop it."""
    with ExitStack() as stack:
        job = stack.enter_context(_job(settings, f"--look-s={settings.look_s}"))
        with _producer(replace(settings, minutes=FIRST_MINUTES, burst=1), servers) as first:
            _require(first, 0)
        sampler = stack.enter_context(closing(Sampler(settings, job.pid, servers)))
        while not sampler.batches:  # what Spark's start and the first batch cost is no part of the load
            _sample(settings, job, sampler)
        watched = Watched(time.time(), batches=sampler.batches)
        with _producer(settings, servers) as source:
            while source.poll() is None:
                watched.samples.append(_sample(settings, job, sampler))
            _require(source, 0)
        for _ in range(CATCH_UP_SAMPLES):
            if watched.samples[-1]["lag"] == 0:
                break
            watched.samples.append(_sample(settings, job, sampler))
        job.send_signal(signal.SIGTERM)
        job.wait(STOP_SECONDS)
    return watched


def _sample(settings: Settings, job: subprocess.Popen[bytes], sampler: Sampler) -> Sample:
    """One more sample, some seconds after the last."""
    threading.Event().wait(SAMPLE_SECONDS)
    if job.poll() is not None:
        raise SystemExit(
            f"the job ended by itself with exit code {job.returncode}: see {settings.out / 'job.log'}"
        )
    return sampler.sample()


def _job(settings: Settings, *arguments: str) -> AbstractContextManager[subprocess.Popen[bytes]]:
    return _process(
        settings, "job", [sys.executable, "-m", "tests.long.soak.job", str(settings.job_file), *arguments]
    )


def _producer(settings: Settings, servers: str) -> AbstractContextManager[subprocess.Popen[bytes]]:
    return _process(settings, "producer", producer.command(servers, settings))


@contextmanager
def _process(settings: Settings, name: str, command: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """A process that does not outlive the soak; what it says goes into a log."""
    with (
        open(settings.out / f"{name}.log", "ab") as log,
        subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log, env=environment()) as process,
    ):
        try:
            yield process
        finally:
            process.kill()


def _require(process: subprocess.Popen[bytes], code: int) -> None:
    if process.wait() != code:
        raise SystemExit(f"{process.args!r} — must end with {code}; got {process.returncode}")


def soak(settings: Settings, tolerance: Tolerance) -> list[str]:
    """Run, write `report.json`, and print the table; what is wrong, in sentences."""
    account, watched = run(settings)
    result = report.summarize(settings, account, watched, tolerance)
    (settings.out / "report.json").write_text(json.dumps(result, indent=1) + "\n")
    print(report.as_text(result), flush=True)
    print(f"written to {settings.out / 'report.json'}")
    return [*account.differences, *result["grows"]]


@click.command()
def main() -> None:
    """Keep a job under load, and report it, with MINUTES, RATE and BURST of the environment."""
    problems = soak(from_environment(), Tolerance(share=0.05, least_mb=32))
    for problem in problems:
        print(problem, file=sys.stderr)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
