"""Lines of text as events: by a regular expression, with times in formats of their own."""

from __future__ import annotations

import gzip
import os
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import pyarrow as pa
import pytest

from spark_pace.core.expr.time_functions import times_of
from spark_pace.core.local_run import run
from spark_pace.core.plan.plan import build_plan
from spark_pace.core.plan.rule import EventSchema, Field, RecordForm
from spark_pace.errors import ConfigError
from spark_pace.io.event_files import EventsRead, read_events
from spark_pace.io.records import Records, read_records
from spark_pace.io.replay import read_all
from spark_pace.io.text import lines
from spark_pace.rules.schema import PRESETS
from tests.spark.jobs import LINES, job, line_of, random_events

TYPES = {"t": "TIMESTAMP", "n": "BIGINT", "x": "DOUBLE", "s": "STRING", "u": "STRING"}
REGEX = r"(?P<t>\S+) (?:-|(?P<n>\S+))(?: x=(?P<x>\S*))?(?: (?P<s>.*))?"
T = "2013-01-01T00:00:00"
T_US = 1_356_998_400_000_000
SYSLOG = PRESETS["syslog"]
JSON = {"t": "TIMESTAMP", "n": "BIGINT", "s": "STRING"}


def schema_of(form: RecordForm, types: dict[str, str] = TYPES, event_time: str = "t") -> EventSchema:
    fields = tuple(Field(name, kind) for name, kind in types.items())
    return EventSchema(fields, event_time, form=form)


SCHEMA = schema_of(RecordForm(REGEX))


def read(tmp_path: Path, text: str | bytes, schema: EventSchema = SCHEMA) -> EventsRead:
    path = tmp_path / "events.log"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_events(str(path), "text", schema, "events", 100_000)


def records(values: Sequence[bytes | None], schema: EventSchema) -> EventsRead:
    sources = pa.array(["x/0"] * len(values), pa.string()).dictionary_encode()
    offsets = pa.array(range(len(values)), pa.int64())
    return read_records(Records(pa.array(values, pa.binary()), sources, offsets, {}), "text", schema)


def at(*time: int) -> int:
    return int(datetime(*time, tzinfo=timezone.utc).timestamp())  # type: ignore[arg-type,misc]


def test_groups_are_attributes_in_the_types_of_the_schema(tmp_path: Path) -> None:
    result = read(tmp_path, f"{T} 7 x=0.5 words of é\n{T} -\n")
    first, second = result.events.to_pylist()
    assert list(first.values()) == [T_US, "events", 0, datetime(2013, 1, 1), 7, 0.5, "words of é", None]
    assert list(second.values())[2:] == [1, datetime(2013, 1, 1), None, None, None, None]
    assert (result.bad.num_rows, result.read_rows) == (0, 2)


def test_an_empty_group_is_null(tmp_path: Path) -> None:
    (event,) = read(tmp_path, f"{T} 1 x= ").events.to_pylist()
    assert (event["x"], event["s"]) == (None, None)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("oops", "the record — must match the regex of the section text"),
        (f" {T} 1", "the record — must match the regex of the section text"),
        (f"{T} one", "n — must be BIGINT; got: 'one'"),
        (f"{T} 9223372036854775808", "n — must be BIGINT; got: '9223372036854775808'"),
        (f"{T} 1 x=1,5", "x — must be DOUBLE; got: '1,5'"),
        (f"{T} 1 x=1e400", "x — must be DOUBLE; got: 1e400, which is too large"),
        ("yesterday 1", "t — must be TIMESTAMP; got: 'yesterday'"),
        ("1850-01-01 1", "t — must be an event time from 1900 to 2199; got 1850-01-01 00:00:00"),
        (b"%s \xff" % T.encode(), "n — must be BIGINT; got: '\ufffd'"),
    ],
)
def test_a_bad_line_keeps_its_neighbours(tmp_path: Path, line: str | bytes, reason: str) -> None:
    line = line if isinstance(line, bytes) else line.encode()
    good = f"{T} 7".encode()
    result = read(tmp_path, b"%s\n%s\n\n%s\r\n" % (good, line, good))
    assert result.events["@offset"].to_pylist() == [0, 3]
    assert result.events["n"].to_pylist() == [7, 7]
    (bad,) = result.bad.to_pylist()
    assert (bad["source"], bad["offset"], bad["raw"], bad["reason"]) == ("events", 1, line, reason)


def test_the_first_of_several_expressions_that_matches_a_line_counts(tmp_path: Path) -> None:
    further = (r"(?P<s>\S+) at (?P<t>\S+)", r"(?P<t>\S+) is (?P<u>.*)", r"(?P<t>\S+) .*(?P<u>s.*)")
    text = f"{T} 7 and so on\nann at {T}\nnothing\n{T} is that so\n{T} 8 is so\n"
    for ignores in (False, True):
        form = RecordForm(r"(?P<t>\S+) (?P<n>\d+)(?: (?P<s>.*))?", ignores_unmatched=ignores, further=further)
        result = read(tmp_path, text, schema_of(form))
        assert [[event[name] for name in "nsu"] for event in result.events.to_pylist()] == [
            [7, "and so on", None],
            [None, "ann", None],
            [None, None, "that so"],
            [8, "is so", None],
        ]
        reasons = [] if ignores else ["the record — must match one regex of the section text"]
        assert result.bad["reason"].to_pylist() == reasons
        assert (result.ignored_rows, result.events["@offset"].to_pylist()) == (int(ignores), [0, 1, 3, 4])


def test_lines_that_do_not_match_are_no_records_where_they_are_ignored(tmp_path: Path) -> None:
    schema = schema_of(RecordForm(REGEX, ignores_unmatched=True))
    result = read(tmp_path, f"oops\n{T} 1\noops\n{T} one\n{T} 2\n", schema)
    assert result.events["@offset"].to_pylist() == [1, 4]
    assert result.bad["offset"].to_pylist() == [3]
    assert (result.read_rows, result.ignored_rows) == (3, 2)
    alone = read(tmp_path, "oops\n", schema)
    assert (alone.read_rows, alone.ignored_rows) == (0, 1)


NOT_UTF8 = [b"r\xf6\xf6t", b"\xc3", b"a\xed\xa0\x80", b"\xf0\x9f\x98 b", b"\xc0\x80", b"\xff\xfe\xc3\xa9"]


@pytest.mark.parametrize("ignores", [False, True])
@pytest.mark.parametrize("repeats", [1, 2000])
@pytest.mark.parametrize("packed", [False, True])
def test_bytes_that_are_not_utf8_hide_no_line(
    tmp_path: Path, ignores: bool, repeats: int, packed: bool
) -> None:
    schema = schema_of(RecordForm(REGEX, ignores_unmatched=ignores))
    texts = [*NOT_UTF8, "é".encode(), b""] * repeats
    several = [b"%s 1 %s" % (T.encode(), text) for text in texts]
    path = tmp_path / ("events.log.gz" if packed else "events.log")
    path.write_bytes(gzip.compress(b"\r\n".join(several)) if packed else b"\r\n".join(several))
    result = read_events(str(path), "text", schema, "events")
    expected = [text.decode("utf-8", "replace") or None for text in texts]
    assert result.events["s"].to_pylist() == expected
    assert result.events["@offset"].to_pylist() == list(range(len(texts)))
    assert (result.read_rows, result.bad_rows) == (len(texts), 0)
    values = records([*several, None], schema)
    assert values.events["s"].to_pylist() == expected
    assert values.events["@offset"].to_pylist() == list(range(len(texts)))


@pytest.mark.parametrize("repeats", [1, 2000])  # compiled code reads long texts only
def test_bytes_that_are_not_utf8_hide_no_json_behind_text(tmp_path: Path, repeats: int) -> None:
    schema = schema_of(replace(PRESETS["json_in_text"], ignores_unmatched=True), JSON)
    texts = [*NOT_UTF8, "é".encode()] * repeats
    several = [b'\xf6: {"t": "%s", "s": "%s"}' % (T.encode(), text) for text in texts]
    expected = [text.decode("utf-8", "replace") for text in texts]
    assert read(tmp_path, b"\n".join(several), schema).events["s"].to_pylist() == expected
    assert records(several, schema).events["s"].to_pylist() == expected


def test_a_bad_line_keeps_bytes_that_are_not_utf8_as_they_came(tmp_path: Path) -> None:
    lines = [b"oops \xf6", b"%s one \xf6" % T.encode(), b"oops \xfe"]
    assert read(tmp_path, b"\n".join(lines)).bad["raw"].to_pylist() == lines
    assert records(lines, SCHEMA).bad["raw"].to_pylist() == lines


@pytest.mark.parametrize("ignores", [False, True])
@pytest.mark.parametrize("chunk_bytes", [1, 50, 4096])
def test_the_size_of_a_chunk_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk_bytes: int, ignores: bool
) -> None:
    several = [f"{T} 1 x=2 {{a", "oops", "", f"{T} one", f"{T} - x=3"]
    text = "\n".join(several[i % 7 % 5] for i in range(300))
    schema = schema_of(RecordForm(REGEX, ignores_unmatched=ignores))
    whole = read(tmp_path, text, schema)
    monkeypatch.setattr(lines, "CHUNK_BYTES", chunk_bytes)
    parts = read(tmp_path, text, schema)
    assert parts.events.equals(whole.events)
    assert parts.bad.equals(whole.bad)
    assert (parts.read_rows, parts.ignored_rows) == (whole.read_rows, whole.ignored_rows)


@pytest.mark.parametrize("cuts", [[], [1], [100], range(0, 200, 7), range(200)])
def test_the_cuts_of_a_text_into_batches_change_no_row(tmp_path: Path, cuts: Sequence[int]) -> None:
    spec = job(tmp_path, rules=LINES, slots=1)
    path = tmp_path / "events.log"
    path.write_text("\n".join(map(line_of, random_events(5))))
    events = read_events(str(path), "text", spec.events.schema, "events.log").events
    ends = [*cuts, events.num_rows]
    parts = [events.slice(start, end - start) for start, end in zip([0, *cuts], ends, strict=True)]
    alone = []
    for part in parts:  # each batch has read its own lines
        lines = [line_of(event) for event in random_events(5)]
        texts = ["" for _ in lines]
        for row in part["@offset"].to_pylist():
            texts[row] = lines[row]
        path.write_text("\n".join(texts))
        alone.append(read_events(str(path), "text", spec.events.schema, "events.log").events)
    plan = build_plan(spec.rules, order=spec.events.order)
    whole = run(plan, [events]).matches
    assert run(plan, alone).matches.equals(whole)
    assert whole.num_rows > 50


def test_alternatives_of_a_regex_match_the_whole_line(tmp_path: Path) -> None:
    schema = schema_of(RecordForm(rf"(?P<t>{T})|never", ignores_unmatched=True))
    assert read(tmp_path, f"{T}\n{T} and more\n", schema).events["@offset"].to_pylist() == [0]


@pytest.mark.parametrize("ignores", [False, True])
def test_values_of_a_log_are_lines(ignores: bool) -> None:
    schema = schema_of(RecordForm(REGEX, ignores_unmatched=ignores))
    result = records([f"{T} 1".encode(), b"oops", f"{T} 2\n".encode(), None, f"{T} 3\nx".encode()], schema)
    assert result.events["@offset"].to_pylist() == [0, 2]
    assert result.events["n"].to_pylist() == [1, 2]
    bad = dict(zip(result.bad["offset"].to_pylist(), result.bad["reason"].to_pylist(), strict=True))
    unmatched = {} if ignores else {1: "the record — must match the regex of the section text"}
    nothing = {3: "the value — must be one event; got nothing"}
    several = {} if ignores else {4: "the value — must be one event; got several lines"}
    assert bad == unmatched | nothing | several
    assert (result.read_rows, result.ignored_rows) == ((3, 2) if ignores else (5, 0))


@pytest.mark.parametrize(
    ("time", "changed", "expected"),
    [
        ("May  1 03:04:05", at(2024, 5, 2), at(2024, 5, 1, 3, 4, 5)),
        ("Dec 31 23:59:59", at(2025, 1, 2), at(2024, 12, 31, 23, 59, 59)),
        ("Jan  2 12:00:00", at(2025, 1, 2), at(2025, 1, 2, 12)),  # a clock may be ahead by a day
        ("Feb 29 00:00:00", at(2025, 1, 2), at(2024, 2, 29)),
        ("Feb 29 00:00:00", at(2023, 1, 2), at(2020, 2, 29)),
    ],
)
def test_a_time_without_a_year_is_in_the_last_year_in_which_the_file_had_it(
    tmp_path: Path, time: str, changed: int, expected: int
) -> None:
    schema = schema_of(SYSLOG, {"time": "TIMESTAMP", "message": "STRING"}, "time")
    path = tmp_path / "auth.log"
    path.write_text(f"{time} web1 sshd[12]: hello\n")
    os.utime(path, (changed, changed))
    events = read_events(str(path), "text", schema, "auth.log").events
    assert events["@time"].to_pylist() == [expected * 1_000_000]
    fixed = replace(schema, form=replace(SYSLOG, year=2016))
    (year,) = read_events(str(path), "text", fixed, "auth.log").events["time"].to_pylist()
    assert year.year == 2016


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("01.05.2024 10:00:00,123456789", "2024-05-01 08:00:00.123456"),
        ("1.5.2024 10:00:00,5", "2024-05-01 08:00:00.500000"),
        ("01/May/2024:10:00:00 +0530", "2024-05-01 04:30:00"),
        ("31/Dec/2024:23:00:00 -0200", "2025-01-01 01:00:00"),
        ("2024-05-01 02:00 PM", "2024-05-01 12:00:00"),
        ("2024-10-27 02:30 AM", "2024-10-27 00:30:00"),  # the first of two
        ("2024-03-31 02:30 AM", "2024-03-31 01:00:00"),  # left out by the clock
    ],
)
def test_the_first_format_that_fits_is_taken_and_times_without_a_zone_are_of_the_given_one(
    text: str, expected: str
) -> None:
    formats = ("%d.%m.%Y %H:%M:%S,%f", "%d/%b/%Y:%H:%M:%S %z", "%Y-%m-%d %I:%M %p")
    (time,) = times_of(pa.chunked_array([[text]]), formats, None, None, "Europe/Berlin").to_pylist()
    assert str(time) == expected


@pytest.mark.parametrize("text", ["30.02.2024", "31.04.2024", "01.13.2024", "1.1.24", "01.01.2024 ", ""])
def test_a_day_that_does_not_exist_is_no_time(text: str) -> None:
    with pytest.raises(pa.ArrowInvalid, match=f"'{text}', which has not the form %d.%m.%Y"):
        times_of(pa.chunked_array([[text]]), ("%d.%m.%Y",), None, None, None)


def test_a_time_in_no_format_is_told_with_all_of_them(tmp_path: Path) -> None:
    form = RecordForm(r"(?P<t>.*)", time_formats=("%d.%m.%Y", "%d.%m.%Y %H:%M"))
    result = read(tmp_path, "01.05.2024\n2024-05-01\n01.05.2024 10:00\n", schema_of(form))
    told = "t — must be TIMESTAMP; got: '2024-05-01', which has not the form %d.%m.%Y nor %d.%m.%Y %H:%M"
    assert result.bad["reason"].to_pylist() == [told]
    assert result.events["@offset"].to_pylist() == [0, 2]


def test_lines_of_syslog(tmp_path: Path) -> None:
    types = dict.fromkeys(("host", "program", "message"), "STRING") | {"pid": "BIGINT"}
    schema = schema_of(replace(SYSLOG, year=2024), {"time": "TIMESTAMP", **types}, "time")
    texts = [
        "May  1 10:00:00 web1 sshd[812]: Failed password for root from 10.0.0.7 port 22 ssh2",
        "<34>May 11 10:00:00 web-2 kernel: [ 12.5] usb: new device",
        "May  1 10:00:00 web1 CRON[1]:",
        "2024-05-01T12:00:00.123456+02:00 web1 CRON[1]: a",
        "2024-05-01T10:00:00Z web1 CRON[1]: b",
    ]
    rows = read(tmp_path, "\n".join(texts), schema).events.to_pylist()
    assert [list(row.values())[4:] for row in rows] == [
        ["web1", "sshd", "Failed password for root from 10.0.0.7 port 22 ssh2", 812],
        ["web-2", "kernel", "[ 12.5] usb: new device", None],
        ["web1", "CRON", None, 1],
        ["web1", "CRON", "a", 1],
        ["web1", "CRON", "b", 1],
    ]
    assert {str(row["time"])[:19] for row in rows} == {"2024-05-01 10:00:00", "2024-05-11 10:00:00"}


@pytest.mark.parametrize("preset", ["syslog", "combined"])
def test_a_line_that_has_not_the_form_of_a_preset_is_told_with_its_name(tmp_path: Path, preset: str) -> None:
    schema = schema_of(PRESETS[preset], {"time": "TIMESTAMP"}, "time")
    told = [f"the record — must have the form of the preset {preset}"]
    assert read(tmp_path, "oops", schema).bad["reason"].to_pylist() == told


def test_lines_of_a_web_server(tmp_path: Path) -> None:
    names = ("address", "user", "method", "path", "protocol", "request", "referer", "agent")
    types = dict.fromkeys(names, "STRING") | {"status": "BIGINT", "bytes": "BIGINT"}
    schema = schema_of(PRESETS["combined"], {"time": "TIMESTAMP", **types}, "time")
    texts = [
        r'10.0.0.7 - frank [10/Oct/2000:13:55:36 -0700] "GET /a?b=\"c\" HTTP/1.0" 200 23 "-" "A (B)"',
        '10.0.0.7 - frank [10/Oct/2000:13:55:36 -0700] "GET /a HTTP/1.0" 200 2326 "http://x/" "A \\" (B; C)"',
        r'::1 - - [10/Oct/2000:13:55:36 +0000] "\x16\x03" 400 - "-" "-"',
        '::1 - - [10/Oct/2000:13:55:36 +0000] "GET / HTTP/2.0" 304 0',  # the common format
    ]
    rows = read(tmp_path, "\n".join(texts), schema).events.to_pylist()
    assert [list(row.values())[4:] for row in rows] == [
        ["10.0.0.7", "frank", "GET", r"/a?b=\"c\"", "HTTP/1.0", None, None, "A (B)", 200, 23],
        ["10.0.0.7", "frank", "GET", "/a", "HTTP/1.0", None, "http://x/", 'A \\" (B; C)', 200, 2326],
        ["::1", None, None, None, None, r"\x16\x03", None, None, 400, None],
        ["::1", None, "GET", "/", "HTTP/2.0", None, None, None, 304, 0],
    ]
    assert rows[0]["time"] == datetime(2000, 10, 10, 20, 55, 36)


@pytest.mark.parametrize("ignores", [False, True])
@pytest.mark.parametrize("repeats", [1, 5000])  # compiled code reads long texts only
def test_json_behind_text(tmp_path: Path, ignores: bool, repeats: int) -> None:
    texts = [f'x: {{"t": "{T}", "n": 1}}', "oops", "", f'{{"t": "{T}", "s": "a {{"}}', 'y {"n": 2}', "z {1"]
    schema = schema_of(replace(PRESETS["json_in_text"], ignores_unmatched=ignores), JSON)
    result = read(tmp_path, "\n".join(texts * repeats), schema)
    assert result.events["n"].to_pylist() == [1, None] * repeats
    assert result.events["s"].to_pylist() == [None, "a {"] * repeats
    bad = set(zip(result.bad["raw"].to_pylist(), result.bad["reason"].to_pylist(), strict=True))
    no_object = "the record — must be a JSON object that begins with { and ends with } in its line"
    no_time = "t — must be an event time from 1900 to 2199; got nothing"
    unmatched = set() if ignores else {(b"oops", no_object)}
    assert bad == unmatched | {(b'y {"n": 2}', no_time), (b"z {1", no_object)}
    assert result.read_rows == (4 if ignores else 5) * repeats
    assert result.ignored_rows == (1 if ignores else 0) * repeats
    values = records([text.encode() for text in texts[:2] + texts[3:]], schema)
    assert values.events["@offset"].to_pylist() == [0, 2]
    assert values.bad["offset"].to_pylist() == ([3, 4] if ignores else [1, 3, 4])


def test_without_the_key_text_a_file_of_another_name_is_refused(tmp_path: Path) -> None:
    (tmp_path / "events.log").write_text("a line")
    with pytest.raises(ConfigError, match=r"; for lines of text, events needs the key text\.$"):
        read_all(tmp_path / "events.log", schema_of(RecordForm()))
