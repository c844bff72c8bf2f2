"""Fills the tables of `docs/performance.md` from the results of a run: no figure there is typed by hand.

A table stands between ``<!-- NAME -->`` and ``<!-- end -->``. NAME is that of a table in `_table`, or
``measured M, UNIT``: the rows of measurement M in that unit, whose cases are ``line; column``.

    python -m benchmarks.report.document RESULTS.json

keeps these results as those of this release, in `benchmarks/results`, and fills the page.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from pathlib import Path

import click

from benchmarks.report.model import SHARED, TERMS, Fit, Place, between, computed, fits, of_stages
from benchmarks.report.results import Results
from benchmarks.report.table import figure, goal
from benchmarks.rows import Row
from spark_pace import __version__

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "performance.md"
KEPT = ROOT / "benchmarks" / "results"
TABLE = re.compile(r"<!-- (?!end)(.+?) -->\n.*?<!-- end -->", re.DOTALL)
NOT_MEASURED = "Not measured in this run."
QUIET_EVENTS = 1_000_000
NOT_QUIET = (
    "\n\n**The machine was busy, or the streams were short: these figures show that the measurements run and "
    "that their results are checked. They are no measure of speed.**"
)
BATCH = (1_000_000, 1_000_000, 10_000)
EXECUTORS = (1, 2, 4, 8, 16, 32, 64)
# a large cluster: 10 Gbit/s for each machine; a mounted file system, or a store to which a process writes
# 100 MB/s, and for whose answers, of 30 ms each, a batch waits 40 times, one after the other
LARGE_BATCHES = (BATCH, (100_000_000, 100_000_000, 1_000_000))
MANY_EXECUTORS = (10, 100, 1_000)
NETWORK = 1.25e9
KEPT_ON = {"mounted": (1e9, 0.0), "store": (1e8, 40 * 0.03)}
BATCH_OF_NETWORK = (1_000_000, 3_500_000, 1_000)
EMPTY_BATCH = "batch: triggerExecution; no events"
SHOWN = ("spark_pace", "commit", "date", "processor", "cores", "memory_gib", "load", "python", "pyspark")


def filled(page: str, results: Results) -> str:
    """The page with the tables of these results."""
    return TABLE.sub(lambda found: f"<!-- {found[1]} -->\n{_table(found[1], results)}\n<!-- end -->", page)


def kept() -> Path:
    """The results of the last release that has any."""
    return max(KEPT.glob("*.json"), key=lambda path: [int(part) for part in re.findall(r"\d+", path.stem)])


def _table(name: str, results: Results) -> str:
    tables: dict[str, Callable[[Results], str]] = {
        "machine": _machine,
        "model": _model,
        "moved": _moved,
        "network": _network,
        "cluster": _cluster,
        "stages": _stages,
        "executors": _executors,
    }
    if name in tables:
        return tables[name](results)
    measurement, unit = name.removeprefix("measured ").split(", ")
    rows = [row for row in results.rows if (row.measurement, row.unit) == (measurement, unit)]
    return _measured(rows, unit) if rows else NOT_MEASURED


def _machine(results: Results) -> str:
    figures = [[name, str(results.machine.get(name, ""))] for name in SHOWN]
    sizes = [[name, _size(size)] for name, size in results.sizes.items()]
    quiet = results.machine["load"] < results.machine["cores"] and results.sizes["events"] >= QUIET_EVENTS
    return lines(["measured with", ""], [*figures, *sizes]) + ("" if quiet else NOT_QUIET)


def _size(size: object) -> str:
    return ", ".join(map(_size, size)) if isinstance(size, (list, tuple)) else f"{size:,}"


def _measured(rows: Sequence[Row], unit: str) -> str:
    """Rows by the two parts of their cases; cases of one part stand one below the other."""
    if not all("; " in row.case for row in rows):
        return lines(["case", unit, "target"], [[row.case, _cell(row), goal(row)] for row in rows])
    cells = {tuple(row.case.rsplit("; ", 1)): row for row in rows}
    columns = list(dict.fromkeys(column for _, column in cells))
    names = dict.fromkeys(name for name, _ in cells)
    body = [[name, *(_cell(cells.get((name, column))) for column in columns)] for name in names]
    return lines([unit, *columns], body)


def _cell(row: Row | None) -> str:
    """The figure, in brackets its ratio to the floor."""
    if row is None:
        return ""
    ratio = "" if row.ratio is None else f" (× {figure(row.ratio)})"
    return f"{figure(row.value)}{ratio}{' missed' if row.reached is False else ''}"


def _model(results: Results) -> str:
    return _fitted("stage", fits(results.rows), ("fixed, ms", 1e3), ("µs", 1e6))


def _moved(results: Results) -> str:
    return _fitted("what", fits(results.rows, "bytes"), ("fixed, kB", 1e-3), ("bytes", 1))


def _fitted(what: str, found: Mapping[str, Fit], fixed: tuple[str, float], others: tuple[str, float]) -> str:
    """The costs of what was fitted, in these units."""
    if not found:
        return NOT_MEASURED
    head = [what, fixed[0], *(f"{term}, {others[0]}" for term in TERMS[1:])]
    body = [
        [
            name,
            figure(fixed[1] * of.costs[0]),
            *(figure(others[1] * cost) for cost in of.costs[1:]),
            f"{of.residual:.0%}",
            f"{of.worst:.0%}",
            str(of.points),
        ]
        for name, of in found.items()
    ]
    return lines([*head, "error: typical", "greatest", "points"], body)


def _stages(results: Results) -> str:
    """What each stage takes of a batch, as computed."""
    seconds = {stage: model.of(*BATCH) for stage, model in fits(results.rows).items()}
    if not seconds:
        return NOT_MEASURED
    whole = sum(seconds.values())
    return lines(
        ["stage", "s", "of the stages"],
        [[stage, figure(taken), f"{taken / whole:.0%}"] for stage, taken in seconds.items()],
    )


def _executors(results: Results) -> str:
    found = fits(results.rows)
    empty = _values(results, "batches", EMPTY_BATCH)
    if not found or not empty:
        return NOT_MEASURED
    alone = sum(model.of(*BATCH) for stage, model in found.items() if stage not in SHARED)
    body = []
    for executors in EXECUTORS:
        seconds = computed(found, BATCH, executors, empty[0] / 1000)
        share = (alone + empty[0] / 1000) / seconds
        body.append([str(executors), figure(seconds), figure(BATCH[0] / seconds), f"{share:.0%}"])
    return lines(["executors", "s a batch", "events/s", "of it in one place"], body)


def _network(results: Results) -> str:
    """Batches of the measurement `network` beside what is computed for their links."""
    moved = fits(results.rows, "bytes")
    cells = {row.case: row.value for row in results.rows if row.measurement == "network"}
    if not moved or not cells:
        return NOT_MEASURED
    links = list(dict.fromkeys(case.partition("; ")[0] for case in cells))
    body = []
    for link in links:
        taken, left = cells[f"{link}; s a batch"], cells[f"{link}; bytes that leave machines"]
        further, expected = "", ""
        if link != links[0]:
            place = Place(2, float(link.partition(" ")[0]) * 1e6 / 8)
            further = figure(taken - cells[f"{links[0]}; s a batch"])
            without_file = {what: fit for what, fit in moved.items() if what != "file"}
            expected = figure(between(without_file, BATCH_OF_NETWORK, place)["network"])
        body.append([link, figure(left / 1e6), figure(taken), further, expected])
    return lines(
        ["link", "MB that leave machines", "s a batch", "more than without a bound", "computed"], body
    )


def _cluster(results: Results) -> str:
    found, moved = fits(results.rows), fits(results.rows, "bytes")
    empty, task = _values(results, "batches", EMPTY_BATCH), _values(results, "tasks")
    if not (found and moved and empty and task):
        return NOT_MEASURED
    body = []
    for batch, executors, (kind, (rate, waits)) in product(LARGE_BATCHES, MANY_EXECUTORS, KEPT_ON.items()):
        place = Place(executors, NETWORK, rate, waits, task[0] / 1000, is_packed=kind == "store")
        parts = {"Spark's own": empty[0] / 1000, **of_stages(found, batch, executors)}
        parts |= between(moved, batch, place)
        seconds = sum(parts.values())
        most = sorted(parts, key=lambda part: -parts[part])[:3]
        told = ", ".join(f"{part} {parts[part] / seconds:.0%}" for part in most)
        rate_of_events = figure(batch[0] / seconds)
        body.append([f"{batch[0]:,}", f"{executors:,}", kind, figure(seconds), rate_of_events, told])
    return lines(["events", "executors", "checkpoint", "s a batch", "events/s", "most of it"], body)


def _values(results: Results, measurement: str, case: str | None = None) -> list[float]:
    """The figures of a measurement, or of one case of it."""
    return [row.value for row in results.rows if row.measurement == measurement and case in (None, row.case)]


def lines(head: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    """A table of Markdown."""
    rule = "|---" * len(head) + "|"
    return "\n".join([f"| {' | '.join(head)} |", rule, *(f"| {' | '.join(row)} |" for row in body)])


@click.command()
@click.argument("results_file", metavar="RESULTS", type=click.Path(path_type=Path))
def main(results_file: Path) -> None:
    """Keep the RESULTS of a run of measurements, a file of JSON, and fill docs/performance.md from them."""
    results = Results.read(results_file)
    results.write(KEPT / f"{__version__}.json")
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), results), encoding="utf-8")


if __name__ == "__main__":
    main()
