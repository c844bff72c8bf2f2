"""`spark-pace match`: a query with MATCH_RECOGNIZE over files, without Spark."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.json as pa_json
import pyarrow.parquet as pq

from spark_pace.cli.show import FORMS
from spark_pace.errors import ConfigError
from spark_pace.rules.document import nearest, quote
from spark_pace.rules.row_patterns.queries import file_query
from spark_pace.rules.row_patterns.words import read_query

_READERS: dict[str, Callable[[Any], pa.Table]] = {
    ".csv": pa_csv.read_csv,
    ".json": pa_json.read_json,
    ".jsonl": pa_json.read_json,
    ".parquet": pq.read_table,
}
_FORMS = {".csv": "csv", ".json": "json", ".jsonl": "json"}


def match_command(
    path: Path, *, tables: Sequence[str], out: Path | None, form: str, dialect: str, steps: int
) -> None:
    """Do what `spark_pace.cli.main.match` says."""
    query = file_query(read_query(path.read_text(encoding="utf-8"), str(path), dialect))
    if out is not None and out.suffix not in (*_FORMS, ".parquet"):
        must = f"must end in {', '.join(_FORMS)} or .parquet"
        raise ConfigError.of("--out", must, quote(out.name), "Name another file.")
    files = dict(map(_named, tables))
    name = next((one for one in files if one.lower() == query.table.lower()), None)
    if name is None:
        do = nearest(query.table, files) if files else f"Write --table {query.table}=FILE."
        raise ConfigError.of(
            "--table", f"must name the file of {query.table}", ", ".join(files) or "none", do
        )
    _write(query.answer(_read(files[name]), steps), out, form)


def _named(text: str) -> tuple[str, Path]:
    name, equals, file = text.partition("=")
    if not equals or not name or not file:
        raise ConfigError.of(
            "--table", "must be NAME=FILE", quote(text), "Write for example ticks=ticks.csv."
        )
    if "://" in file:
        raise ConfigError.of(file, "must be a path of this machine", "an address", "Copy it here.")
    return name, Path(file)


def _read(path: Path) -> pa.Table:
    """The rows of a file."""
    if path.suffix not in _READERS:
        must = f"must be a file that ends in {', '.join(_READERS)}"
        raise ConfigError.of(str(path), must, quote(path.name), "Rename it, or write it as one of these.")
    path.stat()  # fails with its name if it is not there
    try:
        return _decoded(_READERS[path.suffix](str(path)))
    except pa.ArrowInvalid as error:
        must = f"must be {path.suffix.removeprefix('.')}"
        raise ConfigError.of(str(path), must, str(error).split("\n")[0], "Correct the file.") from error


def _decoded(table: pa.Table) -> pa.Table:
    """The table with values in place of the numbers that stand for them, as in categories of pandas."""
    for place, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            table = table.set_column(place, field.name, table.column(place).cast(field.type.value_type))
    return table


def _write(answer: pa.Table, out: Path | None, form: str) -> None:
    if out is None:
        FORMS[form](answer.to_reader())
    elif out.suffix == ".parquet":
        pq.write_table(answer, out)
    else:
        with out.open("w", encoding="utf-8", newline="") as file, redirect_stdout(file):
            FORMS[_FORMS[out.suffix]](answer.to_reader())
    if out is not None:
        print(f"{answer.num_rows:,} rows: {out}", file=sys.stderr)
