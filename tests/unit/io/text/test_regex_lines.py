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

from spark_pace.core.local_run import run
from spark_pace.core.plan.plan import build_plan
from spark_pace.core.plan.rule import EventSchema, Field, RecordForm
from spark_pace.errors import ConfigError
from spark_pace.io.event_files import EventsRead, read_events
from spark_pace.io.records import read_records
from spark_pace.io.replay import read_each
from spark_pace.io.text import lines
from spark_pace.rules.schema import PRESETS
from tests.spark.jobs import LINES, job, line_of, random_events

TYPES = {"t": "TIMESTAMP", "n": "BIGINT", "x": "DOUBLE", "s": "STRING", "u": "STRING"}
REGEX = r"(?P<t>\S+) (?:-|(?P<n>\S+))(?: x=(?P<x>\S*))?(?: (?P<s>.*))?"
T = "2013-01-01T00:00:00"
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
    table = pa.table({"@value": pa.array(values, pa.binary()), "@source": sources, "@offset": offsets})
    return read_records(table, "text", schema)


def at(*time: int) -> int:
    return int(datetime(*time, tzinfo=timezone.utc).timestamp())  # type: ignore[arg-type,misc]


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
        read_each(tmp_path / "events.log", schema_of(RecordForm()))
