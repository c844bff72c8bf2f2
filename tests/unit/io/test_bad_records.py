"""What is kept of bad records: the first ones of a file, and one row for all others, in bounded memory."""

from __future__ import annotations

import bz2
import gzip
import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from spark_pace.core.expr.time_functions import LAST_US
from spark_pace.core.plan.rule import EventSchema, Field
from spark_pace.io import bad_records
from spark_pace.io.event_files import read_events
from spark_pace.io.records import read_records
from spark_pace.io.text import lines
from tests.support.commands import spark_pace

SCHEMA = EventSchema((Field("t", "TIMESTAMP"), Field("n", "BIGINT"), Field("d", "DATE")), "t")
GOOD = '{"t":"2024-01-01T00:00:00","n":1}'
BAD = {
    "no object": "the record — must be a JSON object that begins with { and ends with } in its line",
    "{no json}": "the record — must be JSON; got: ",
    '{"t":"2024-01-01T00:00:00","n":"1"}': "n — must be BIGINT; got: ",
    "{}": "t — must be an event time from 1900 to 2199; got nothing",
    '{"t":"0000-06-01T00:00:00Z"}': "t — must be an event time from 1900 to 2199; got 0000-06-01 00:00:00",
    '{"t":"2024-01-01","d":"0000-01-01"}': "d — must be from 0001-01-01 to 9999-12-31; got 0000-01-01",
}
FLOOD = """
import resource, sys
from spark_pace.io.event_files import read_events
from tests.unit.io.test_bad_records import SCHEMA
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
read = read_events(sys.argv[1], "json", SCHEMA, "flood")
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
print(grown >> 10, read.events.num_rows, read.bad.num_rows, read.read_rows)
"""


def mixed(rounds: int) -> list[str]:
    """Good lines, blank ones and every kind of bad ones."""
    return [line for _ in range(rounds) for line in (GOOD, *BAD, "", GOOD)]


@pytest.mark.parametrize("chunk_bytes", [1, 100, lines.CHUNK_BYTES])
@pytest.mark.parametrize("most", [1, 5, 6, 7, 40, 119])
def test_the_first_bad_records_are_told_and_the_others_summed_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int, chunk_bytes: int
) -> None:
    monkeypatch.setattr(lines, "CHUNK_BYTES", chunk_bytes)
    path = tmp_path / "events.json"
    path.write_text("\n".join(mixed(20)))
    rows = [row for row, line in enumerate(mixed(20)) if line in BAD]
    read = read_events(str(path), "json", SCHEMA, "events", most)
    assert (read.events.num_rows, read.bad_rows, read.read_rows) == (40, 120, 160)
    assert read.bad["offset"].to_pylist() == rows[: most + 1]
    *told, others = read.bad.to_pylist()
    for row in told:
        assert row["raw"].decode() == mixed(20)[row["offset"]]
        assert row["reason"].startswith(BAD[row["raw"].decode()])
    first, last = rows[most], rows[-1]
    assert others["raw"].decode() == mixed(20)[first]
    if most < 119:
        which = f"{120 - most} bad records of rows {first} to {last}, of which this is the first: "
        assert others["reason"].startswith(which + BAD[mixed(20)[first]])
    else:
        assert others["reason"].startswith(BAD[mixed(20)[first]])


def test_bad_records_are_kept_up_to_a_number_of_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bad_records, "MOST_BAD_BYTES", 1_000)
    path = tmp_path / "events.json"
    path.write_text("\n".join(["x" * 400] * 4 + ["x"]))
    read = read_events(str(path), "json", SCHEMA, "events")
    assert read.bad["offset"].to_pylist() == [0, 1, 2]
    assert (
        read.bad["reason"][2].as_py().startswith("3 bad records of rows 2 to 4, of which this is the first: ")
    )
    assert read.bad_rows == 5


def test_every_bad_record_of_a_log_is_told() -> None:
    values = pa.array([b"x"] * 3_000, pa.binary())
    sources = pa.array(["t/0"] * 3_000).dictionary_encode()
    records = pa.table({"@value": values, "@source": sources, "@offset": pa.array(range(3_000))})
    read = read_records(records, "json", SCHEMA)
    assert read.bad["offset"].to_pylist() == list(range(3_000))


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(b"x", id="no object", marks=pytest.mark.long),
        pytest.param(b"{}", id="no time"),
        pytest.param(b"{x}", id="no JSON", marks=pytest.mark.long),
        pytest.param(b'{"t":"0000-06-01"}', id="year 0"),
        pytest.param(b'{"t":"2024-01-01","n":"1"}', id="no integer", marks=pytest.mark.long),
        pytest.param(b"", id="blank"),
        pytest.param(b" \t", id="spaces", marks=pytest.mark.long),
    ],
)
def test_a_small_archive_of_millions_of_lines_needs_little_memory(tmp_path: Path, line: bytes) -> None:
    count = 100_000_000 if not line else 2_000_000
    path = tmp_path / "flood.json.gz"
    with gzip.open(path, "wb", 1) as file:
        for _ in range(20):
            file.write((line + b"\n") * (count // 20))
    run = subprocess.run(
        [sys.executable, "-c", FLOOD, str(path)], capture_output=True, text=True, check=True, timeout=60
    )
    grown_mib, events, told, records = map(int, run.stdout.split())
    assert (events, told, records) == ((0, 1001, count) if line.strip() else (0, 0, 0))
    assert grown_mib < 300


def test_blank_lines_between_records_count_in_the_numbers_of_rows(tmp_path: Path) -> None:
    path = tmp_path / "events.json"
    blank = ["", " ", "\t\r", "", ""]
    path.write_text("\n".join([*blank, GOOD, *blank, "  " + GOOD, "x", *blank, GOOD + " \r", ""]))
    read = read_events(str(path), "json", SCHEMA, "events")
    assert read.events["@offset"].to_pylist() == [5, 11, 18]
    assert read.bad["offset"].to_pylist() == [12]


def test_many_lines_of_many_attributes_are_read_in_parts(tmp_path: Path) -> None:
    schema = EventSchema((*SCHEMA.fields, *(Field(f"x{n}", "BIGINT") for n in range(997))), "t")
    path = tmp_path / "events.json"
    path.write_text("\n".join([GOOD, *["{}"] * 40_000, GOOD]))
    read = read_events(str(path), "json", schema, "events")
    assert read.events["@offset"].to_pylist() == [0, 40_001]
    assert read.bad_rows == 40_000


@pytest.mark.parametrize("ending", ["gz", "bz2", "zst", "lz4"])
@pytest.mark.parametrize("format", ["json", "csv"])
def test_an_archive_of_0_bytes_is_a_bad_record(tmp_path: Path, format: str, ending: str) -> None:
    path = tmp_path / f"events.{format}.{ending}"
    path.touch()
    read = read_events(str(path), format, SCHEMA, "e")
    assert read.bad.to_pylist() == [
        {
            "source": "e",
            "offset": 0,
            "reason": "the file — must be undamaged; got: an archive of 0 bytes",
            "raw": b"",
        }
    ]
    assert read.read_rows == 1


def test_an_archive_of_nothing_holds_nothing(tmp_path: Path) -> None:
    for ending, pack in (("gz", gzip.compress), ("bz2", bz2.compress)):
        path = tmp_path / f"events.json.{ending}"
        path.write_bytes(pack(b""))
        assert read_events(str(path), "json", SCHEMA, "e").read_rows == 0


def test_a_csv_header_that_names_an_attribute_twice_is_a_bad_file(tmp_path: Path) -> None:
    path = tmp_path / "events.csv"
    path.write_text("t,n,n,x,x\n2024-01-01,1,2,3,4\n")
    read = read_events(str(path), "csv", SCHEMA, "e")
    assert read.bad["reason"].to_pylist() == ["the file — must have one column n; got several"]
    schema = EventSchema((Field("t", "TIMESTAMP"),), "t")
    assert read_events(str(path), "csv", schema, "e").events.num_rows == 1


@pytest.mark.parametrize("format", ["json", "csv"])
def test_records_of_a_log_have_times_in_the_same_range(format: str) -> None:
    days = ["0001-01-01", "9999-12-31", "0000-12-31", None]
    times = ["0001-01-01T00:00:00.1234567Z", "9999-12-31T23:59:59.9999999", "9999-12-31T23:59:59-05:00"]
    schema = EventSchema((*(Field(name, "TIMESTAMP") for name in "tuv"), Field("d", "DATE")), "t")
    rows = [{"t": "2024-01-01", "u": time, "d": None} for time in times]
    rows += [{"t": "2024-01-01", "u": None, "d": day} for day in days]
    values = [json.dumps(row) for row in rows]
    if format == "csv":
        values = [",".join(value or "" for value in row.values()) for row in rows]
    own = pa.array([0] * 6 + [LAST_US + 1], pa.timestamp("us", "UTC"))
    sources = pa.array(["t/0"] * 7).dictionary_encode()
    of_log = {"@source": sources, "@offset": pa.array(range(7)), "v": own}
    records = pa.table({"@value": pa.array(values, pa.string()).cast(pa.binary()), **of_log})
    read = read_records(records, format, schema)
    assert read.events["@offset"].to_pylist() == [0, 1, 3, 4]
    assert [str(time) for time in read.events["u"].to_pylist()[:2]] == [
        "0001-01-01 00:00:00.123456",
        "9999-12-31 23:59:59.999999",
    ]
    year = "from 0001-01-01 to 9999-12-31"
    assert read.bad["reason"].to_pylist() == [
        f"u — must be {year}T23:59:59.999999, in UTC; got 10000-01-01 04:59:59",
        f"d — must be {year}; got 0000-12-31",
        f"v — must be {year}T23:59:59.999999, in UTC; got 10000-01-01 00:00:00",
    ]


def test_replay_tells_as_many_bad_records_as_the_job_file_says(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(
        """
events: {schema: "t TIMESTAMP, n BIGINT", event_time: t}
rules: [{name: r, pattern: {sequence: [a: n = 1]}}]
"""
    )
    (tmp_path / "job.yaml").write_text(
        """
name: test
source: {kind: files, format: json, path: in, max_bad_records_per_file: 2}
rules: [rules.yaml]
sink: {kind: delta, path: out}
checkpoint: checkpoint
"""
    )
    (tmp_path / "events.json").write_text("\n".join(["x"] * 1_000 + [GOOD]))
    wrong = "the record — must be a JSON object that begins with { and ends with } in its line"
    assert spark_pace("replay", "job.yaml", "events.json", cwd=tmp_path).stderr.splitlines() == [
        "1,001 records; matches: r 1",
        f"bad record: events.json:L1 {wrong}",
        f"bad record: events.json:L2 {wrong}",
        f"bad record: events.json:L3 998 bad records of rows 2 to 999, of which this is the first: {wrong}",
        "bad record: and 997 more",
    ]


def test_reasons_are_json_for_arrays(tmp_path: Path) -> None:
    schema = EventSchema((Field("t", "TIMESTAMP"), Field("l", "ARRAY<DATE>")), "t")
    path = tmp_path / "events.json"
    path.write_text(json.dumps({"t": "2024-01-01", "l": ["2024-01-01", "0000-01-01", None]}))
    read = read_events(str(path), "json", schema, "e")
    assert read.bad["reason"].to_pylist() == [
        'l — must be from 0001-01-01 to 9999-12-31; got ["2024-01-01", "0000-01-01", null]'
    ]
