"""Fills the tables of `docs/performance.md` from the results of a run: no figure there is typed by hand.

A table stands between ``<!-- NAME -->`` and ``<!-- end -->``. NAME is ``machine``, ``model``, ``stages``,
``executors`` or ``measured M, UNIT``: the rows of measurement M in that unit, whose cases are
``line; column``.

    python -m benchmarks.report.document RESULTS.json

keeps these results as those of this release, in `benchmarks/results`, and fills the page.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import click

from benchmarks.report.model import SHARED, TERMS, computed, fits
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
    found = fits(results.rows)
    if not found:
        return NOT_MEASURED
    head = [
        "stage",
        "fixed, ms",
        *(f"{term}, µs" for term in TERMS[1:]),
        "error: typical",
        "greatest",
        "points",
    ]
    body = [
        [
            stage,
            figure(1e3 * of.costs[0]),
            *(figure(1e6 * cost) for cost in of.costs[1:]),
            f"{of.residual:.0%}",
            f"{of.worst:.0%}",
            str(of.points),
        ]
        for stage, of in found.items()
    ]
    return lines(head, body)


def _stages(results: Results) -> str:
    """What each stage takes of a batch, as computed."""
    seconds = {stage: model.seconds(*BATCH) for stage, model in fits(results.rows).items()}
    if not seconds:
        return NOT_MEASURED
    whole = sum(seconds.values())
    return lines(
        ["stage", "s", "of the stages"],
        [[stage, figure(taken), f"{taken / whole:.0%}"] for stage, taken in seconds.items()],
    )


def _executors(results: Results) -> str:
    found = fits(results.rows)
    empty = [row.value for row in results.rows if (row.measurement, row.case) == ("batches", EMPTY_BATCH)]
    if not found or not empty:
        return NOT_MEASURED
    alone = sum(model.seconds(*BATCH) for stage, model in found.items() if stage not in SHARED)
    body = []
    for executors in EXECUTORS:
        seconds = computed(found, BATCH, executors, empty[0] / 1000)
        share = (alone + empty[0] / 1000) / seconds
        body.append([str(executors), figure(seconds), figure(BATCH[0] / seconds), f"{share:.0%}"])
    return lines(["executors", "s a batch", "events/s", "of it in one place"], body)


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
