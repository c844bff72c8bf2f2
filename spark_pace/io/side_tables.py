"""Reads the side tables of events: CSV, Parquet, or Delta, with one row for each key."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from spark_pace.core.expr.time_functions import RANGES, out_of_range
from spark_pace.core.intake.sift import joined, key_rows
from spark_pace.core.plan.rule import EventSchema, Field, SideTable
from spark_pace.core.plan.structs import shown_values
from spark_pace.core.tables import Ints, array
from spark_pace.errors import SetupError, SparkPaceError
from spark_pace.io.delta_log import LOG, DeltaLog
from spark_pace.io.event_files import CODECS, EventsRead, column_types, fitted, stored_rows
from spark_pace.io.files import files
from spark_pace.io.files.addresses import AT_START_S, AnyPath, StorePath, path_at
from spark_pace.io.files.files import AnyFile
from spark_pace.io.files.local import Objection
from spark_pace.io.text.column_types import not_utf8
from spark_pace.io.text.parsers import CsvParser, header_names

_CSV = (".csv", ".csv.gz", ".csv.bz2", ".csv.lz4", ".csv.zst")
Access = Mapping[str, str] | None  # settings of Spark by which stores are reached, before the environment's
_BOM = b"\xef\xbb\xbf"
_CORRECT = "Correct the table, or the lookup."
MOST_BYTES = 512 * 1024 * 1024  # of a table in memory, and of the text of one


def read_side_tables(schema: EventSchema, spark: Access = None) -> dict[str, pa.Table]:
    """The side tables of a schema by name, as `spark_pace.core.intake.sift.joined` takes them.

    Args:
        schema: the schema.
        spark: settings of Spark by which stores are reached, before the variables of the environment.

    Raises:
        SparkPaceError: one cannot be read, or has two rows of one key.
    """
    return {side.name: read_side_table(side, schema, spark) for side in schema.side_tables}


def with_side_tables(read: EventsRead, schema: EventSchema, tables: Mapping[str, pa.Table]) -> EventsRead:
    """What was read, with the attributes of side tables."""
    return replace(read, events=joined(read.events, schema, tables))


def read_side_table(side: SideTable, schema: EventSchema, spark: Access = None) -> pa.Table:
    """The rows of a table: a column for each attribute of its key, and one for each that it gives.

    `spark` is as of `read_side_tables`.

    Raises:
        SparkPaceError: it cannot be read, or has two rows of one key.
    """
    types = {field.name: field.type for field in schema.fields}
    keys = tuple(Field(column, types[attribute]) for attribute, column in side.on)
    wanted = EventSchema((*keys, *side.columns), keys[0].name)
    try:
        table, rows = _read(side, wanted, spark)
    except (OSError, MemoryError, pa.ArrowException) as error:
        got = error.got if isinstance(error, Objection) else " ".join(str(error).split())
        must = "must be a table that can be read"
        raise _refused(side, must, got) from error
    _require_values(side, table, wanted, rows)
    attributes = [attribute for attribute, _ in side.on]
    table = table.rename_columns([*attributes, *(field.name for field in side.fields[1:])])
    _require_keys(side, table, rows)
    return table


def stamp_of(side: SideTable, spark: Access = None) -> tuple[object, ...]:
    """By what it is seen that a table has changed, or another one has taken its place.

    `spark` is as of `read_side_tables`.

    Raises:
        SparkPaceError: it is not there.
    """
    if log := _log(side, spark):
        table_id, last = log.metadata().table_id, log.versions()[-1]
        return table_id, last, log.stamp(last)
    path = _path(side, spark)
    try:
        stamp = files.stat(path)
        inode = None if stamp is None or isinstance(path, StorePath) else os.stat(path).st_ino
    except OSError as error:
        raise _refused(side, "must be a table that can be read", error.strerror or str(error)) from error
    if stamp is None:
        raise _refused(side, "must be a table that can be read", "nothing there")
    return *stamp, inode


def _path(side: SideTable, spark: Access) -> AnyPath:
    return path_at(side.path, spark, AT_START_S)


def _log(side: SideTable, spark: Access) -> DeltaLog | None:
    """The log of a Delta table; None if the table is none."""
    folder = _path(side, spark)
    with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
        files.entries(folder / LOG)
        return DeltaLog(folder)
    return None


def _read(side: SideTable, wanted: EventSchema, spark: Access) -> tuple[pa.Table, Ints | None]:
    """The columns of a table that are wanted, and of text the lines of the rows."""
    path = _path(side, spark)
    if path.name.endswith(_CSV):
        return _csv(side, files.open_file(path), wanted)
    if log := _log(side, spark):
        schema = column_types(log.metadata())
        last = log.versions()[-1]
        _require_columns(side, wanted, schema.names)
        names = [field.name for field in wanted.fields]
        types = {name: schema.field(name).type for name in names}
        parts = (stored_rows(log.folder, file, names, types) for file in log.files(last))
        return _whole(side, wanted, schema, parts), None
    if not path.name.endswith(".parquet"):
        got = "nothing there" if files.stat(path) is None else "something else"
        raise _refused(side, "must be a file .csv or .parquet, or the folder of a Delta table", got)
    with pa.parquet.ParquetFile(files.open_file(path)) as file:
        _require_columns(side, wanted, file.schema_arrow.names)
        names = [field.name for field in wanted.fields]
        groups = range(file.num_row_groups)
        parts = (file.read_row_group(group, names, use_threads=False) for group in groups)
        return _whole(side, wanted, file.schema_arrow, parts), None


def _whole(side: SideTable, wanted: EventSchema, schema: pa.Schema, parts: Iterable[pa.Table]) -> pa.Table:
    """The parts of a table as one, each with the columns that are wanted."""

    def bounded() -> Iterator[pa.Table]:
        size = 0
        for part in chain([schema.empty_table()], parts):
            size += part.nbytes
            _require_small(side, size)
            try:
                made, unfit = fitted(part, wanted)
            except pa.ArrowInvalid as error:
                raise _refused(side, "must have columns of the declared types", str(error)) from error
            for name, rows in unfit.items():
                got = str(part[name].filter(pa.array(rows))[0].as_py())
                raise _refused(side, f"must have numbers in {name} that its type can hold", got)
            yield made

    return pa.concat_tables(bounded())


def _require_small(side: SideTable, size: int) -> None:
    if size > MOST_BYTES:
        must = f"must have at most {MOST_BYTES:,} bytes, for each process has all of it in memory"
        raise _refused(side, must, "more")


def _csv(side: SideTable, opened: AnyFile, wanted: EventSchema) -> tuple[pa.Table, Ints]:
    with pa.input_stream(opened, compression=CODECS.get(Path(side.path).suffix)) as stream:
        content: bytes = stream.read(MOST_BYTES + 1)
    _require_small(side, len(content))
    header, _, lines = content.removeprefix(_BOM).partition(b"\n")
    names = header_names(header)
    _require_columns(side, wanted, names)
    parsed = CsvParser(wanted, names).read(lines)
    if len(parsed.refused):
        line = int(parsed.refused[0]) + 2
        raise _refused(side, "must have rows as declared", f"line {line}: {parsed.reason(0)}")
    _require_small(side, parsed.table.nbytes)
    return parsed.table, parsed.rows + 2


def _require_columns(side: SideTable, wanted: EventSchema, names: list[str]) -> None:
    for field in wanted.fields:
        if names.count(field.name) != 1:
            must, got = f"must have one column {field.name}", f"the columns {', '.join(names)}"
            raise _refused(side, must, got)


def _require_values(side: SideTable, table: pa.Table, wanted: EventSchema, lines: Ints | None) -> None:
    """Refuse text that is no UTF-8, and times outside the range of their type."""
    for row, name in sorted(not_utf8(table).items()):
        raise _refused(side, f"must have text in {name}", f"other bytes in {_place(row, lines)}")
    for field in wanted.fields:
        outside = out_of_range(table[field.name])
        if outside is not None and outside.any():
            row = int(np.flatnonzero(outside)[0])
            must = f"must have in {field.name} {RANGES[field.type]}"
            raise _refused(side, must, f"another one in {_place(row, lines)}")


def _require_keys(side: SideTable, table: pa.Table, lines: Ints | None) -> None:
    """Refuse two rows of one key. A row whose key is null is joined to no event."""
    keys = [attribute for attribute, _ in side.on]
    first = key_rows(table, keys, table)
    rows = pa.array(np.arange(table.num_rows))
    again = pc.indices_nonzero(pc.fill_null(pc.not_equal(first, rows), False))
    if len(again):
        row = again[0].as_py()
        values = (shown_values(array(table, key).slice(row, 1))[0] for key in keys)
        key = ", ".join(f"{name} = {value}" for name, value in zip(keys, values, strict=True))
        places = f"{_place(first[row].as_py(), lines)} and in {_place(row, lines)}"
        raise _refused(side, "must have one row for each key", f"{key} in {places}")


def _place(row: int, lines: Ints | None) -> str:
    return f"row {row + 1}" if lines is None else f"line {lines[row]}"


def _refused(side: SideTable, must: str, got: str) -> SparkPaceError:
    return SetupError(f"lookup.{side.name}: {side.path} — {must}; got {got.rstrip('.')}. {_CORRECT}")
