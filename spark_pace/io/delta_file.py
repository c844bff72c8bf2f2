"""Writes a batch's rows as one Parquet file of a Delta table, each column in the encoding that suits it.

delta-rs encodes all columns inside lists alike, which takes longer and gives larger files:
`docs/decisions/table-files.md`.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import ColumnProperties, DeltaTable, WriterProperties
from deltalake.transaction import AddAction

from spark_pace.io.files import files
from spark_pace.io.files.addresses import AnyPath, StorePath

_YEARS = (np.datetime64("0001-01-01"), np.datetime64("9999-12-31"))  # the days that a log can name


def is_plain(table: DeltaTable, rows: pa.Table) -> bool:
    """True if an append needs one file of rows and nothing else; False for tables that were altered."""
    if table.metadata().partition_columns or table.protocol().min_writer_version > 2:
        return False
    fields = {field.name: field for field in table.schema().fields}
    free = all(field.nullable and not field.metadata for field in fields.values())
    return free and fields.keys() >= set(rows.column_names)


def bounds_by_delta_rs(schema: pa.Schema) -> WriterProperties:
    """Of which columns delta-rs notes bounds, where it writes the file: of the same as here."""
    noted = ColumnProperties(statistics_enabled="CHUNK")
    return WriterProperties(
        compression="ZSTD",
        default_column_properties=ColumnProperties(statistics_enabled="NONE"),
        column_properties={field.name: noted for field in schema if _has_bounds(field.type)},
    )


def write_file(place: AnyPath, rows: pa.Table) -> AddAction:
    """Write a new file of a table that is not partitioned, into its folder or below its address.

    Nobody reads the file before a commit names it. It is not synced: how durable it is depends on the file
    system.

    Args:
        place: the table's.
        rows: at least one row.

    Returns:
        The entry for the table's log.

    Raises:
        OSError: the file cannot be written; no part of it is left.
        SetupError: the store cannot be written to.
    """
    name = f"part-00000-{uuid.uuid4()}-c000.zstd.parquet"
    path = place / name
    size, told = _write_here(path, rows) if isinstance(path, Path) else _write_there(path, rows)
    made_ms = time.time_ns() // 1_000_000
    # delta-rs misreads characters behind U+FFFF where they are escaped
    stats = json.dumps(_stats(rows, told), ensure_ascii=False)
    return AddAction(name, size, {}, made_ms, True, stats)


def _write_here(path: Path, rows: pa.Table) -> tuple[int, pq.FileMetaData]:
    try:
        with pa.OSFile(str(path), "wb") as file:
            told = _write(file, rows)
        return path.stat().st_size, told
    except BaseException:
        with suppress(OSError):
            path.unlink()
        raise


def _write_there(path: StorePath, rows: pa.Table) -> tuple[int, pq.FileMetaData]:
    stream = pa.BufferOutputStream()
    told = _write(stream, rows)
    content = stream.getvalue()
    files.write(path, content.to_pybytes())
    return content.size, told


def _write(file: pa.NativeFile, rows: pa.Table) -> pq.FileMetaData:
    leaves = dict(leaf for field in rows.schema for leaf in _leaves(field.name, field.type))
    told = list[pq.FileMetaData]()
    pq.write_table(
        rows,
        file,
        compression="zstd",
        use_dictionary=[leaf for leaf, kind in leaves.items() if _is_text(kind)],
        column_encoding={leaf: "DELTA_BINARY_PACKED" for leaf, kind in leaves.items() if _is_whole(kind)},
        write_statistics=[leaf for leaf, kind in leaves.items() if not pa.types.is_floating(kind)],
        store_schema=False,
        metadata_collector=told,
    )
    return told[0]


def _leaves(path: str, kind: pa.DataType) -> Iterator[tuple[str, pa.DataType]]:
    """The path and type of each Parquet column that an Arrow column becomes."""
    if pa.types.is_list(kind):
        yield from _leaves(f"{path}.list.element", kind.value_type)
    elif pa.types.is_struct(kind):
        for field in kind:
            yield from _leaves(f"{path}.{field.name}", field.type)
    else:
        yield path, kind


def _has_bounds(kind: pa.DataType) -> bool:
    """True for columns whose least and greatest value are noted, by which queries skip files.

    Floating-point columns have none: NaN counts as greater than all numbers, and writers of Parquet leave it
    out. Decimals have none in a table's log, which has them as floating-point numbers.
    """
    return _is_text(kind) or _is_whole(kind)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_dictionary(kind))


def _is_whole(kind: pa.DataType) -> bool:
    """True for whole numbers, whose differences are usually smaller than the values themselves."""
    return bool(pa.types.is_integer(kind) or pa.types.is_timestamp(kind) or pa.types.is_date32(kind))


def _stats(rows: pa.Table, told: pq.FileMetaData) -> dict[str, Any]:
    """The statistics of a file for Delta's log, by which queries skip files that they do not need."""
    bounds, nulls = dict[str, tuple[Any, Any]](), dict[str, int]()
    places = {told.schema.column(place).path: place for place in range(told.num_columns)}
    groups = [told.row_group(group) for group in range(told.num_row_groups)]
    for field in rows.schema:
        if pa.types.is_nested(field.type):
            continue
        nulls[field.name] = rows[field.name].null_count
        if not _has_bounds(field.type):
            continue
        parts = [group.column(places[field.name]).statistics for group in groups]
        known = [part for part in parts if part.has_min_max]
        complete = known and len(known) == sum(part.num_values > 0 for part in parts)
        if complete and (bound := _bounds(field.type, known)):
            bounds[field.name] = bound
    return {
        "numRecords": told.num_rows,
        "minValues": {name: least for name, (least, _) in bounds.items()},
        "maxValues": {name: most for name, (_, most) in bounds.items()},
        "nullCount": nulls,
    }


def _bounds(kind: pa.DataType, parts: list[pq.Statistics]) -> tuple[Any, Any] | None:
    """A lower and an upper bound of a column's values; None for days that a log cannot name."""
    if _is_text(kind):
        return min(part.min for part in parts), max(part.max for part in parts)
    least, most = min(part.min_raw for part in parts), max(part.max_raw for part in parts)
    if pa.types.is_integer(kind):
        return least, most
    days = pa.types.is_date32(kind)
    unit = ("D", 1, "") if days else ("ms", 1000, "Z")  # as readers expect it: name, size, suffix
    rounded = np.array([least // unit[1], -(-most // unit[1])])
    low, high = rounded.astype(f"datetime64[{unit[0]}]")
    return (f"{low}{unit[2]}", f"{high}{unit[2]}") if low >= _YEARS[0] and high < _YEARS[1] else None
