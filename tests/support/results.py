"""Matches of the core and of the oracle in one shape, and what differs between them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

import pyarrow as pa

from spark_pace.core.expr import ARROW_TYPES
from spark_pace.core.plan.rule import Rule
from tests.oracle.contexts import Event
from tests.oracle.matches import Match

Row = dict[str, Any]
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def micros(time: datetime | int) -> int:
    """A time as microseconds since 1970."""
    if isinstance(time, int):
        return time
    aware = time if time.tzinfo else time.replace(tzinfo=timezone.utc)
    return (aware - EPOCH) // timedelta(microseconds=1)


def plain(value: Any) -> Any:
    """A value that is equal to one like it: a time as microseconds, NaN as text."""
    if isinstance(value, datetime):
        return micros(value)
    return "NaN" if value != value else value


def from_oracle(rule: Rule, matches: Sequence[Match]) -> list[Row]:
    return [
        {
            "out_seq": number,
            "key": match.key,
            "selection_id": match.selection_id,
            "seq": match.seq,
            "opened_at": match.opened_at,
            "matched_at": match.matched_at,
            "fields": {**(match.key or {}), **{name: plain(value) for name, value in match.fields.items()}},
            "events": match.events,
        }
        for number, match in enumerate(matches)
    ]


def from_core(rule: Rule, matches: pa.Table) -> list[Row]:
    """The rows of one rule in a table of matches."""
    names = [*rule.partition_by, *(emit.name for emit in rule.emit)]
    return [
        {
            "out_seq": row["out_seq"],
            "key": None if row["key"] is None else json.loads(row["key"]),
            "selection_id": row["selection_id"],
            "seq": row["seq"],
            "opened_at": micros(row["opened_at"]),
            "matched_at": micros(row["matched_at"]),
            "fields": {name: plain(row[name]) for name in names},
            "events": tuple(
                (
                    event["component"],
                    event["seq"],
                    micros(event["event_time"]),
                    event["source"],
                    event["offset"],
                )
                for event in row["events"] or []
            ),
        }
        for row in matches.to_pylist()
        if row["rule"] == rule.name
    ]


def table_of(rule: Rule, events: Sequence[Event]) -> pa.Table:
    """Events as the core takes them, in the order given."""
    columns: dict[str, pa.Array] = {
        "@time": pa.array([event.time for event in events], pa.int64()),
        "@source": pa.array([event.source for event in events], pa.string()).dictionary_encode(),
        "@offset": pa.array([event.offset for event in events], pa.int64()),
    }
    for attribute in rule.schema.fields:
        values = [event.row[attribute.name] for event in events]
        if attribute.type == "TIMESTAMP":
            columns[attribute.name] = pa.array(values, pa.int64()).cast(pa.timestamp("us"))
        else:
            columns[attribute.name] = pa.array(values, ARROW_TYPES[attribute.type])
    return pa.table(columns)


def brief(row: Row) -> str:
    """A row on one line: number, key, selection:seq, production set, fields."""
    events = " ".join(f"{component}={source}{offset}" for component, _, _, source, offset in row["events"])
    times = f"{row['opened_at'] / 1e6:g}..{row['matched_at'] / 1e6:g}"
    place = f"#{row['out_seq']} key={row['key']} {row['selection_id']}:{row['seq']}"
    return f"{place} @{times} ({events}) {row['fields']}"


def difference(expected: Sequence[Row], got: Sequence[Row]) -> str:
    """What stands in one list only, or how the orders differ; empty where the lists are equal."""
    if list(expected) == list(got):
        return ""
    unnumbered = [Counter(brief({**row, "out_seq": "-"}) for row in rows) for rows in (expected, got)]
    missing, surplus = unnumbered[0] - unnumbered[1], unnumbered[1] - unnumbered[0]
    lines = [f"in oracle, not ours: {text}" for text in missing.elements()]
    lines += [f"in ours, not oracle: {text}" for text in surplus.elements()]
    return "\n".join(lines or out_of_order(expected, got))


def out_of_order(expected: Sequence[Row], got: Sequence[Row]) -> list[str]:
    """The rows from the first to the last that stand elsewhere."""
    apart = [number for number, (right, ours) in enumerate(zip(expected, got, strict=True)) if right != ours]
    shown = slice(apart[0], apart[-1] + 1)
    rows = [
        *(f"oracle {brief(row)}" for row in expected[shown]),
        *(f"ours   {brief(row)}" for row in got[shown]),
    ]
    return ["the rows are the same, their order or times are not:", *rows]
