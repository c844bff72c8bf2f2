"""Reads rules from a Delta table, a row for each, without Spark."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from concurrent import futures
from concurrent.futures import Future
from typing import Any, TypeVar

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import DeltaError, TableNotFoundError

from spark_pace.errors import one_line
from spark_pace.rules.document.document import MAX_BYTES, Mapping, Node, Scalar, describe, parse_document
from spark_pace.rules.document.report import Place, Report
from spark_pace.rules.document.section import as_mapping
from spark_pace.rules.rule_file import MAX_RULES

_TYPES = {"name": "string", "text": "string", "enabled": "boolean"}  # the last may be missing
_PATIENCE_S = 30  # with a store that does not answer; delta-rs alone waits for minutes
T = TypeVar("T")
_COLORS = re.compile(r"\x1b\[\d*m")


def rule_nodes(path: str, place: Place, report: Report) -> tuple[Node, ...]:
    """The rules of a table as nodes of YAML, in the order of their names; problems are reported.

    A problem in a rule is at ``PATH[NAME]:LINE:COLUMN``, the line and column of its text.

    Args:
        path: the path or address of the table.
        place: where the job file names it.
        report: gets the problems.
    """
    rows = _rows(path, place, report)
    if len(rows) > MAX_RULES:
        report.add(place, f"must hold at most {MAX_RULES} rules", "more", "Run them as several jobs.")
        return ()
    nodes = [_node(row, path, report) for row in rows]
    return tuple(node for node in nodes if node is not None)


def table_stamp(path: str) -> tuple[int, ...]:
    """What changes with the table: when it was made, and its version; empty if it cannot be read."""

    def stamp() -> tuple[int, ...]:
        table = DeltaTable(path)
        return table.metadata().created_time or 0, table.version()

    try:
        return _answered(stamp)
    except (DeltaError, OSError):
        return ()


def _answered(ask: Callable[[], T]) -> T:
    """The answer of a place that is asked in a thread of its own, so that signals are heard meanwhile.

    Raises:
        TimeoutError: it does not answer.
    """
    answer = Future[T]()

    def wait() -> None:
        try:
            answer.set_result(ask())
        except BaseException as error:
            answer.set_exception(error)

    threading.Thread(target=wait, name="rules", daemon=True).start()
    try:
        return answer.result(_PATIENCE_S)
    except futures.TimeoutError:
        raise TimeoutError(f"no answer within {_PATIENCE_S} s") from None


def _rows(path: str, place: Place, report: Report) -> list[dict[str, Any]]:
    try:
        table = _answered(lambda: DeltaTable(path))
        types = {field.name: str(getattr(field.type, "type", "")) for field in table.schema().fields}
        if _has_columns(types, path, place, report):
            columns = ", ".join(name for name in _TYPES if name in types)
            found = _answered(lambda: _selected(table, columns))
            if not found:
                report.add(place, "must hold a rule", f"an empty table {path}", "Insert a row.")
            return found
    except TableNotFoundError:
        got = f"no Delta table {path}"
        report.add(place, "must name a table of rules", got, "Name the folder of the table.")
    except (DeltaError, OSError, pa.ArrowException) as error:
        got = " ".join(_COLORS.sub("", str(error)).split()).rstrip(".")
        report.add(place, "must be a table that can be read", got, "Check the path and the way to it.")
    return []


def _selected(table: DeltaTable, columns: str) -> list[dict[str, Any]]:
    engine = QueryBuilder()
    engine.register("rules", table)
    answer = engine.execute(f"SELECT {columns} FROM rules ORDER BY name LIMIT {MAX_RULES + 1}")
    rows: list[dict[str, Any]] = pa.RecordBatchReader.from_stream(answer).read_all().to_pylist()
    return rows


def _has_columns(types: dict[str, str], path: str, place: Place, report: Report) -> bool:
    """True if the table has the columns of rules, each with its type; else that is reported."""
    wrong = [name for name, kind in _TYPES.items() if types.get(name, kind) != kind]
    missing = [name for name in ("name", "text") if name not in types]
    if wrong or missing:
        must = "must have the columns name STRING and text STRING, and may have enabled BOOLEAN"
        there = [f"{name} {_shown(types[name])}" for name in wrong]
        got = ", ".join([*there, *(f"no {name}" for name in missing)])
        report.add(place, must, f"{got} in {path}", "Correct the table.")
    return not (wrong or missing)


def _shown(kind: str) -> str:
    return {"": "of parts", "long": "BIGINT", "integer": "INT"}.get(kind, kind.upper())


def _node(row: dict[str, Any], path: str, report: Report) -> Node | None:
    """The rule in a row, with its name and whether it runs; None if it is no mapping."""
    name = "null" if row["name"] is None else one_line(row["name"], 80)
    place = Place(f"{path}[{name}]", 1, 1)
    if row["name"] is None or row["text"] is None:
        column = "name" if row["name"] is None else "text"
        report.add(place, f"must have a {column}", "null", "Fill it in, or delete the row.")
        return None
    if len(row["text"].encode()) > MAX_BYTES:
        report.add(place, "must be at most 1 MiB", "a longer text", "Shorten it.")
        return None
    document = parse_document(row["text"], place.file, report)
    root = as_mapping(document, report, "pattern: {sequence: [a: x = 1]}")
    return None if root is None else _with_columns(root, row, place, report)


def _with_columns(root: Mapping, row: dict[str, Any], place: Place, report: Report) -> Mapping:
    """The keys of a rule, with those that the columns of its row give."""
    entries = dict(root.entries)
    named = entries.pop("name", None)
    if named is not None and not (isinstance(named[1], Scalar) and named[1].text == row["name"]):
        do = "Leave it out: the column name says it."
        report.add(named[0], f"must be the name of its row, {row['name']}", describe(named[1]), do)
    here = Place(place.file, 1, 1, "name")
    entries = {"name": (here, Scalar(here, row["name"], row["name"], None)), **entries}
    if "enabled" in row:
        if "enabled" in entries:
            do = "Leave it out of the text."
            report.add(entries["enabled"][0], "must stand in the column enabled", "it in the text", do)
        runs, there = row["enabled"] is not False, Place(place.file, 1, 1, "enabled")
        entries["enabled"] = (there, Scalar(there, runs, str(runs).lower(), None))
    return Mapping(root.place, entries)
