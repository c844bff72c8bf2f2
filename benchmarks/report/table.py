"""Rows as tables on a terminal, alone and beside those of an earlier run."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from benchmarks.report.results import Results
from benchmarks.rows import Row


def table(name: str, what: str, rows: Sequence[Row]) -> Table:
    """The rows of one measurement."""
    made = Table(title=f"{name}: {what}", title_justify="left", expand=False)
    for title, justify in (("case", "left"), ("value", "right"), ("unit", "left"), ("of the floor", "right")):
        made.add_column(title, justify=justify)  # type: ignore[arg-type]
    made.add_column("target")
    made.add_column("compared with")
    for row in rows:
        case = row.case if row.measurement == name else f"{row.measurement}: {row.case}"
        made.add_row(Text(case), figure(row.value), row.unit, figure(row.ratio), told(row), row.checked)
    return made


def told(row: Row) -> Text:
    """The target, and whether it is missed."""
    return Text(goal(row), style="red" if row.reached is False else "")


def goal(row: Row) -> str:
    """The target as a string."""
    if row.target is None:
        return ""
    sign, bound = row.target.split()
    text = f"{'≥' if sign == '>=' else '≤'} {figure(float(bound))}"
    return text if row.reached else f"{text} missed"


def figure(value: float | None) -> str:
    """A number with three digits, thousands apart; nothing for None."""
    if value is None:
        return ""
    if abs(value) >= 100:
        return f"{float(f'{value:.3g}'):,.0f}"
    return f"{value:.3g}"


def compared(old: Results, new: Results) -> Table:
    """The ratios to the floor of two runs; a row without a floor that has times as its unit counts too.

    Only ratios are compared, since the machines of two runs differ, or how busy they were.
    """
    made = Table(title=f"{old.machine['commit']} → {new.machine['commit']}", title_justify="left")
    for title in ("measurement", "case", "then", "now", "now / then"):
        made.add_column(title, justify="left" if title in ("measurement", "case") else "right")
    for (measurement, case), before, after in changes(old, new):
        made.add_row(measurement, Text(case), figure(before), figure(after), f"{after / before:.2f}")
    return made


def changes(old: Results, new: Results) -> list[tuple[tuple[str, str], float, float]]:
    """Measurement and case, the ratio then and the ratio now, of all rows that both runs have."""
    then, now = (
        {(row.measurement, row.case): ratio for row in results.rows if (ratio := ratio_of(row)) is not None}
        for results in (old, new)
    )
    return [(key, then[key], ratio) for key, ratio in now.items() if then.get(key)]


def ratio_of(row: Row) -> float | None:
    """The row's ratio to the floor, or its value if that is a ratio itself."""
    return row.value if row.ratio is None and row.unit == "times" else row.ratio
