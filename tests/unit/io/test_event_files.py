from __future__ import annotations

import gzip
import io
import re
from collections.abc import Callable
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spark_pace.core.plan.plan import MOST_BAD_RECORDS
from spark_pace.core.plan.rule import EventSchema, Field
from spark_pace.errors import EventError
from spark_pace.io.event_files import EventsRead, read_events
from spark_pace.io.replay import read_all
from spark_pace.io.text import lines

TYPES = {"t": "TIMESTAMP", "n": "BIGINT", "x": "DOUBLE", "s": "STRING", "b": "BOOLEAN", "d": "DATE"}
SCHEMA = EventSchema(tuple(Field(name, kind) for name, kind in TYPES.items()), "t")
T = "2013-01-01T00:00:00"
T_US = 1_356_998_400_000_000


def read(
    tmp_path: Path,
    text: str | bytes,
    format: str = "json",
    schema: EventSchema = SCHEMA,
    most_bad: int = MOST_BAD_RECORDS,
) -> EventsRead:
    path = tmp_path / f"events.{format}"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_events(str(path), format, schema, "events", most_bad)


def test_a_json_file_becomes_typed_columns_with_time_source_and_row_number(tmp_path: Path) -> None:
    result = read(tmp_path, f'{{"t":"{T}","n":1,"x":2,"s":"é","b":true,"d":"2020-02-29"}}\n{{"t":"{T}"}}')
    place = {"@time": pa.int64(), "@source": pa.dictionary(pa.int32(), pa.string()), "@offset": pa.int64()}
    kinds = (pa.timestamp("us"), pa.int64(), pa.float64(), pa.string(), pa.bool_(), pa.date32())
    assert result.events.schema == pa.schema(place | dict(zip("tnxsbd", kinds, strict=True)))
    first, second = result.events.to_pylist()
    values = [datetime(2013, 1, 1), 1, 2.0, "é", True, date(2020, 2, 29)]
    assert list(first.values()) == [T_US, "events", 0, *values]
    assert list(second.values())[2:] == [1, datetime(2013, 1, 1), None, None, None, None, None]
    assert result.read_rows == 2


@pytest.mark.parametrize(
    ("format", "good", "bad", "reason"),
    [
        (
            "json",
            f'{{"t":"{T}","n":1}}',
            f'{{"t":"{T}","n":"1"}}',
            "n — must be BIGINT; got: a JSON string",
        ),
        ("csv", f"{T},1", f"{T},x", "n — must be BIGINT; got: 'x'"),
        ("csv", f"{T},1", T, "the record — must have the columns t, n; got: 1 value"),
    ],
)
@pytest.mark.parametrize(
    ("lines", "bad_rows", "most_calls"),
    [
        (500, range(500), 1000),
        (500, range(0, 500, 2), 1000),
        (3000, range(1717, 1718), 60),
        pytest.param(3000, range(3000), 6000, marks=pytest.mark.long),
        pytest.param(3000, range(0, 3000, 2), 6000, marks=pytest.mark.long),
    ],
)
def test_a_flood_of_bad_lines_takes_a_call_or_two_of_the_parser_for_each(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    format: str,
    good: str,
    bad: str,
    reason: str,
    lines: int,
    bad_rows: range,
    most_calls: int,
) -> None:
    calls = []
    parser, name = (pa.json, "read_json") if format == "json" else (pa.csv, "read_csv")
    parse = getattr(parser, name)
    monkeypatch.setattr(parser, name, lambda *given, **options: calls.append(1) or parse(*given, **options))
    header = ["t,n"] if format == "csv" else []
    rows = [(bad if row in bad_rows else good).replace(T, f"{T}.{row:06d}") for row in range(lines)]
    result = read(tmp_path, "\n".join([*header, *rows]), format, most_bad=lines)
    assert result.bad["offset"].to_pylist() == list(bad_rows)
    assert {re.sub(r"\.\d{6}", "", told) for told in result.bad["reason"].to_pylist()} == {reason}
    assert result.events["@offset"].to_pylist() == [row for row in range(lines) if row not in bad_rows]
    assert len(calls) < most_calls


def test_bytes_that_are_not_utf8_are_a_bad_record(tmp_path: Path) -> None:
    result = read(tmp_path, b'{"t":"%s","s":"\xff\xfe"}\n{"t":"%s"}\n' % (T.encode(), T.encode()))
    assert result.events["@offset"].to_pylist() == [1]
    assert result.bad["reason"].to_pylist()[0].startswith("the record — must be JSON; got: not UTF-8: ")


def test_windows_line_ends_a_byte_order_mark_and_blank_lines_do_no_harm(tmp_path: Path) -> None:
    result = read(tmp_path, b'\xef\xbb\xbf{"t":"%s"}\r\n   \r\n{"t":"%s"}\r\n' % (T.encode(), T.encode()))
    assert result.events["@offset"].to_pylist() == [0, 2]
    assert result.bad.num_rows == 0


@pytest.mark.parametrize("chunk_bytes", [1, 50, 4096])
def test_the_size_of_a_chunk_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk_bytes: int
) -> None:
    text = "".join(f'{{"t":"{T}","n":{i}}}\n' if i % 7 else ("oops\n" if i % 2 else "\n") for i in range(200))
    whole = read(tmp_path, text)
    monkeypatch.setattr(lines, "CHUNK_BYTES", chunk_bytes)
    parts = read(tmp_path, text)
    assert parts.events.equals(whole.events)
    assert parts.bad.equals(whole.bad)
    assert parts.read_rows == 200 - 15


def test_an_empty_file_holds_nothing(tmp_path: Path) -> None:
    for format in ("json", "csv"):
        assert read(tmp_path, "", format).read_rows == 0


def test_compressed_text_is_read(tmp_path: Path) -> None:
    path = tmp_path / "events.json.gz"
    path.write_bytes(gzip.compress(f'{{"t":"{T}"}}\n'.encode()))
    assert read_events(str(path), "json", SCHEMA, "e").events.num_rows == 1


LINES = "".join(f'{{"t":"{T}","n":{i * i}}}\n' for i in range(2000)).encode()


def cut(whole: bytes) -> bytes:
    return whole[: len(whole) * 3 // 4]


def spoilt(whole: bytes) -> bytes:
    middle = len(whole) // 2
    return whole[:middle] + bytes(100) + whole[middle + 100 :]


@pytest.mark.parametrize("damage", [cut, spoilt, lambda whole: whole + b"more", lambda whole: LINES])
@pytest.mark.parametrize(("codec", "ending"), [("gzip", "gz"), ("bz2", "bz2"), ("zstd", "zst")])
def test_a_damaged_archive_is_one_bad_record_and_none_of_its_events_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, codec: str, ending: str, damage: Callable[[bytes], bytes]
) -> None:
    monkeypatch.setattr(lines, "CHUNK_BYTES", 1_000)  # so that events are read before the damage
    path = tmp_path / f"events.json.{ending}"
    with pa.output_stream(path, compression=codec) as file:
        file.write(LINES)
    assert read_events(str(path), "json", SCHEMA, "e").events.num_rows == 2000
    path.write_bytes(damage(path.read_bytes()))
    result = read_events(str(path), "json", SCHEMA, "e")
    assert (result.events.num_rows, result.read_rows) == (0, 1)
    (bad,) = result.bad.to_pylist()
    assert (bad["source"], bad["offset"], bad["raw"]) == ("e", 0, b"")
    assert bad["reason"].startswith("the file — must be undamaged; got: ")


@pytest.mark.parametrize(
    ("codec", "ending"), [("gzip", "gz"), ("bz2", "bz2"), ("lz4", "lz4"), ("zstd", "zst")]
)
def test_replay_reads_the_archives_of_a_folder(tmp_path: Path, codec: str, ending: str) -> None:
    with pa.output_stream(tmp_path / f"2.json.{ending}", compression=codec) as file:
        file.write(LINES)
    (tmp_path / "1.json").write_bytes(LINES)
    assert read_all(tmp_path, SCHEMA).events.num_rows == 4000
    assert read_all(tmp_path / f"2.json.{ending}", SCHEMA).events.num_rows == 2000


def parquet(columns: dict[str, Any]) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue()


def test_parquet_columns_are_widened_to_the_types_of_the_schema(tmp_path: Path) -> None:
    zoned = pa.array([datetime(2013, 1, 1, tzinfo=timezone.utc), None], pa.timestamp("ms", "Europe/Paris"))
    short, whole = pa.array([1, 2], pa.int16()), pa.array([1, 2], pa.int32())
    table = parquet({"t": zoned, "n": short, "x": whole, "s": pa.array(["a", "b"], pa.large_string())})
    result = read(tmp_path, table, "parquet")
    place = {"@time": T_US, "@source": "events", "@offset": 0}
    values = {"t": datetime(2013, 1, 1), "n": 1, "x": 1.0, "s": "a", "b": None, "d": None}
    assert result.events.to_pylist() == [place | values]
    assert result.bad["offset"].to_pylist() == [1]


def test_parquet_times_of_an_hour_that_a_clock_shows_twice_are_read(tmp_path: Path) -> None:
    counts = [1_635_640_200_000_000_000 + seconds * 1_000_000_000 for seconds in (-20_000, 0, 20_000)]
    zoned = pa.array(counts, pa.int64()).cast(pa.timestamp("ns", "Europe/Berlin"))
    result = read(tmp_path, parquet({"t": zoned}), "parquet")
    assert result.events["@time"].to_pylist() == [count // 1000 for count in counts]
    assert result.bad.num_rows == 0


def test_a_parquet_file_with_a_wrong_column_is_one_bad_record(tmp_path: Path) -> None:
    result = read(tmp_path, parquet({"t": ["soon"]}), "parquet")
    assert result.bad["reason"].to_pylist() == ["t — must be TIMESTAMP; got: a column of string"]
    result = read(tmp_path, b"PAR0", "parquet")
    assert result.bad["reason"][0].as_py().startswith("the file — must be Parquet; got: ")
    damaged = parquet({"t": [datetime(2013, 1, 1)] * 99, "s": [str(i) for i in range(99)]})
    result = read(tmp_path, damaged[:50] + bytes(300) + damaged[350:], "parquet")
    assert result.bad["reason"][0].as_py().startswith("the file — must be undamaged; got: ")


def test_a_file_that_is_gone_is_named(tmp_path: Path) -> None:
    do = "Put it back; if it is gone for good, an empty json file of that name in its place lets"
    with pytest.raises(EventError, match=r"gone\.json — must be a readable json file; got: .* " + do):
        read_events(str(tmp_path / "gone.json"), "json", SCHEMA, "gone")


def test_a_disk_that_fails_is_not_taken_for_a_damaged_file() -> None:
    with pytest.raises(EventError, match="Input/output error"):
        read_events("/proc/self/mem", "json", SCHEMA, "mem")
