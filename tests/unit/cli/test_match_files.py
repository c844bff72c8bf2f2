"""The files that `spark-pace replay -o` makes of columns: byte by byte as Python's json and csv write."""

import csv
import io
import json
import math
import random
import sys
from collections.abc import Sequence
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from spark_pace import load_rules
from spark_pace.cli.show import IDENTITY, WRITERS
from spark_pace.core.operate.match_table import EVENTS_TYPE, FIXED_COLUMNS
from spark_pace.core.plan.rule import Rule

RULES = """
events: {schema: "t TIMESTAMP, k STRING, b BOOLEAN, i BIGINT, x DOUBLE, d DATE", event_time: t}
rules:
  - name: all_types
    pattern: {sequence: [{a: "true"}]}
    within: 10 s
    emit: {k: a.k, b: a.b, i: a.i, x: a.x, d: a.d, began: a.t}
  - name: keyed
    partition_by: [k]
    pattern: {sequence: [{a: "true"}]}
    within: 10 s
    emit: {x: a.x}
  - name: bare
    pattern: {sequence: [{a: "true"}]}
    within: 10 s
"""
UTC = timezone.utc
TEXTS = [
    "",
    "plain",
    'a "quote", a comma',
    "é\u2028\u202e 日本 😀",
    "line\r\nbreak\ttab",
    "\x00\x1b[2J\x7f\x9b",
    "back\\slash",
    "=1+1",
    " blank ",
    "null",
]
NUMBERS = [
    0.0,
    -0.0,
    1.0,
    0.1,
    1e16,
    1e15,
    1e-5,
    0.0001,
    1e22,
    123456789.125,
    5e-324,
    1.7976931348623157e308,
    math.nan,
    math.inf,
    -math.inf,
]
TIMES = [
    datetime(1900, 1, 1, tzinfo=UTC),
    datetime(2024, 2, 29, 23, 59, 59, 1, UTC),
    datetime(2199, 12, 31, 1, 2, 3, 120_000, UTC),
]
SCHEMA = pa.schema(
    [
        *((name, kind) for name, kind in FIXED_COLUMNS.items() if name != "events"),
        *(("k", pa.string()), ("i", pa.int64()), ("began", pa.timestamp("us", "UTC"))),
        *(("b", pa.bool_()), ("x", pa.float64()), ("d", pa.date32()), ("events", EVENTS_TYPE)),
    ]
)


@pytest.fixture(scope="module")
def rules(tmp_path_factory: pytest.TempPathFactory) -> tuple[Rule, ...]:
    return load_rules(RULES)


def some_matches(count: int, most_events: int = 4) -> pa.Table:
    chance = random.Random(count)

    def maybe(values: Sequence[Any]) -> Any:
        return chance.choice([*values, None])

    rows = []
    for number in range(count):
        rule = chance.choice(["all_types", "keyed", "bare"])
        events = [
            {
                "component": maybe(TEXTS),
                "seq": chance.randrange(99),
                "event_time": maybe(TIMES),
                "source": maybe(TEXTS),
                "offset": maybe([-1, 2**63 - 1]),
            }
            for _ in range(chance.randrange(most_events))
        ]
        row = {
            "rule": rule,
            "key": maybe(TEXTS),
            "out_seq": number,
            "opened_at": maybe(TIMES),
            "matched_at": chance.choice(TIMES),
            "events": events,
        }
        row |= {"k": maybe(TEXTS), "x": maybe(NUMBERS)} if rule != "bare" else {}
        row |= (
            {
                "b": maybe([True, False]),
                "i": maybe([-5, 2**63 - 1]),
                "d": maybe([date(1, 1, 1), date(2024, 2, 29)]),
            }
            if rule == "all_types"
            else {}
        )
        rows.append(row | {"began": maybe(TIMES) if rule == "all_types" else None})
    return pa.Table.from_pylist(rows, SCHEMA)


def plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.replace(tzinfo=None).isoformat() + "Z"
    if isinstance(value, date):
        return value.isoformat()
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def row_by_row(matches: pa.Table, rules: Sequence[Rule]) -> list[dict[str, Any]]:
    emitted = {rule.name: [field.name for field in rule.emit] for rule in rules}
    return [
        {
            **{name: plain(row[name]) for name in IDENTITY},
            "fields": {name: plain(row[name]) for name in emitted[row["rule"]]},
            "events": [{name: plain(value) for name, value in event.items()} for event in row["events"]],
        }
        for row in matches.to_pylist()
    ]


@pytest.mark.parametrize("count", [0, 1, 2_500])
def test_json_lines_are_those_of_json_dumps(rules: tuple[Rule, ...], tmp_path: Path, count: int) -> None:
    matches = some_matches(count)
    WRITERS[".json"](matches, rules, tmp_path / "out.json")
    expected = "".join(json.dumps(match, ensure_ascii=False) + "\n" for match in row_by_row(matches, rules))
    assert (tmp_path / "out.json").read_bytes() == expected.encode()


@pytest.mark.parametrize("count", [0, 1, 2_500])
def test_csv_is_that_of_a_csv_writer(rules: tuple[Rule, ...], tmp_path: Path, count: int) -> None:
    matches = some_matches(count)
    WRITERS[".csv"](matches, rules, tmp_path / "out.csv")
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    names = ["k", "b", "i", "x", "d", "began"]
    writer.writerow([*IDENTITY, *names, "events"])
    for match in row_by_row(matches, rules):
        writer.writerow(
            [
                *(match[name] for name in IDENTITY),
                *(match["fields"].get(name) for name in names),
                json.dumps(match["events"]),
            ]
        )
    assert (tmp_path / "out.csv").read_bytes() == text.getvalue().encode()


@pytest.mark.parametrize("ending", [".json", ".csv"])
def test_no_python_is_called_for_an_event(rules: tuple[Rule, ...], tmp_path: Path, ending: str) -> None:
    at = datetime(2024, 1, 1, tzinfo=UTC)
    events = [
        {"component": "a", "seq": n, "event_time": at + timedelta(seconds=n), "source": "s", "offset": n}
        for n in range(100)
    ]
    rows = [
        {"rule": "bare", "out_seq": n, "opened_at": at, "matched_at": at, "events": events}
        for n in range(200)
    ]
    matches = pa.Table.from_pylist(rows, SCHEMA)
    calls = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        WRITERS[ending](matches, rules, tmp_path / f"out{ending}")
    finally:
        sys.setprofile(None)
    assert calls < 10 * len(rows)
