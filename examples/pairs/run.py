"""Runs the Pairs benchmark: first what comes before the measured interval, then each tick when it is due.

    python -m examples.pairs.run --scale 1 [--minutes 4] [--kills 20]

The job reads a folder of Parquet files. Ten times a second the driver writes what is due as a file. At the
end all answers are compared with the oracle's; the figures are those of the measured interval.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from pathlib import Path

import click
import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.report.results import machine
from examples.pairs.latency import Sent, latencies
from examples.pairs.oracle import Trade, answers
from examples.pairs.report import Run, as_json, as_text
from examples.pairs.strategies import Strategy, as_events, drawn, legs, write
from examples.pairs.ticks import Setting, ticks
from examples.pairs.validation import COLUMNS, produced, validate
from spark_pace import read_table
from spark_pace.errors import SetupError, counted
from spark_pace_bench.job import COMMAND
from spark_pace_bench.watch import metrics_rows

ROOT = Path(__file__).parents[2]
FILES = (Path(__file__).parent / "job.yaml", Path(__file__).parent / "rules.yaml")
STANDARD_MINUTES, STANDARD_TAIL = 60.0, 30.0  # of the measured interval, of what follows
FILE_SECONDS = 0.1
LIMIT_SECONDS = 1_800
KILL_SECONDS = 2.0  # the most between a batch that is done and a kill


@dataclass
class Feed:
    """The folder that the job reads; `sent` knows the files with ticks that came when they were due."""

    folder: Path
    records: int = 0
    files: int = 0
    sent: Sent = field(default_factory=Sent)

    def append(self, table: pa.Table) -> float:
        """Put a table there as one more file; returns when its name was there."""
        name = f"{self.files:08d}.parquet"
        pq.write_table(table, self.folder / f".{name}")
        os.replace(self.folder / f".{name}", self.folder / name)
        self.files += 1
        self.records += table.num_rows
        return time.time()


class Job:
    """`spark-pace run` in a process of its own."""

    def __init__(self, folder: Path) -> None:
        """Start it in a folder that `prepare` has filled."""
        self.tables, self.log = folder / "tables", folder / "job.log"
        self._file = folder / "job.yaml"
        self.start()

    def start(self) -> None:
        """Start it, or start it again."""
        command = [sys.executable, "-c", COMMAND, "run", str(self._file)]
        with open(self.log, "ab") as log:
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd=ROOT
            )

    def kill(self) -> None:
        """End all its processes at once."""
        own = psutil.Process(self._process.pid)
        for process in [own, *own.children(recursive=True)]:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        self._process.wait()

    def stop(self) -> None:
        """Let it end the batch that it is at."""
        self._process.terminate()
        self._process.wait()

    def batches(self) -> int:
        """How many batches it has done."""
        return len(list((self.tables / "metrics" / "_delta_log").glob("*.json")))

    def wait_for(self, records: int, between: Callable[[], None] = lambda: None) -> None:
        """Wait until it has read so many records; `between` is called again and again.

        Raises:
            SetupError: it ends, or takes too long.
        """
        known: set[str] = set()
        read, until = 0, time.monotonic() + LIMIT_SECONDS
        while read < records:
            if self._process.poll() is not None or time.monotonic() > until:
                got = f"{read:,}, and exit code {self._process.poll()}"
                raise SetupError(
                    f"the job — must read {counted(records, 'record')}; got {got}. See {self.log}."
                )
            read += sum(row["records"] for row in metrics_rows(self.tables / "metrics", known))
            between()
            pause(FILE_SECONDS)


def pause(seconds: float) -> None:
    """Wait."""
    threading.Event().wait(max(0.0, seconds))


def parts_at(tables: Iterable[pa.Table], milliseconds: float) -> Iterator[tuple[bool, pa.Table]]:
    """Tables of ticks, cut at a time; before each stands whether it lies behind."""
    for table in tables:
        cut = int(np.searchsorted(table["time"].to_numpy(), milliseconds))
        if cut:
            yield False, table.slice(0, cut)
        if cut < table.num_rows:
            yield True, table.slice(cut)


def send(tables: Iterable[pa.Table], feed: Feed, began: float, between: Callable[[], None]) -> None:
    """Append what is due, again and again; `began` is when second 0 of the ticks was due."""
    feed.sent.began = began
    for table in tables:
        times, done = table["time"].to_numpy(), 0
        while done < table.num_rows:
            now = time.time()
            due = int(np.searchsorted(times, (now - began) * 1000, "right"))
            if due > done:
                at = feed.append(table.slice(done, due - done))
                feed.sent.note(int(times[due - 1]), at)
                done = due
            between()
            pause(FILE_SECONDS - (time.time() - now))


class Kills:
    """Kills the job, and starts it again, at moments of chance: soon after it has done a batch.

    Attributes:
        done: how many there were.
    """

    def __init__(self, job: Job, count: int, seconds: float, seed: int) -> None:
        """Kill it so many times, spread over so many seconds from now on."""
        self._chance = np.random.default_rng([seed, 4])
        spread = (np.arange(count) + self._chance.random(count)) / max(count, 1)
        self._left: list[float] = (time.time() + seconds * spread).tolist()
        self._job, self._begun, self._ready = job, job.batches(), 0.0
        self.done = 0

    def look(self) -> None:
        """Kill it if it is time to."""
        if self._left and not self._ready and self._job.batches() > self._begun:
            self._ready = time.time() + KILL_SECONDS * self._chance.random()
        if self._left and self._ready and time.time() >= max(self._ready, self._left[0]):
            self._left.pop(0)
            self._job.kill()
            self._begun, self._ready = self._job.batches(), 0.0
            self._job.start()
            self.done += 1


def prepare(folder: Path, strategies: Sequence[Strategy]) -> None:
    """Write what a job needs but for its events."""
    (folder / "events").mkdir(parents=True)
    for file in FILES:
        shutil.copy(file, folder)
    write(folder / "strategies.xml", strategies)
    pq.write_table(legs(strategies), folder / "legs.parquet")


def drive(
    setting: Setting, strategies: Sequence[Strategy], folder: Path, count: int
) -> tuple[Job, Feed, int]:
    """Run the job over all ticks, and kill it so many times; it has stopped then.

    Returns:
        The job, what it was fed, and how many kills there were.
    """
    feed = Feed(folder / "events")
    feed.append(as_events(strategies))
    begin, _ = setting.measured
    parts = groupby(parts_at(ticks(setting), 1000 * begin), itemgetter(0))
    for _, table in next(parts)[1]:
        feed.append(table)
    click.echo(f"{counted(feed.records, 'record')} before the measured interval")
    seconds = 60 * sum(setting.minutes[2:])
    job = Job(folder)
    try:
        job.wait_for(feed.records)
        click.echo(f"now {seconds:.0f} s of ticks, each when it is due")
        kills = Kills(job, count, seconds, setting.seed)
        live = (table for _, table in next(parts)[1])
        send(live, feed, time.time() + FILE_SECONDS - begin, kills.look)
        job.wait_for(feed.records, kills.look)
    finally:
        job.stop()
    return job, feed, kills.done


def trades(setting: Setting) -> Iterator[Trade]:
    """The ticks as the oracle takes them."""
    for table in ticks(setting):
        columns = (table[name].to_pylist() for name in ("time", "symbol", "price"))
        yield from zip(*columns, strict=True)


def run(setting: Setting, folder: Path, kills: int = 0) -> Run:
    """Run the benchmark in a folder, which is emptied."""
    shutil.rmtree(folder, ignore_errors=True)
    strategies = drawn(setting)
    prepare(folder, strategies)
    job, feed, done = drive(setting, strategies, folder, kills)
    click.echo("validating")
    matches = read_table(job.tables, "matches", list(COLUMNS))
    validations = validate(answers(strategies, trades(setting)), produced(matches))
    batches = [row["seconds"] for row in metrics_rows(job.tables / "metrics", set())]
    found = latencies(job.tables / "matches", feed.sent, setting)
    return Run(setting, done, feed.records, validations, found, batches)


@click.command(help=__doc__)
@click.option("--scale", default=1, show_default=True, type=click.IntRange(1), help="The scale factor.")
@click.option(
    "--minutes", default=4.0, show_default=True, help="Of the measured interval; the standard is 60."
)
@click.option(
    "--kills", default=0, show_default=True, help="How often the job is killed while it is measured."
)
@click.option("--seed", default=1, show_default=True)
@click.option("--out", default=ROOT / "out" / "pairs", type=click.Path(path_type=Path))
def main(scale: int, minutes: float, kills: int, seed: int, out: Path) -> None:
    """Run; the exit code is 1 if an answer is missing, undue or wrong."""
    tail = STANDARD_TAIL if minutes == STANDARD_MINUTES else 0.0
    setting = Setting(scale, seed, minutes=(1.0, 30.0, minutes, tail))
    folder = out / f"scale_{scale}{'_killed' if kills else ''}"
    found = run(setting, folder, kills)
    report = {**as_json(found), "machine": machine()}
    (folder / "report.json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    click.echo(as_text(found))
    sys.exit(not all(one.passed for one in found.validations.values()))


if __name__ == "__main__":
    main()
