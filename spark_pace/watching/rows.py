"""What is shown of the rows of a job's tables: the latest matches and late events, the usual reasons.

Texts from events are cut here; whoever shows them escapes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.operate.match_table import FIXED_COLUMNS
from spark_pace.errors import one_line
from spark_pace.io.query import REFUSED, Tables
from spark_pace.io.text.value_texts import as_cells
from spark_pace.watching.sums import Summing

MOST_MATCHES = 50
_ORDER = ("matched_at", "rule", "out_seq")
_MOST_ROWS = 20
_MOST_REASONS = 10_000  # that are counted
_MOST_EVENTS = 100  # of a match
_MOST_CHARACTERS = 300


def latest_matches(tables: Tables, fields_of: Mapping[str, Iterable[str]] | None) -> list[dict[str, Any]]:
    """The matches with the greatest `matched_at`, the last first, each with its events.

    Args:
        tables: with the table `matches`, which has a column for each field of each rule.
        fields_of: the fields of rules, so that no others are read; None: they are not known.
    """
    columns = tables.schemas["matches"].names
    if fields_of is not None:
        rules = tables.newest("matches", _ORDER, MOST_MATCHES, _ORDER)["rule"].to_pylist()
        wanted = {field for rule in rules for field in fields_of.get(rule, columns)}
        columns = [name for name in columns if name in FIXED_COLUMNS or name in wanted]
    found = tables.newest("matches", _ORDER, MOST_MATCHES, columns)
    fields = [name for name in columns if name not in FIXED_COLUMNS]
    fields = [name for name in fields if found[name].null_count < found.num_rows]
    cells = {name: cells_of(found, name) for name in fields}
    texts = [
        cut(" ".join(f"{name}={cells[name][row]}" for name in fields if cells[name][row] is not None))
        for row in range(found.num_rows)
    ]
    shown = {name: cells_of(found, name) for name in FIXED_COLUMNS if name != "events"}
    lists = found["events"].to_pylist()
    return [
        {name: shown[name][row] for name in shown}
        | {"fields": text, "number": len(lists[row] or ()), "events": _events(lists[row] or [])}
        for row, text in enumerate(texts)
    ]


def _events(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    rows = pa.Table.from_pylist(events[:_MOST_EVENTS], pa.schema(FIXED_COLUMNS["events"].value_type))
    return records(rows)


def late_events(tables: Tables, by_source: pa.Table) -> dict[str, Any]:
    """The latest late events, and how many each source has; `by_source`: the sums of `LATE`."""
    seconds = pc.divide(by_source["most_us"].cast(pa.float64()), 1e6)
    shown = by_source.drop_columns(["most_us"]).add_column(2, "most_seconds", seconds)
    return {
        "by_source": _first(shown, [("events", "descending"), ("source", "ascending")]),
        "newest": records(tables.newest("late", ["event_time"], _MOST_ROWS)),
    }


def reasons(_: Tables, by_reason: pa.Table) -> list[dict[str, Any]]:
    """The most frequent reasons of rows in `quarantine`, each with the place of one of them.

    `by_reason`: the sums of `QUARANTINED`.
    """
    return _first(by_reason, [("rows", "descending"), ("reason", "ascending")])


def _first(rows: pa.Table, order: list[tuple[str, str]]) -> list[dict[str, Any]]:
    return records(rows.sort_by(order).slice(0, _MOST_ROWS))


def _late_sums(rows: pa.Table) -> pa.Table:
    found = rows.group_by("source").aggregate(
        [([], "count_all"), ("lateness_us", "max"), ("event_time", "max")]
    )
    return found.rename_columns(["source", "events", "most_us", "last"])


def _sums_of_late(sums: pa.Table) -> pa.Table:
    found = sums.group_by("source").aggregate([("events", "sum"), ("most_us", "max"), ("last", "max")])
    return found.rename_columns(sums.column_names)


def _reason_sums(rows: pa.Table) -> pa.Table:
    offset = pc.fill_null(rows["offset"].cast(pa.string()), "")
    at = pc.binary_join_element_wise(pc.fill_null(rows["source"], ""), offset, ":")
    reason = pc.utf8_slice_codeunits(rows["reason"], 0, _MOST_CHARACTERS)
    told = pa.table({"kind": rows["kind"], "rule": rows["rule"], "reason": reason, "at": at})
    found = told.group_by(["kind", "rule", "reason"]).aggregate([([], "count_all"), ("at", "min")])
    return found.rename_columns(["kind", "rule", "reason", "rows", "at"])


def _sums_of_reasons(sums: pa.Table) -> pa.Table:
    found = sums.group_by(["kind", "rule", "reason"]).aggregate([("rows", "sum"), ("at", "min")])
    found = found.rename_columns(sums.column_names)
    if found.num_rows > _MOST_REASONS:  # texts from records may make every reason another one
        found = found.sort_by([("rows", "descending")]).slice(0, _MOST_REASONS)
    return found


LATE = Summing("late", ("source", "lateness_us", "event_time"), _late_sums, _sums_of_late)
QUARANTINED = Summing(
    "quarantine", ("kind", "rule", "reason", "source", "offset"), _reason_sums, _sums_of_reasons
)


def refused_alerts(tables: Tables) -> list[dict[str, Any]]:
    """The alerts that targets have refused last."""
    return records(tables.newest(REFUSED, ["refused_at"], _MOST_ROWS))


def records(rows: pa.Table) -> list[dict[str, Any]]:
    """Rows as objects of JSON, in which times are texts and long texts are cut."""
    cells = [cells_of(rows, name) for name in rows.column_names]
    return [dict(zip(rows.column_names, row, strict=True)) for row in zip(*cells, strict=True)]


def cells_of(rows: pa.Table, name: str) -> list[Any]:
    """The values of a column as `as_cells` has them, with long texts cut."""
    values = as_cells(rows[name].combine_chunks())
    return [cut(value) if isinstance(value, str) else value for value in values]


def cut(text: str) -> str:
    """The text as one line of at most some hundred characters."""
    return one_line(text, _MOST_CHARACTERS)
