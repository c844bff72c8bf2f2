"""Makes the table of matches that operators give to the merger.

The merger orders matches by the columns with "@", which no user sees: ``@release_us``; ``@phase``, 0 at an
event and 1 directly after all events of that time; ``@tie0…``, which order the releasing event among those of
its time. Matches that are equal in these and in their selection are ordered by their ``events``; rows of a
Python operator, which may have no events, stay in their order. Texts that repeat (keys, components and
sources) are dictionaries here, and texts after the merger.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from spark_pace import ways
from spark_pace.core.columns import OFFSET, SOURCE, UTC_TIME, Ints
from spark_pace.core.match.found_matches import Found
from spark_pace.core.match.search.members import role_names
from spark_pace.core.match.stream import Positions, Stream
from spark_pace.core.operate.emit_fields import emit_fields
from spark_pace.core.plan.plan import Plan, RulePlan
from spark_pace.core.plan.rule import column_name
from spark_pace.core.tables import array, compacted

EVENTS_TYPE = pa.list_(
    pa.struct([
        ("component", pa.string()),
        ("seq", pa.int64()),
        ("event_time", UTC_TIME),
        ("source", pa.string()),
        ("offset", pa.int64()),
    ])
)  # fmt: skip
# The columns of every match. The merger fills `rule` and `out_seq`, the functions below fill the others.
# Partition columns and fields of `emit` come before `events`, and may not have these names.
FIXED_COLUMNS: dict[str, pa.DataType] = {
    "rule": pa.string(),
    "key": pa.string(),  # null without partition_by
    "out_seq": pa.int64(),
    "selection_id": pa.int64(),
    "seq": pa.int64(),
    "opened_at": UTC_TIME,
    "matched_at": UTC_TIME,
    "events": EVENTS_TYPE,
}


THE_EVENT = "event"  # the component of the event that gives a fold's match


@dataclass(frozen=True)
class Labels:
    """The columns that m matches get from their selections.

    Attributes:
        selection_id: int64[m].
        opened_us: int64[m], the time of the opening event; for a grid span, the window's start.
        matched_us: int64[m], the time of the match's last event, or the end of the window that decided it.
        release: m positions, at which each match may go out.
    """

    selection_id: Ints
    opened_us: Ints
    matched_us: Ints
    release: Positions


def matched_us(matches: pa.Table) -> Ints:
    """int64[m], the column `matched_at` of matches, in microseconds since 1970."""
    return array(matches, "matched_at").view(pa.int64()).to_numpy()  # type: ignore[no-any-return]


def pattern_matches(plan: Plan, planned: RulePlan, stream: Stream, found: Found, labels: Labels) -> pa.Table:
    """The matches of a pattern as a table."""
    columns = _head(plan, planned, stream, labels, found.first)
    columns["seq"] = pa.array(stream.seq[found.last])
    columns["matched_at"] = _utc(labels.matched_us)
    columns |= emit_fields(planned.rule, stream, found)
    assert planned.rule.pattern is not None
    columns["events"] = _events(role_names(planned.rule.pattern), stream, found)
    return pa.table(columns)


def row_matches(
    plan: Plan,
    planned: RulePlan,
    stream: Stream,
    found: Found,
    labels: Labels,
    ends: tuple[Ints, Ints],
    fields: pa.Table,
) -> pa.Table:
    """The matches of a row pattern as a table; `ends` are the first and the last row of each match.

    A match without rows has the row at which it was sought as both.
    """
    columns = _head(plan, planned, stream, labels, ends[0])
    columns["seq"] = pa.array(stream.seq[ends[1]])
    columns["matched_at"] = _utc(labels.matched_us)
    columns |= {name: array(fields, name) for name in fields.column_names}
    assert planned.rule.rows is not None
    columns["events"] = _events(list(planned.rule.rows.variables), stream, found)
    return pa.table(columns)


def event_matches(
    plan: Plan, planned: RulePlan, stream: Stream, labels: Labels, rows: Ints, fields: pa.Table
) -> pa.Table:
    """The table of matches of one event each, the events in `rows`; `fields` are those of ``emit``."""
    number = np.arange(len(rows))
    found = Found(rows, rows, number, np.arange(len(rows) + 1), rows, np.zeros(len(rows), np.int64))
    table = span_matches(plan, planned, stream, labels, rows, fields).drop_columns(["events"])
    return table.append_column("events", _events([THE_EVENT], stream, found))


def span_matches(
    plan: Plan,
    planned: RulePlan,
    stream: Stream,
    labels: Labels,
    last: Ints,
    rows: pa.Table,
) -> pa.Table:
    """The table of matches that whole spans give: rows of a Python operator, or aggregates.

    Args:
        plan: the plan.
        planned: the rule.
        stream: the lane's stream.
        labels: the labels of each match's selection.
        last: int64[m], the row of the last event of each match's selection.
        rows: the fields of ``emit`` of the m matches.
    """
    columns = _head(plan, planned, stream, labels, last)
    columns["seq"] = pa.array(stream.seq[last])
    columns["matched_at"] = _utc(labels.matched_us)
    columns |= {name: array(rows, name) for name in rows.column_names}
    offsets = pa.array(np.zeros(len(last) + 1, np.int32))
    columns["events"] = pa.ListArray.from_arrays(
        offsets, pa.array([], EVENTS_TYPE.value_type), type=EVENTS_TYPE
    )
    return pa.table(columns)


def _utc(times: Ints) -> pa.Array:
    return pa.array(times).view(UTC_TIME)


def _head(plan: Plan, planned: RulePlan, stream: Stream, labels: Labels, member: Ints) -> dict[str, pa.Array]:
    """The columns for order, key, selection and partition; `member` has a row of each match."""
    columns = {"@release_us": pa.array(labels.release.time), "@phase": pa.array(labels.release.code & 1)}
    columns |= _ties(plan, planned, stream, labels.release)
    if planned.key_column is None:
        columns["key"] = pa.nulls(len(member), pa.string())
    else:
        columns["key"] = _codes(stream, planned.key_column, pa.array(member))
    columns["selection_id"] = pa.array(labels.selection_id)
    columns["opened_at"] = _utc(labels.opened_us)
    for name in planned.rule.partition_by:
        columns[column_name(name)] = stream.attribute(name).take(pa.array(member))
    return columns


def _ties(plan: Plan, planned: RulePlan, stream: Stream, release: Positions) -> dict[str, pa.Array]:
    """The columns ``@tie…``; null where a match goes out after all events of its time."""
    at_event = release.code & 1 == 0
    rows = np.where(at_event, release.code // 2, 0)
    index = pa.array(rows, mask=~at_event)
    if planned.panes is not None:  # their matches never go out at an event
        return {}
    if planned.key_column is None:
        return {"@tie0": pa.array(stream.seq).take(index)}
    ties = {}
    for number, name in enumerate(plan.tie_columns):
        take = _codes if name == SOURCE else _taken
        ties[f"@tie{number}"] = take(stream, name, index)
    return ties


def _taken(stream: Stream, name: str, rows: pa.Array) -> pa.Array:
    return stream.attribute(name).take(rows)


def _codes(stream: Stream, name: str, rows: pa.Array) -> pa.DictionaryArray:
    """A column of texts at these rows, as a dictionary with few values that they do not use."""
    taken = _taken(stream, name, rows)
    if ways.is_compacted(len(taken.dictionary), len(rows)):
        return array(compacted(pa.table({name: taken})), name)
    return taken


def _events(components: list[str], stream: Stream, found: Found) -> pa.Array:
    """The production set of each match, in stream order, with texts as dictionaries."""
    names, index = pa.array(components, pa.string()), pa.array(found.members)
    events = pa.StructArray.from_arrays(
        [
            pa.DictionaryArray.from_arrays(pa.array(found.roles), names),
            pa.array(stream.seq[found.members]),
            _utc(stream.time[found.members]),
            _codes(stream, SOURCE, index),
            array(stream.events, OFFSET).take(index),
        ],
        names=[field.name for field in EVENTS_TYPE.value_type],
    )
    return pa.ListArray.from_arrays(pa.array(found.offsets, pa.int32()), events)
