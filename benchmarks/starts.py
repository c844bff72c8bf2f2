"""The start of a job: the seconds from the command `spark-pace run` to its parts and to its first result.

The job has one file of 1,000 events; each run begins with a new checkpoint and a new sink. The command runs
as a user would run it, but for its calls being noted. Given are medians over the runs.
"""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import click

if TYPE_CHECKING:
    from benchmarks.rows import Row, Sizes

ROOT = Path(__file__).parents[1]
NAME = "starts"
JOB = """
name: starts
source: {{kind: files, format: json, path: {events}}}
events:
  schema: "ts BIGINT, id BIGINT, etype STRING, value DOUBLE"
  event_time: ts
  time_unit: ms
rules: [{rules}]
sink: {{kind: delta, path: {out}}}
checkpoint: {out}/_checkpoint
trigger: available_now
finish: false
"""


@click.command()
@click.argument("path")
def command(path: str) -> None:
    """In a process of its own: run the job at PATH; print each noted moment and the time."""
    from spark_pace.cli.main import main

    note("spark_pace is imported")
    note_the_rest()
    sys.argv = ["spark-pace", "run", path]
    main()


def note_the_rest() -> None:
    """Import what runs a job, and let it note its moments."""
    from pyspark.sql.classic.dataframe import DataFrame

    from spark_pace import job as jobs
    from spark_pace.cli import run as cli
    from spark_pace.io.delta_tables import DeltaTables
    from spark_pace.spark import session
    from spark_pace.spark.stages.merger import MergerHost

    note("all is imported")
    begins = {
        (jobs, "run_job"): "the job file is read",
        (session, "launch"): "the JVM is asked for",
        (MergerHost, "__call__"): "the first batch is planned",
        (cli, "line"): "first result",
    }
    ends = {
        (session, "launch"): "the JVM answers",
        (jobs, "build_plan"): "Spark has started, all is checked",
        (jobs, "start"): "the query has started",
        (DataFrame, "toArrow"): "the first batch is computed",
        (DeltaTables, "prepare"): "the tables are ready",
    }
    patches: dict[Any, Any] = {}
    for place in {**begins, **ends}:
        patches[place] = patch.object(*place, noted(getattr(*place), begins.get(place), ends.get(place)))
    patch.object(cli, "run_job", noted(jobs.run_job, "the job file is read", None)).start()
    for one in patches.values():
        one.start()


_noted: set[str] = set()


def note(moment: str | None) -> None:
    """Print a moment, the first time it comes."""
    if moment is not None and moment not in _noted:
        _noted.add(moment)
        print(json.dumps([moment, time.time(), processor_seconds()]), flush=True)


def processor_seconds() -> float:
    """What this process and all that it has started have taken of the processors; loads psutil when asked."""
    import psutil

    process, taken = psutil.Process(), 0.0
    for one in (process, *process.children(recursive=True)):
        with suppress(psutil.Error):
            times = one.cpu_times()
            taken += times.user + times.system
    return taken


def noted(function: Callable[..., Any], begin: str | None, end: str | None) -> Callable[..., Any]:
    """The function, with the moments noted at which it is first called and first returns."""

    def call(*arguments: Any, **named: Any) -> Any:
        note(begin)
        result = function(*arguments, **named)
        note(end)
        return result

    return call


def one_run(job: Path, out: Path) -> dict[str, float]:
    """Seconds from the command to each moment, and what the processors have done until then."""
    shutil.rmtree(out, ignore_errors=True)
    began = time.time()
    answer = subprocess.run(
        [sys.executable, "-m", "benchmarks.starts", str(job)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    moments = [json.loads(line) for line in answer.stdout.splitlines() if line.startswith("[")]
    seconds = {moment: at - began for moment, at, _ in moments}
    taken = {f"{moment} (processors)": used for moment, _, used in moments}
    return {**seconds, "end": time.time() - began, **taken}


def measure(sizes: Sizes) -> Iterator[Row]:
    """The medians of each moment."""
    from benchmarks.events import write_events  # not where the command runs: it imports pyarrow
    from benchmarks.rows import Row

    folder = ROOT / "out" / "bench" / NAME
    folder.mkdir(parents=True, exist_ok=True)
    events = write_events(ROOT / "data" / "bench" / NAME, 1_000, 1, "number")
    job = folder / "job.yaml"
    rules = ROOT / "benchmarks" / "batches.yaml"
    job.write_text(JOB.format(events=events, rules=rules, out=folder / "run"), encoding="utf-8")
    runs = [one_run(job, folder / "run") for _ in range(sizes.starts)]
    for moment in runs[0]:
        seconds = statistics.median(run[moment] for run in runs)
        yield Row("starts", moment, seconds, "s", None, None, "the run has ended without an error")


if __name__ == "__main__":
    command()
