"""Joins side tables to events: the columns of the row with an event's key become attributes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.plan.rule import EventSchema
from spark_pace.core.tables import array


def joined(events: pa.Table, schema: EventSchema, tables: Mapping[str, pa.Table]) -> pa.Table:
    """Add the attributes of the schema's side tables; null where a table has no row for an event.

    The time is linear in events and tables.

    Args:
        events: a table with the columns of `schema.own`, and others.
        schema: the attributes.
        tables: the side tables by name. Each has a column for each attribute of its key, which is unique, and
            one for each attribute that it gives.
    """
    for side in schema.side_tables:
        table = tables[side.name]
        keys = [attribute for attribute, _ in side.on]
        rows = key_rows(table, keys, events)
        there, *fields = side.fields
        events = events.append_column(there.name, pc.if_else(pc.is_valid(rows), True, None))
        for field in fields:
            events = events.append_column(field.name, array(table, field.name).take(rows))
    return events


def key_rows(table: pa.Table, keys: Sequence[str], events: pa.Table) -> pa.Array:
    """int64[n]: for each event the first row of a table with the same key; null if there is none."""
    first, *others = keys
    known, asked = array(table, first), array(events, first)
    for key in others:
        values, more = pc.unique(known), pc.unique(table[key])
        known, asked = (
            pc.add(pc.multiply(_places(before, values), len(more)), _places(array(rows, key), more))
            for before, rows in ((known, table), (asked, events))
        )
    return _places(asked, known)


def _places(values: pa.Array, among: pa.Array) -> pa.Array:
    """int64[n]: the index of each value in `among`; null for null and for values that are not in it."""
    return pc.index_in(values, value_set=among, skip_nulls=True).cast(pa.int64())
