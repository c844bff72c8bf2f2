"""The measurements of the project (`make bench`, `make bench-full`): one table of them, and their runner.

A measurement is a module with a function `measure(sizes)` that gives rows (`benchmarks.rows`); it checks its
results before it gives a figure. Each runs in a process of its own. The rows go to the terminal, to JSON with
the versions and the machine, and to plots.

    python -m benchmarks.run [--sizes small|bench|full] [--events N] [--compare OLD.json] [NAME ...]
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from benchmarks.report.plots import write
from benchmarks.report.results import Results, machine
from benchmarks.report.table import compared, table
from benchmarks.rows import SIZES, Row, Sizes

ROOT = Path(__file__).parents[1]
FULL = ("full",)


@dataclass(frozen=True)
class Measurement:
    """What a module of `benchmarks` measures; `sizes`: those in which it runs unless it is named."""

    module: str
    what: str
    sizes: tuple[str, ...] = ("small", "bench", "full")


MEASUREMENTS = {
    "patterns": Measurement("patterns", "four patterns: files to Delta, the core, the peers"),
    "readers": Measurement("readers", "the reader of JSON beside pyarrow's, alone"),
    "matches": Measurement("matches", "the way of matches from the operator to the table"),
    "kernels": Measurement("forms", "each form of rules and each context in the core"),
    "rules": Measurement("many_rules", "many rules over one scan"),
    "keys": Measurement("keys", "a batch while many keys are live"),
    "carry": Measurement("carry", "a batch in the core while many events wait"),
    "waits": Measurement("waits", "a batch of the job while many events wait", FULL),
    "panes": Measurement("panes", "averages over windows that slide by a second, and many of them", FULL),
    "batches": Measurement("batches", "the fixed cost of a batch"),
    "growth": Measurement("growth", "each stage of a batch as events, carried events and matches grow"),
    "tasks": Measurement("tasks", "what Spark takes to schedule a task"),
    "network": Measurement("network", "two executors on machines of their own, by bandwidth (as root)", ()),
    "stores": Measurement("stores", "a batch in an object store beside one on a disk", ()),
    "cores": Measurement("cores", "two slots beside one"),
    "starts": Measurement("starts", "from the command to the first result"),
    "catchup": Measurement("catchup", "a backlog in Kafka, beside Spark's own reader", FULL),
    "latency": Measurement("latency", "from append to commit at 50,000 and at 100,000 events a second", FULL),
    "pairs": Measurement("pairs", "the Pairs benchmark at several scale factors", FULL),
    "lanes": Measurement("lanes", "lanes by a bound", FULL),
    "strategies": Measurement("strategies", "the strategies of earliest, selected", FULL),
    "worst": Measurement("worst", "the slowest rules of the core: fixed ones, and of random ones", FULL),
    "row_patterns": Measurement("row_patterns", "queries with MATCH_RECOGNIZE, beside Flink SQL", FULL),
    "explosions": Measurement("explosions", "windows that hold far more combinations than matches", ()),
}


@click.command(help=__doc__, context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("names", nargs=-1, type=click.Choice(list(MEASUREMENTS)))
@click.option("--sizes", "chosen", default="bench", show_default=True, type=click.Choice(list(SIZES)))
@click.option("--events", type=click.IntRange(min=1_000), help="Of each stream, instead of those of --sizes.")
@click.option(
    "--compare", type=click.Path(exists=True, dir_okay=False), help="The results of an earlier run."
)
@click.option("--out", default=str(ROOT / "out" / "bench" / "results"), help="The folder for JSON and plots.")
@click.option("--here", is_flag=True, hidden=True, help="Measure in this process; print the rows as JSON.")
def main(
    names: tuple[str, ...], chosen: str, events: int | None, compare: str | None, out: str, here: bool
) -> None:
    """Measure; the exit code is 1 if a measurement ended without rows or a target is missed."""
    sizes = SIZES[chosen].with_events(events) if events else SIZES[chosen]
    names = names or tuple(name for name, one in MEASUREMENTS.items() if chosen in one.sizes)
    if here:
        for row in rows_of(names[0], sizes):
            print(json.dumps(asdict(row)), flush=True)
        return
    console = Console(width=140 if not sys.stdout.isatty() else None)
    results = Results(machine(), asdict(sizes), [])
    failed = []
    for name in names:
        rows, code = in_own_process(name, chosen, events)
        results.rows.extend(rows)
        console.print(table(name, MEASUREMENTS[name].what, rows))
        failed += [name] if code else []
        path = results.write(Path(out) / "results.json")  # each time: a run may be ended before its end
    console.print(f"written to {path} and {write(results, Path(out))}")
    if compare:
        console.print(compared(Results.read(Path(compare)), results))
    for name in failed:
        console.print(f"{name}: ended without all of its figures; see above", style="red")
    missed = [row for row in results.rows if row.reached is False]
    sys.exit(1 if failed or missed else 0)


def rows_of(name: str, sizes: Sizes) -> Iterator[Row]:
    """The rows of a measurement, made in this process."""
    yield from import_module(f"benchmarks.{MEASUREMENTS[name].module}").measure(sizes)


def in_own_process(name: str, chosen: str, events: int | None) -> tuple[list[Row], int]:
    """The rows of a measurement that runs in a process of its own, and that process's exit code."""
    command = [sys.executable, "-m", "benchmarks.run", "--here", "--sizes", chosen, name]
    command += ["--events", str(events)] if events else []
    answer = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    return [Row(**line) for line in rows_in(answer.stdout)], answer.returncode


def rows_in(output: str) -> Iterator[dict[str, Any]]:
    """The lines of an output that are rows."""
    for line in output.splitlines():
        if line.startswith('{"measurement"'):
            yield json.loads(line)


if __name__ == "__main__":
    main()
