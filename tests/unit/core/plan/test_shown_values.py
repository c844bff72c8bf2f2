"""Values that Python does not know are shown all the same: as late events, as keys, and by commands."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from spark_pace.core.expr.time_functions import FIRST_DAY, FIRST_US, LAST_DAY, LAST_US, out_of_range
from spark_pace.core.intake.pack import key_texts
from spark_pace.core.plan.structs import json_rows
from spark_pace.io.text.value_texts import as_cells, as_json

DAYS = pa.array([FIRST_DAY - 1, FIRST_DAY, LAST_DAY, LAST_DAY + 1, 2**31 - 1, None], pa.date32())
TIMES = pa.array([FIRST_US - 1, FIRST_US, LAST_US, LAST_US + 1, 2**63 - 1, None], pa.timestamp("us"))
SHOWN_DAYS = [
    "0000-12-31",
    "0001-01-01",
    "9999-12-31",
    "10000-01-01",
    "<value out of range: 2147483647>",
    None,
]
OUTSIDE = [True, False, False, True, True, False]


@pytest.mark.parametrize("values", [DAYS, TIMES])
def test_the_range_of_times_is_the_years_1_to_9999(values: pa.Array) -> None:
    lists = pa.ListArray.from_arrays(pa.array([0, 0, 1, 3, 6], pa.int32()), values)
    for column in (values, pa.chunked_array([values]), pa.chunked_array([values[:2], values[2:]])):
        assert out_of_range(column).tolist() == OUTSIDE
    assert out_of_range(lists).tolist() == [False, True, False, True]
    assert out_of_range(lists.slice(2)).tolist() == [False, True]
    assert out_of_range(values.slice(1, 2)) is None
    assert out_of_range(pa.array([2**63 - 1])) is None
    assert out_of_range(values.slice(5)) is None


def test_rows_are_json_whatever_they_hold() -> None:
    texts = pa.array([b"\xff", b"a", b"", b"\x00", b"\xc3\xa9", None]).view(pa.string())
    table = pa.table({"d": DAYS, "s": texts, "o": pa.StructArray.from_arrays([TIMES], ["u"])})
    rows = [json.loads(text) for text in json_rows(table)]
    assert [row["d"] for row in rows] == SHOWN_DAYS
    assert [row["s"] for row in rows] == [r"\xff", "a", "", "\x00", "é", None]
    assert rows[3]["o"]["u"] == "10000-01-01 00:00:00.000000"
    assert json_rows(table.slice(1, 2).select(["d"])) == ['{"d": "0001-01-01"}', '{"d": "9999-12-31"}']
    assert json_rows(table.slice(0, 2).select([])) == ["{}", "{}"]


def test_every_date_is_a_key_of_its_own() -> None:
    keys = key_texts(["d"], [DAYS])
    assert [json.loads(key)["d"] for key in keys.to_pylist()] == SHOWN_DAYS
    assert len(set(key_texts(["u"], [TIMES]).to_pylist())) == len(TIMES)


def test_commands_show_every_date() -> None:
    assert as_cells(DAYS) == SHOWN_DAYS
    assert as_json(DAYS).to_pylist() == [json.dumps(day) for day in SHOWN_DAYS]
