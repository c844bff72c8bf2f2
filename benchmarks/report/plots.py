"""The plots of a run: one page of HTML, and a PNG of each plot."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from textwrap import shorten

from matplotlib.figure import Figure

from benchmarks.report.results import Results
from benchmarks.report.table import figure as told
from benchmarks.report.table import goal
from benchmarks.rows import Row
from spark_pace_bench.report import page, svg

TEMPLATE = Path(__file__).parent / "page.html"
BAR, MOST_BARS, MOST_LETTERS = 0.32, 45, 70


def write(results: Results, folder: Path) -> Path:
    """Write ``report.html`` and a PNG for each measurement with at least two figures of one unit."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn = []
    for name, figure in plots(results):
        figure.savefig(folder / f"{name}.png", dpi=100)
        drawn.append(svg(figure))
    path = folder / "report.html"
    by_name: dict[str, list[dict[str, object]]] = {}
    for row in results.rows:
        cells = (row.case, told(row.value), row.unit, told(row.ratio), goal(row), row.checked)
        by_name.setdefault(row.measurement, []).append({"cells": cells, "missed": row.reached is False})
    path.write_text(page(TEMPLATE, {"machine": results.machine, "tables": by_name}, drawn), encoding="utf-8")
    return path


def plots(results: Results) -> Iterator[tuple[str, Figure]]:
    """Bars of the figures of each measurement and unit, by name."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in results.rows:
        groups.setdefault((row.measurement, row.unit), []).append(row)
    for (name, unit), rows in groups.items():
        if len(rows) > 1:
            yield f"{name}_{unit.replace('/', '_per_').replace(' ', '_') or 'count'}", _bars(name, unit, rows)


def _bars(name: str, unit: str, rows: list[Row]) -> Figure:
    shown = rows[:MOST_BARS]
    figure = Figure(figsize=(10, 1.2 + BAR * len(shown)), layout="constrained")
    axes = figure.subplots()
    colors = ["tab:red" if row.reached is False else "tab:blue" for row in shown]
    places = range(len(shown))
    bars = axes.barh(places, [row.value for row in shown], color=colors)
    axes.set_yticks(places, [shorten(row.case, MOST_LETTERS, placeholder="…") for row in shown])
    axes.bar_label(bars, [told(row.value) for row in shown], padding=3, fontsize="small")
    axes.invert_yaxis()
    values = [row.value for row in shown if row.value > 0]
    if values and max(values) > 100 * min(values):
        axes.set_xscale("log")
    axes.margins(x=0.12)
    more = f" (the first {MOST_BARS} of {len(rows)})" if len(rows) > MOST_BARS else ""
    axes.set_title(f"{name}{more}", loc="left")
    axes.set_xlabel(unit)
    axes.tick_params(axis="y", labelsize="small")
    return figure
