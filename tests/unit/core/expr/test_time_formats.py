"""Times in formats of their own and empty texts, in JSON and CSV."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from spark_pace.core.plan.rule import RecordForm
from spark_pace.rules import explain, load_rules
from tests.unit.io.test_event_files import SCHEMA, T, read
from tests.unit.rules.test_execution import RULES

FORMATS = RecordForm(time_formats=("%d.%m.%Y %H:%M", "%d.%m.%Y"), zone="Europe/Berlin")


@pytest.mark.parametrize("format", ["json", "csv"])
def test_times_are_read_in_formats_of_their_own(tmp_path: Path, format: str) -> None:
    schema = replace(SCHEMA, form=FORMATS)
    texts = ["01.05.2024 12:00", "1.5.2024", T, "30.02.2024"]
    rows = [f'{{"t":"{text}","n":{number}}}' for number, text in enumerate(texts)]
    if format == "csv":
        rows = ["t,n", *(f"{text},{number}" for number, text in enumerate(texts))]
    result = read(tmp_path, "\n".join(rows), format, schema)
    times = [datetime(2024, 5, 1, 10), datetime(2024, 4, 30, 22)]
    assert result.events["t"].to_pylist() == times
    reason = "t — must be TIMESTAMP; got: '{}', which has not the form %d.%m.%Y %H:%M nor %d.%m.%Y".format
    assert result.bad["reason"].to_pylist() == [reason(T), reason("30.02.2024")]


def test_empty_texts_are_null_where_a_user_says_so(tmp_path: Path) -> None:
    schema = replace(SCHEMA, form=RecordForm(empty_is_null=True))
    empty = f'{{"t":"{T}","n":"","x": "","s":"","b" :"","d":"", "o:": ":\\"\\""}}'
    wrong = ['{"t":"","n":1}', f'{{"t":"{T}","s":"x:"",  "}}', f'{{"t":"{T}","n":" "}}']
    result = read(tmp_path, "\n".join([empty, *wrong, f'{{"t":"{T}","s":":"}}']), "json", schema)
    assert [list(row.values())[4:] for row in result.events.to_pylist()] == [
        [None] * 5,
        [None, None, ":", None, None],
    ]
    assert result.bad["offset"].to_pylist() == [1, 2, 3]
    assert result.bad["reason"].to_pylist()[1].startswith("the record — must be JSON")
    (row,) = read(tmp_path, f't,n,s,x\n{T},"","",\n', "csv", schema).events.to_pylist()
    assert (row["n"], row["s"], row["x"]) == (None, None, None)
    (row,) = read(tmp_path, f't,s\n{T},""\n', "csv").events.to_pylist()
    assert row["s"] == ""


def test_a_decimal_comma_is_no_number(tmp_path: Path) -> None:
    schema = replace(SCHEMA, form=RecordForm(empty_is_null=True))
    assert read(tmp_path, f't,x\n{T},"1,5"\n', "csv", schema).bad["reason"].to_pylist() == [
        "x — must be DOUBLE; got: '1,5'"
    ]


@pytest.mark.parametrize(
    ("keys", "why"),
    [("timestamp_format: '%d.%m.%Y'", "timestamp_format"), ("empty: null", "empty: null")],
)
def test_it_says_why_compiled_code_does_not_read_json(keys: str, why: str) -> None:
    (rule,) = load_rules(RULES.replace("event_time: time", f"event_time: time, {keys}"))
    assert f"  json         pyarrow: compiled code does not know {why}" in explain(rule)


@pytest.mark.parametrize(
    ("text", "is_told"),
    [("preset: combined", False), ("regex: '(?P<time>.*)'", False), ("preset: json_in_text", True)],
)
def test_it_says_nothing_of_json_for_lines_of_text_without_any(text: str, is_told: bool) -> None:
    form = f"event_time: time, text: {{{text}}}, timestamp_format: '%d.%m.%Y'"
    (rule,) = load_rules(RULES.replace("event_time: time", form))
    assert any(line.startswith("  json  ") for line in explain(rule)) == is_told
