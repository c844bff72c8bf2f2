"""Shows matches and answers of SQL as tables on the terminal, and writes them as JSON lines or CSV."""

from __future__ import annotations

import csv
import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from json.encoder import encode_basestring_ascii
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from spark_pace.core.operate.match_table import FIXED_COLUMNS
from spark_pace.core.plan.rule import Rule
from spark_pace.errors import ConfigError, one_line
from spark_pace.io.files.addresses import AnyPath
from spark_pace.io.text.value_texts import as_cells, as_json, fields_as_json, json_objects

IDENTITY = tuple(name for name in FIXED_COLUMNS if name != "events")
SHOWN_ROWS = 40
_WIDTH = 160  # where the output is no terminal
_WIDTH_OF_ANSWERS = 10_000  # likewise: no line is folded
_ROWS_AT_ONCE = 1_000
# The engine takes one statement at a time. One with this beginning only reads; COPY would write files.
_READS = re.compile(r"\s*(\(|(select|with|values)\b)", re.IGNORECASE)


def json_lines(matches: pa.Table, rules: Sequence[Rule]) -> Iterator[str]:
    """Each match as a JSON object; `fields` holds what its rule emits."""
    emitted = {rule.name: [field.name for field in rule.emit] for rule in rules}
    for batch in matches.to_batches(max_chunksize=_ROWS_AT_ONCE):
        members = {name: as_json(batch[name]) for name in IDENTITY}
        members |= {
            "fields": fields_as_json(batch, lambda rule, _: emitted[rule]),
            "events": as_json(batch["events"]),
        }
        yield from json_objects(members, batch.num_rows).to_pylist()


def write_json(matches: pa.Table, rules: Sequence[Rule], out: Path) -> None:
    """Write a JSON object for each match, one a line, in output order."""
    with out.open("w", encoding="utf-8") as file:
        file.writelines(line + "\n" for line in json_lines(matches, rules))


def write_csv(matches: pa.Table, rules: Sequence[Rule], out: Path) -> None:
    """Write a header and a line for each match: all rules' fields side by side, the events as JSON text."""
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
    console = console_of(_WIDTH)
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


def require_folder(option: str, file: Path) -> None:
    """Refuse a file to be written in a folder that is not there."""
    if not file.parent.is_dir():
        do = f"Make {file.parent} first, or choose another."
        raise ConfigError.of(option, "must lie in a folder that is there", str(file), do)


def console_of(width: int) -> Console:
    """A console as wide as the terminal; for a file or a pipe, with lines of at most `width` characters."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=width)


def sql_command(out: str | AnyPath, sql: str, form: str) -> None:
    """Do what `spark_pace.cli.main.sql` says."""
    from spark_pace.io.query import CHANGES, REFUSED, TABLES, Tables  # which `replay` does not need

    if not _READS.match(sql):
        got = one_line(" ".join(sql.split()[:1])) or "nothing"
        must = "must be a query that begins with SELECT, WITH or VALUES"
        raise ConfigError.of("SQL", must, got, "The tables are only read.")
    tables = Tables(out, [*TABLES, *([REFUSED] if REFUSED in sql else [])], [CHANGES])
    try:
        answer = tables.query(sql)
    except ConfigError:  # the query may name views of rules; finding their names needs a look at all matches
        tables.add_rules(sql)
        answer = tables.query(sql)
    FORMS[form](answer)


def _show_answer(answer: pa.RecordBatchReader) -> None:
    """Show the first rows as a table. Markup and control characters in texts have no effect."""
    console = console_of(_WIDTH_OF_ANSWERS)
    shown = Table(*(Column(Text(one_line(name))) for name in answer.schema.names))
    for batch in answer:
        room = SHOWN_ROWS - shown.row_count
        for row in zip(*map(as_cells, batch.slice(0, room).columns), strict=True):
            shown.add_row(*(Text("" if cell is None else one_line(str(cell))) for cell in row))
        if batch.num_rows > room:
            console.print(shown)
            console.print("and more rows: --format csv or --format json has them all")
            return
    console.print(shown)


def _print_csv(answer: pa.RecordBatchReader) -> None:
    """Print a header, then a line for each row. Nested values are JSON."""
    writer = csv.writer(_Terminal() if sys.stdout.isatty() else sys.stdout, lineterminator="\n")
    writer.writerow(answer.schema.names)
    for batch in answer:
        writer.writerows(zip(*map(as_cells, batch.columns), strict=True))


class _Terminal:
    """Prints rows, control characters as escapes."""

    def write(self, row: str) -> None:
        sys.stdout.write(one_line(row[:-1], len(row)) + "\n")


def _print_json(answer: pa.RecordBatchReader) -> None:
    """Print a JSON object for each row, in ASCII, so that no character controls the terminal."""
    for batch in answer:
        sys.stdout.writelines(
            line + "\n" for line in as_json(batch.to_struct_array(), encode_basestring_ascii).to_pylist()
        )


FORMS: dict[str, Callable[[pa.RecordBatchReader], None]] = {
    "table": _show_answer,
    "csv": _print_csv,
    "json": _print_json,
}
