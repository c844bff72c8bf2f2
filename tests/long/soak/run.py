"""A soak (`make soak MINUTES=30`): the load driver loads a job, which is watched, then checked and reported.

Events come at a constant rate, for a while at ten times of it; of a thousand records one is bad and one a
minute late. When they have stopped, the job is stopped and run to the end of what there is, on the same
checkpoint. It fails if a record or a match is lost or too many, or if the memory of the driver, of the JVM
(outside the heap, and in use inside it) or of the workers grows: see `growth.grows`.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from dataclasses import asdict

import click
import numpy as np

from examples.kafka.broker import Broker
from spark_pace.errors import counted
from spark_pace_bench.drive import drive
from spark_pace_bench.records import Records, make_records
from spark_pace_bench.report import as_text
from spark_pace_bench.run_file import read_run_file
from spark_pace_bench.schedule import Ints
from spark_pace_bench.spec import RunSpec
from spark_pace_bench.summary import summarize
from tests.long.soak.check import check
from tests.long.soak.growth import Tolerance, curves, growing, judged_from, told, trends_of
from tests.long.soak.looks import Looks
from tests.long.soak.settings import PARTITIONS, TOPIC, Settings
from tests.support.commands import ROOT, environment

LATE_US = 60_000_000
BAD = (
    '{"t":"yesterday","value":1}',
    "no JSON at all",
    '{"kind":"<script>alert(1)</script>"}',
    '{"t":"2026-01-01T00:00:00Z","value":"high"}',
)


class Spoilt(Records):
    """Records of which of a thousand one is bad and one a minute late."""

    def lines(self, first: int, due_us: Ints) -> list[str]:
        """As `Records.lines`."""
        number = first + np.arange(len(due_us))
        lines = super().lines(first, np.where(number % 1000 == 499, due_us - LATE_US, due_us))
        for bad in np.flatnonzero(number % 1000 == 999).tolist():
            lines[bad] = BAD[number[bad] // 1000 % len(BAD)]
        return lines


def spoilt(run: RunSpec, count: int) -> Spoilt:
    """The records of a run, some of them spoilt."""
    return Spoilt(**vars(make_records(run, count)))


def soak(settings: Settings, tolerance: Tolerance) -> list[str]:
    """Run, write `report.json`, and print the tables; what is wrong, in sentences."""
    shutil.rmtree(settings.out, ignore_errors=True)
    folder = settings.out / "run"
    folder.mkdir(parents=True)
    broker = Broker(settings.out / "broker")
    broker.start()
    try:
        broker.create_topic(TOPIC, PARTITIONS)
        (run,) = read_run_file(settings.write_run(broker.servers))
        looks = Looks(settings, folder)
        driven = drive(run, folder, looks.tell, spoilt)
    finally:
        broker.stop()
    account, figures = check(driven, folder / "tables", folder / "sent"), summarize(driven)
    begins = judged_from(settings, figures)
    every = list(curves(driven, figures, looks.samples))
    trends = trends_of(every, begins)
    grown = growing(trends, tolerance)
    report = {
        "account": asdict(account),
        "run": figures,
        "grows": grown,
        "trends": {curve.name: asdict(trend) for curve, trend in trends},
        "series": [asdict(curve) for curve in every],
    }
    (settings.out / "report.json").write_text(json.dumps(report, indent=1) + "\n")
    print(as_text(figures))
    print(
        f"produced {account.produced:,} = {counted(account.events, 'event')} + {account.late:,} late "
        f"+ {account.bad:,} bad\n"
        f"{'':44} {'':>10} {'median':>12} {'greatest':>12}  median and trend after second {begins:.0f}"
    )
    print(*(told(*one) for one in trends), f"written to {settings.out / 'report.json'}", sep="\n", flush=True)
    return [*account.differences, *grown]


@click.command()
@click.option("--minutes", envvar="MINUTES", default=30.0)
@click.option("--rate", envvar="RATE", default=2000)
@click.option("--burst", envvar="BURST", default=10)
def main(minutes: float, rate: int, burst: int) -> None:
    """Keep a job under load, and report it."""
    os.environ.update(environment())
    settings = Settings(ROOT / "out" / "soak", minutes, rate, burst)
    problems = soak(settings, Tolerance(share=0.05, least_mb=32))
    print(*problems, sep="\n", file=sys.stderr)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
