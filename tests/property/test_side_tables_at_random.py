"""Tables joined to events: an event gets what a look-up row by row gives, by keys of all types."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from spark_pace.core.expr import ARROW_TYPES, TypeName
from spark_pace.core.intake.sift import joined
from spark_pace.core.plan.rule import EventSchema, Field, SideTable

VALUES: dict[TypeName, list[object]] = {
    "STRING": ["", "a", "ß", None],
    "BIGINT": [0, -(2**63), 2**63 - 1, None],
    "BOOLEAN": [True, False, None],
    "DATE": [date(2024, 2, 29), date(1970, 1, 1), None],
    "TIMESTAMP": [datetime(2024, 1, 1), datetime(1900, 1, 1), None],
    "DECIMAL(5,2)": [Decimal("1.25"), Decimal("-0.01"), None],  # type: ignore[dict-item]
}


@given(st.data())
def test_an_event_gets_the_row_of_its_key(data: st.DataObject) -> None:
    kinds = data.draw(st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=3))
    key = st.tuples(*(st.sampled_from(VALUES[kind]) for kind in kinds))
    rows = data.draw(st.dictionaries(key, st.one_of(st.none(), st.integers(0, 9)), max_size=8))
    events = data.draw(st.lists(key, max_size=12))
    names = [f"k{number}" for number in range(len(kinds))]
    keys = tuple(Field(name, kind) for name, kind in zip(names, kinds, strict=True))
    side = SideTable("t", "t.csv", tuple((name, name) for name in names), (Field("v", "BIGINT"),))
    schema = EventSchema((*keys, *side.fields), names[0], side_tables=(side,))
    table = columns(names, kinds, list(rows)).append_column("t.v", pa.array(rows.values(), pa.int64()))
    found = joined(columns(names, kinds, events), schema, {"t": table})
    expected = [rows[event] if None not in event and event in rows else None for event in events]
    there = [True if None not in event and event in rows else None for event in events]
    assert found["t.v"].to_pylist() == expected
    assert found["t"].to_pylist() == there


def columns(names: list[str], kinds: list[TypeName], rows: list[tuple[object, ...]]) -> pa.Table:
    listed = [pa.array([row[place] for row in rows], ARROW_TYPES[kind]) for place, kind in enumerate(kinds)]
    return pa.table(listed, names=names)
