"""Records of a log as events: values of JSON or CSV, the records' own columns, and bad records."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pyarrow as pa
import pytest

from spark_pace.core.plan.rule import EventSchema, Field
from spark_pace.io import records
from spark_pace.io.event_files import EventsRead
from spark_pace.io.records import read_records
from spark_pace.io.text import lines

SCHEMA = EventSchema((Field("t", "TIMESTAMP"), Field("n", "BIGINT"), Field("s", "STRING")), "t")
T = "2013-01-01T00:00:00Z"
T_US = 1_356_998_400_000_000


def read(
    values: list[bytes | None], format: str = "json", schema: EventSchema = SCHEMA, **columns: pa.Array
) -> EventsRead:
    """The values as records of two sources by turns, from offset 10 on."""
    sources = pa.array(["x/0", "x/1"] * len(values)).slice(0, len(values)).dictionary_encode()
    sources = pa.DictionaryArray.from_arrays(sources.indices, sources.dictionary.cast(pa.string()))
    return read_records(
        pa.table(
            {
                "@value": pa.array(values, pa.binary()),
                "@source": sources,
                "@offset": pa.array(range(10, 10 + len(values)), pa.int64()),
                **columns,
            }
        ),
        format,
        schema,
    )


def json_of(n: int, s: str = "a") -> bytes:
    return f'{{"t": "{T}", "n": {n}, "s": "{s}"}}'.encode()


def places(rows: Any) -> list[tuple[str, int]]:
    names = ("@source", "@offset") if "@source" in rows.column_names else ("source", "offset")
    return list(zip(*(rows[name].to_pylist() for name in names), strict=True))


def test_a_record_keeps_its_source_and_offset() -> None:
    result = read([json_of(1), json_of(2), json_of(3)])
    assert places(result.events) == [("x/0", 10), ("x/1", 11), ("x/0", 12)]
    assert result.events["n"].to_pylist() == [1, 2, 3]
    assert result.events["@time"].to_pylist() == [T_US] * 3
    assert (result.bad.num_rows, result.read_rows) == (0, 3)


def test_no_records_are_no_events() -> None:
    for format in ("json", "csv"):
        result = read([], format)
        assert (result.events.num_rows, result.bad.num_rows) == (0, 0)
        assert result.events.column_names == ["@time", "@source", "@offset", "t", "n", "s"]


def test_a_newline_inside_a_value_does_not_split_it() -> None:
    spread = f'{{\r\n  "t": "{T}",\n  "n": 1\n}}\n'.encode()
    result = read([spread, json_of(2), json_of(3, "a\nb"), json_of(4)])
    assert result.events["n"].to_pylist() == [1, 2, 4]
    assert places(result.bad) == [("x/0", 12)]  # JSON has no bare newline inside a text
    assert result.bad["raw"].to_pylist() == [json_of(3, "a\nb")]


def test_each_value_is_one_event() -> None:
    result = read(
        [
            json_of(1),
            None,
            b"",
            b" \n",
            json_of(2) + json_of(3),
            json_of(4) + b"\n" + json_of(5),
            b"null",
            json_of(6),
        ]
    )
    assert result.events["n"].to_pylist() == [1, 6]
    assert [offset for _, offset in places(result.bad)] == [11, 12, 13, 14, 15, 16]
    assert result.bad["reason"].to_pylist()[:3] == ["the value — must be one event; got nothing"] * 3
    assert result.bad["raw"].to_pylist()[:3] == [b"", b"", b" \n"]
    assert result.read_rows == 8


@pytest.mark.parametrize("format", ["json", "csv"])
def test_a_value_that_is_too_long_is_cut_and_its_neighbours_are_read(format: str) -> None:
    good = {"json": json_of(1), "csv": f"{T},1,a".encode()}[format]
    long = b"x" * (lines.MOST_RECORD_BYTES + 1)
    result = read([good, long, good], format)
    assert places(result.events) == [("x/0", 10), ("x/0", 12)]
    assert places(result.bad) == [("x/1", 11)]
    assert result.bad["reason"].to_pylist() == [lines.too_long(len(long))]
    assert result.bad["raw"].to_pylist() == [long[: lines.KEPT_BYTES]]


def test_a_value_without_a_possible_time_is_bad() -> None:
    result = read([b'{"n": 1}', json_of(2)])
    assert result.bad["reason"].to_pylist() == ["t — must be an event time from 1900 to 2199; got nothing"]
    assert places(result.bad) == [("x/0", 10)]


def test_csv_has_the_attributes_in_their_order() -> None:
    texts = [f"{T},1,a", f"{T},2,b\r\n", f'{T},3,"c\nd"', f"{T},4", f"{T},5,e\n", f"{T},six,f"]
    result = read([text.encode() for text in texts], "csv")
    assert result.events["n"].to_pylist() == [1, 2, 5]
    assert result.events["s"].to_pylist() == ["a", "b", "e"]
    assert [offset for _, offset in places(result.bad)] == [12, 13, 15]
    assert result.bad["reason"][0].as_py() == "the value — must be one event; got several lines"
    assert result.bad["reason"][1].as_py().startswith("the record — must have the columns t, n, s; got: ")


def test_attributes_may_come_from_the_records_own_columns() -> None:
    times = pa.array([T_US, T_US + 1, None], pa.timestamp("us", "UTC"))
    result = read([b"7,", b"8,b", b"9,c"], "csv", t=times)
    assert result.events["n"].to_pylist() == [7, 8]
    assert result.events["s"].to_pylist() == [None, "b"]
    assert result.events["@time"].to_pylist() == [T_US, T_US + 1]
    assert result.events.column_names[3:] == ["t", "n", "s"]
    assert result.bad["reason"].to_pylist() == ["t — must be an event time from 1900 to 2199; got nothing"]


def test_a_column_that_does_not_fit_makes_the_record_bad() -> None:
    columns = {
        "t": pa.array([T.encode(), b"2013-01-01 00:00:01+01:00", b"soon", b"2013-01-01"]),
        "n": pa.array([b"1", b"two", b"3", b"4"]),
    }
    texts = pa.array([b"a", b"b", b"c", b"\xff"], pa.binary())
    result = read([b"raw", None, b"", b"x"], "columns", **columns, s=texts)
    assert result.events["n"].to_pylist() == [1]
    assert result.events["t"].to_pylist() == [datetime(2013, 1, 1)]
    assert [offset for _, offset in places(result.bad)] == [11, 12, 13]
    assert [reason.split(";")[0] for reason in result.bad["reason"].to_pylist()] == [
        "n — must be BIGINT",
        "t — must be TIMESTAMP",
        "s — must be STRING",
    ]
    assert result.bad["raw"].to_pylist() == [b"", b"", b"x"]


def test_a_time_stamp_counts_milliseconds_where_the_attribute_is_a_number() -> None:
    schema = EventSchema(
        (Field("t", "BIGINT"), Field("n", "BIGINT"), Field("s", "STRING")), "t", time_unit="ms"
    )
    stamps = pa.array([T_US + 5_000], pa.timestamp("us", "UTC"))
    result = read([None], "columns", schema, t=stamps, n=pa.array([3], pa.int32()), s=pa.array(["topic"]))
    assert result.events["t"].to_pylist() == [T_US // 1000 + 5]
    assert result.events["@time"].to_pylist() == [T_US + 5_000]
    assert result.events["s"].to_pylist() == ["topic"]


def test_many_records_are_parsed_piece_by_piece(monkeypatch: Any) -> None:
    monkeypatch.setattr(records, "CHUNK_BYTES", 100)
    assert lines.CHUNK_BYTES > 100
    values: list[bytes | None] = [json_of(number) for number in range(50)]
    values[31] = b"{"
    result = read(values)
    assert result.events["n"].to_pylist() == [number for number in range(50) if number != 31]
    assert places(result.bad) == [("x/1", 41)]
    assert places(result.events)[31] == ("x/0", 42)
