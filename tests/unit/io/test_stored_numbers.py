"""Numbers in Parquet that an attribute cannot hold: each costs its own record only."""

from __future__ import annotations

import io
import json
from datetime import datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spark_pace.core.plan.rule import EventSchema, Field
from tests.unit.io.test_event_files import parquet, read

NUMBERS = EventSchema(
    (
        Field("t", "TIMESTAMP"),
        Field("n", "BIGINT"),
        Field("d", "DECIMAL(5,2)"),
        Field("a", "ARRAY<DECIMAL(5,2)>"),
    ),
    "t",
)


@pytest.mark.parametrize("kind", [pa.int64(), pa.uint64(), pa.int16(), pa.decimal128(23, 4)])
def test_a_parquet_integer_that_does_not_fit_a_decimal_is_one_bad_record(
    tmp_path: Path, kind: pa.DataType
) -> None:
    given = {"t": [datetime(2013, 1, 1)] * 4, "d": pa.array([1, None, 1000, 999], pa.int64()).cast(kind)}
    result = read(tmp_path, parquet(given), "parquet", NUMBERS)
    assert result.events.select(["@offset", "d"]).to_pylist() == [
        {"@offset": 0, "d": Decimal(1)},
        {"@offset": 1, "d": None},
        {"@offset": 3, "d": Decimal(999)},
    ]
    shown = "1000.0000" if pa.types.is_decimal(kind) else "1000"
    assert result.bad["reason"].to_pylist() == [f"d — must be DECIMAL(5,2); got: {shown}"]
    assert json.loads(result.bad["raw"][0].as_py())["d"] in (1000, shown)


def test_parquet_numbers_with_too_many_digits_are_bad_records_each(tmp_path: Path) -> None:
    given = {
        "t": [datetime(2013, 1, 1)] * 4,
        "n": pa.array([1, 2**63, None, 2**63 - 1], pa.uint64()),
        "d": [None, None, Decimal("1.005"), Decimal("1.500")],
        "a": pa.array([[1, 2], None, [], [12345, 1]], pa.large_list(pa.int32())),
    }
    result = read(tmp_path, parquet(given), "parquet", NUMBERS)
    assert result.events["a"].to_pylist() == [[Decimal(1), Decimal(2)]]
    assert result.bad["reason"].to_pylist() == [
        "n — must be BIGINT; got: 9223372036854775808",
        "d — must be DECIMAL(5,2); got: 1.005",
        "a — must be ARRAY<DECIMAL(5,2)>; got: [12345, 1]",
    ]


def test_two_columns_of_one_name_are_told_with_it(tmp_path: Path) -> None:
    sink = io.BytesIO()
    pq.write_table(pa.table([pa.array([0], pa.timestamp("us")), [1], [2]], ["t", "n", "n"]), sink)
    result = read(tmp_path, sink.getvalue(), "parquet", NUMBERS)
    assert result.bad["reason"].to_pylist() == ["n — must be BIGINT; got: 2 columns of that name"]
