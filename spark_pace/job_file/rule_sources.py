"""Where the rules of a job come from: rule files, folders of them, or a Delta table with a row for each."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable
from concurrent import futures
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from spark_pace.errors import one_line
from spark_pace.rules.document import (
    MAX_BYTES,
    Mapping,
    Node,
    Place,
    Report,
    Scalar,
    Section,
    as_mapping,
    describe,
    parse_document,
    quote,
)
from spark_pace.rules.rule_file import MAX_RULES

if TYPE_CHECKING:  # only jobs whose rules are in a table load what reads it
    from deltalake import DeltaTable

EXAMPLE = "[rules.yaml]"
_OF_FILES = "Write rules: [rules.yaml, rules] for files and folders."
_NO_KEYS = dict.fromkeys(("file", "files", "folder", "path", "paths"), _OF_FILES)
_ENDINGS = (".yaml", ".yml")
_TYPES = {"name": "string", "text": "string", "enabled": "boolean"}  # the last may be missing
_PATIENCE_S = 30  # with a store that does not answer; delta-rs alone waits for minutes
_COLORS = re.compile(r"\x1b\[\d*m")
T = TypeVar("T")


@dataclass(frozen=True)
class RuleSources:
    """The rule files, in order, or the Delta table of rules; at least one of both is empty.

    Attributes:
        files: paths of files.
        table: the path or address of the table.
        place: where the job file names it.
    """

    files: tuple[str, ...] = ()
    table: str | None = None
    place: Place | None = None

    def stamp(self) -> tuple[int, ...]:
        """When the table was made, and its version; empty without one, or if it cannot be read."""
        if self.table is None:
            return ()
        from deltalake.exceptions import DeltaError

        try:
            table = _answered(_opened, self.table)
            return table.metadata().created_time or 0, table.version()
        except (DeltaError, OSError):
            return ()

    def nodes(self, section: Section, fields: Section) -> tuple[Node, ...]:
        """The rules in the table as nodes of YAML, in the order of their names; none without a table.

        Problems are reported; one in a rule is at ``PATH[NAME]:LINE:COLUMN``, by its text.

        Args:
            section: the section `events` of the job file, which must declare the attributes.
            fields: the keys of the job file.
        """
        if self.table is None or self.place is None:
            return ()
        report = fields.report
        if not section.has("schema"):
            do = 'Add events: {schema: "time TIMESTAMP, ...", event_time: time} to the job file.'
            report.add(self.place, "must come with a schema of the events", "none", do)
            return ()
        rows = _rows(self.table, self.place, report)
        if len(rows) > MAX_RULES:
            must = f"must hold at most {MAX_RULES} rules"
            report.add(self.place, must, "more", "Run them as several jobs.")
            return ()
        nodes = [_node(row, self.table, report) for row in rows]
        return tuple(node for node in nodes if node is not None)


def read_sources(fields: Section) -> RuleSources:
    """Read the key `rules` of a job file."""
    node, folder = fields.node("rules"), Path(fields.place.file).parent
    if not isinstance(node, Mapping):
        return RuleSources(_read_files(fields, folder))
    keys = Section(node, fields.report, ("table",), _NO_KEYS)
    keys.require("table", "table: rules")
    table = keys.text("table", "table: rules")
    if table is None:
        return RuleSources()
    return RuleSources((), table.text if "://" in table.text else str(folder / table.text), table.place)


def _read_files(fields: Section, folder: Path) -> tuple[str, ...]:
    found: list[str] = []
    for item in fields.texts("rules", f"rules: {EXAMPLE}"):
        for name in _names(item, folder, fields):
            resolved = str(folder / name)
            if Path(resolved).resolve() == Path(item.place.file).resolve():
                do = "Put the rules into a file of their own."
                fields.report.add(item.place, "must name a rule file", "the job file itself", do)
            elif resolved in found:
                fields.report.add(item.place, "must name a file once", quote(name), "Remove one.")
            else:
                found.append(resolved)
    return tuple(found)


def _names(item: Scalar, folder: Path, fields: Section) -> list[str]:
    """The name itself, or if it is a folder the names of the rule files in it."""
    if not os.path.isdir(folder / item.text):
        return [item.text]
    try:
        names = sorted(os.listdir(folder / item.text))
    except OSError as error:
        got = (error.strerror or "an error").lower()
        fields.report.add(item.place, "must be a folder that can be read", got, "Check its rights.")
        return []
    found = [name for name in names if name.endswith(_ENDINGS) and not name.startswith(".")]
    if not found:
        must, got = "must be a folder with rule files (*.yaml, *.yml)", f"{quote(item.text)}, without one"
        fields.report.add(item.place, must, got, "Put one there, or name another folder.")
    return [str(Path(item.text) / name) for name in found]


def _answered(ask: Callable[..., T], *of: object) -> T:
    """The answer of a place that is asked in a thread of its own, so that signals are heard meanwhile.

    Raises:
        TimeoutError: it does not answer.
    """
    answer = Future[T]()

    def wait() -> None:
        try:
            answer.set_result(ask(*of))
        except BaseException as error:
            answer.set_exception(error)

    threading.Thread(target=wait, name="rules", daemon=True).start()
    try:
        return answer.result(_PATIENCE_S)
    except futures.TimeoutError:
        raise TimeoutError(f"no answer within {_PATIENCE_S} s") from None


def _opened(path: str) -> DeltaTable:
    from deltalake import DeltaTable

    return DeltaTable(path)


def _rows(path: str, place: Place, report: Report) -> list[dict[str, Any]]:
    import pyarrow as pa
    from deltalake.exceptions import DeltaError, TableNotFoundError

    try:
        table = _answered(_opened, path)
        types = {field.name: str(field.type.type) for field in table.schema().fields}
        columns = [name for name in _TYPES if name in types]
        if not {"name", "text"}.issubset(columns) or any(types[name] != _TYPES[name] for name in columns):
            must = "must have the columns name STRING and text STRING, and may have enabled BOOLEAN"
            got = ", ".join(f"{name} {kind.upper()}" for name, kind in types.items())
            report.add(place, must, f"{got} in {path}", "Correct the table.")
            return []
        found = _answered(_selected, table, ", ".join(columns))
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
    import pyarrow as pa
    from deltalake import QueryBuilder

    engine = QueryBuilder()
    engine.register("rules", table)
    answer = engine.execute(f"SELECT {columns} FROM rules ORDER BY name LIMIT {MAX_RULES + 1}")
    rows: list[dict[str, Any]] = pa.RecordBatchReader.from_stream(answer).read_all().to_pylist()
    return rows


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
