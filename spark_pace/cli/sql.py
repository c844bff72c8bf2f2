"""`spark-pace sql`: the answer to a query over a job's tables, as a table, CSV or JSON lines."""

from __future__ import annotations

import csv
import io
import re
import sys
from collections.abc import Callable
from json.encoder import encode_basestring_ascii

import pyarrow as pa
from rich.table import Column, Table
from rich.text import Text

from spark_pace.cli.show import console_of
from spark_pace.errors import ConfigError, one_line
from spark_pace.io.files.addresses import AnyPath
from spark_pace.io.query import CHANGES, REFUSED, TABLES, Tables
from spark_pace.io.text.value_texts import as_cells, as_json

SHOWN_ROWS = 40
WIDTH = 10_000  # where the output is no terminal: no line is folded
# The engine takes one statement at a time. One with this beginning only reads; COPY would write files.
_READS = re.compile(r"\s*(\(|(select|with|values)\b)", re.IGNORECASE)


def sql_command(out: str | AnyPath, sql: str, form: str) -> None:
    """Do what `spark_pace.cli.main.sql` says."""
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
    WRITERS[form](answer)


def _show(answer: pa.RecordBatchReader) -> None:
    """Show the first rows as a table. Markup and control characters in texts have no effect."""
    console = console_of(WIDTH)
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


def _write_csv(answer: pa.RecordBatchReader) -> None:
    """Print a header, then a line for each row. Nested values are JSON."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(answer.schema.names)
    for batch in answer:
        writer.writerows(zip(*map(as_cells, batch.columns), strict=True))
        _print(text)
    _print(text)


def _print(text: io.StringIO) -> None:
    """Print what `text` holds, and empty it. On a terminal, control characters are printed as escapes."""
    lines = text.getvalue()
    text.seek(0)
    text.truncate()
    if sys.stdout.isatty():
        lines = "\n".join(one_line(line, len(line)) for line in lines.split("\n"))
    sys.stdout.write(lines)


def _write_json(answer: pa.RecordBatchReader) -> None:
    """Print a JSON object for each row, in ASCII, so that no character controls the terminal."""
    for batch in answer:
        sys.stdout.writelines(
            line + "\n" for line in as_json(batch.to_struct_array(), encode_basestring_ascii).to_pylist()
        )


WRITERS: dict[str, Callable[[pa.RecordBatchReader], None]] = {
    "table": _show,
    "csv": _write_csv,
    "json": _write_json,
}
