"""Shows matches as a table on the terminal, and writes them as JSON lines or CSV."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from json.encoder import encode_basestring_ascii
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from rich.console import Console

from spark_pace.core.operate.match_table import FIXED_COLUMNS
from spark_pace.core.plan.rule import Rule
from spark_pace.errors import one_line
from spark_pace.io.text.value_texts import TEXT, as_cells, as_json, json_objects

IDENTITY = tuple(name for name in FIXED_COLUMNS if name != "events")
SHOWN_ROWS = 40
WIDTH = 160  # where the output is no terminal
_ROWS_AT_ONCE = 1_000


def json_lines(matches: pa.Table, rules: Sequence[Rule]) -> Iterator[str]:
    """Each match as a JSON object; `fields` holds what its rule emits."""
    for batch in matches.to_batches(max_chunksize=_ROWS_AT_ONCE):
        members = {name: as_json(batch[name]) for name in IDENTITY}
        members |= {"fields": _fields(batch, rules), "events": as_json(batch["events"])}
        yield from json_objects(members, batch.num_rows).to_pylist()


def _fields(batch: pa.RecordBatch, rules: Sequence[Rule]) -> pa.Array:
    """A JSON object for each match, with the fields that its rule emits: large_string[n]."""
    texts, places = [pa.array([], TEXT)], [np.array([], np.int64)]
    for rule in rules:
        place = np.flatnonzero(pc.equal(batch["rule"], rule.name))
        own = batch.take(pa.array(place))
        texts.append(json_objects({field.name: as_json(own[field.name]) for field in rule.emit}, len(place)))
        places.append(place)
    return pa.concat_arrays(texts).take(pa.array(np.argsort(np.concatenate(places))))


def write_json(matches: pa.Table, rules: Sequence[Rule], out: Path) -> None:
    """Write a JSON object for each match, one a line, in output order."""
    with out.open("w", encoding="utf-8") as file:
        file.writelines(line + "\n" for line in json_lines(matches, rules))


def write_csv(matches: pa.Table, rules: Sequence[Rule], out: Path) -> None:
    """Write a header and a line for each match: all rules' fields side by side, the events as JSON text."""
    import csv

    emitted: dict[str, list[str]] = {}
    for rule in rules:
        for field in rule.emit:
            emitted.setdefault(field.name, []).append(rule.name)
    with out.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*IDENTITY, *emitted, "events"])
        for batch in matches.to_batches(max_chunksize=_ROWS_AT_ONCE):
            columns = [batch[name] for name in IDENTITY]
            columns += [
                pc.if_else(pc.is_in(batch["rule"], pa.array(names)), batch[name], None)
                for name, names in emitted.items()
            ]
            events = as_json(batch["events"], encode_basestring_ascii)
            writer.writerows(zip(*map(as_cells, columns), as_cells(events), strict=True))


WRITERS: dict[str, Callable[[pa.Table, Sequence[Rule], Path], None]] = {
    ".json": write_json,
    ".jsonl": write_json,
    ".csv": write_csv,
}


def show(matches: pa.Table, rules: Sequence[Rule]) -> None:
    """Show the first matches as a table on the terminal."""
    from rich.table import Table
    from rich.text import Text

    console = console_of(WIDTH)
    table = Table("rule", "out_seq", "key", "selection", "matched at", "fields", "events")
    for match in map(json.loads, json_lines(matches.slice(0, SHOWN_ROWS), rules)):
        fields = " ".join(f"{name}={value}" for name, value in match["fields"].items())
        events = " ".join(f"{event['component']}#{event['seq']}" for event in match["events"])
        out_seq, selection, at = str(match["out_seq"]), str(match["selection_id"]), match["matched_at"]
        cells = (match["rule"], out_seq, match["key"] or "", selection, at, fields, events)
        # texts from events must not be read as markup, nor may the terminal act on them
        table.add_row(*(Text(one_line(cell)) for cell in cells))
    console.print(table)
    if matches.num_rows > SHOWN_ROWS:
        console.print(f"and {matches.num_rows - SHOWN_ROWS:,} more: -o FILE.json has them all")


def console_of(width: int) -> Console:
    """A console as wide as the terminal; for a file or a pipe, with lines of at most `width` characters."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=width)
