"""Matches for people and for files: a table on the terminal, JSON lines, CSV."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from spark_pace.core.rule import Rule
from spark_pace.errors import one_line

IDENTITY = ("rule", "key", "out_seq", "selection_id", "seq", "opened_at", "matched_at")
SHOWN_ROWS = 40
WIDTH = 160  # where the output is no terminal


def objects(matches: pa.Table, rules: Sequence[Rule]) -> Iterator[dict[str, Any]]:
    """Each match as the object that a JSON line holds; `fields` are those that its rule emits."""
    emitted = {rule.name: tuple(field.name for field in rule.emit) for rule in rules}
    for batch in matches.to_batches(max_chunksize=10_000):
        for row in batch.to_pylist():
            fields = {name: _plain(row[name]) for name in emitted[row["rule"]]}
            events = [{name: _plain(value) for name, value in event.items()} for event in row["events"]]
            yield {name: _plain(row[name]) for name in IDENTITY} | {"fields": fields, "events": events}


def write_json(matches: pa.Table, rules: Sequence[Rule], out: Path) -> None:
    """One JSON object a line, in output order."""
    with out.open("w", encoding="utf-8") as file:
        for match in objects(matches, rules):
            file.write(json.dumps(match, ensure_ascii=False) + "\n")


def write_csv(matches: pa.Table, rules: Sequence[Rule], out: Path) -> None:
    """A header and one line a match; the fields of all rules side by side, the events as JSON text."""
    import csv

    names = list(dict.fromkeys(field.name for rule in rules for field in rule.emit))
    with out.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*IDENTITY, *names, "events"])
        for match in objects(matches, rules):
            values = [match["fields"].get(name) for name in names]
            writer.writerow([*(match[name] for name in IDENTITY), *values, json.dumps(match["events"])])


WRITERS: dict[str, Callable[[pa.Table, Sequence[Rule], Path], None]] = {".json": write_json, ".jsonl": write_json, ".csv": write_csv}


def show(matches: pa.Table, rules: Sequence[Rule]) -> None:
    """The first matches as a table on the terminal."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    if not console.is_terminal:
        console = Console(width=WIDTH)
    table = Table("rule", "out_seq", "key", "selection", "matched at", "fields", "events")
    for match in objects(matches.slice(0, SHOWN_ROWS), rules):
        fields = " ".join(f"{name}={value}" for name, value in match["fields"].items())
        events = " ".join(f"{event['component']}#{event['seq']}" for event in match["events"])
        key = "" if match["key"] is None else match["key"]
        cells = (match["rule"], str(match["out_seq"]), key, str(match["selection_id"]), match["matched_at"], fields, events)
        table.add_row(*(Text(one_line(cell)) for cell in cells))  # what events hold is neither markup nor for the terminal to act on
    console.print(table)
    if matches.num_rows > SHOWN_ROWS:
        console.print(f"and {matches.num_rows - SHOWN_ROWS:,} more: -o FILE.json has them all")


def _plain(value: Any) -> Any:
    """A value as JSON has it: times as ISO text in UTC, what is not finite as text."""
    if isinstance(value, datetime):
        return value.replace(tzinfo=None).isoformat() + "Z"
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
