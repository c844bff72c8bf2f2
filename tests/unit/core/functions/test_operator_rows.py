"""What an operator returns for each declared type: taken as Python means it, or refused. Nothing is lost."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from spark_pace.core.local_run import LocalResult, run
from spark_pace.core.operate.python_operator import Span
from spark_pace.core.order import OrderSpec
from spark_pace.core.plan.plan import build_plan
from spark_pace.core.python_functions import MOST_TEXT_BYTES, Rows
from spark_pace.rules import load_rules

RULES = """
events: {schema: "time TIMESTAMP, x BIGINT", event_time: time}
rules:
  - {name: r, span: {every: 1 events, size: 1 events},
     operator: "tests.unit.core.functions.test_operator_rows:given", emit: {v: TYPE}}
"""
BERLIN = ZoneInfo("Europe/Berlin")
NOON = dt.datetime(2024, 7, 1, 12)
NOON_UTC = NOON.replace(tzinfo=dt.timezone.utc)
DAY = dt.date(2024, 7, 1)
returned: list[Rows] = []


class Level(enum.IntEnum):
    HIGH = 3


def given(span: Span) -> Rows:
    return returned[-1]


def found(rules: str, rows: Rows) -> LocalResult:
    """What comes of one event on which the operator returns the rows."""
    times = pa.array([1_000_000], pa.int64())
    events = pa.table({
        "@time": times, "@source": pa.array(["s"]).dictionary_encode(), "@offset": pa.array([0], pa.int64()),
        "time": times.view(pa.timestamp("us")), "x": pa.array([1], pa.int64()),
    })  # fmt: skip
    returned.append(rows)
    return run(build_plan(load_rules(rules), order=OrderSpec()), [events])


def outcome(declared: str, rows: Rows) -> Any:
    """The values of `v` in the matches, or the last line of the reason for having none."""
    result = found(RULES.replace("TYPE", declared), rows)
    if result.failed.num_rows:
        assert result.matches.num_rows == 0
        return result.failed["reason"][0].as_py().strip().splitlines()[-1]
    return result.matches["v"].to_pylist()


@pytest.mark.parametrize(
    ("declared", "value", "kept"),
    [
        ("BOOLEAN", True, True),
        ("BOOLEAN", np.bool_(False), False),
        ("BIGINT", 1, 1),
        ("BIGINT", 2**63 - 1, 2**63 - 1),
        ("BIGINT", -(2**63), -(2**63)),
        ("BIGINT", np.int64(2**53 + 1), 2**53 + 1),
        ("BIGINT", np.uint8(7), 7),
        ("BIGINT", Level.HIGH, 3),
        ("DOUBLE", 1.5, 1.5),
        ("DOUBLE", 1, 1.0),
        ("DOUBLE", 2**53, 2.0**53),
        ("DOUBLE", float("inf"), float("inf")),
        ("DOUBLE", np.float64(0.1), 0.1),
        ("DOUBLE", np.float32(0.5), 0.5),
        ("STRING", "é日", "é日"),
        ("STRING", np.str_("a"), "a"),
        ("TIMESTAMP", NOON, NOON_UTC),
        ("TIMESTAMP", NOON.replace(tzinfo=BERLIN), NOON_UTC - dt.timedelta(hours=2)),
        ("TIMESTAMP", pd.Timestamp(NOON), NOON_UTC),
        ("TIMESTAMP", np.datetime64("2024-07-01T12:00:00.000000000"), NOON_UTC),
        ("TIMESTAMP", DAY, NOON_UTC - dt.timedelta(hours=12)),
        ("TIMESTAMP", np.datetime64("2024-07-01"), NOON_UTC - dt.timedelta(hours=12)),
        ("DATE", DAY, DAY),
        ("DATE", np.datetime64("2024-07-01"), DAY),
        *(
            (declared, None, None)
            for declared in ("BOOLEAN", "BIGINT", "DOUBLE", "STRING", "TIMESTAMP", "DATE")
        ),
    ],
)
def test_a_value_of_the_declared_type_is_kept(declared: str, value: Any, kept: Any) -> None:
    assert outcome(declared, [{"v": value}, {}]) == [kept, None]


@pytest.mark.parametrize(
    ("declared", "value", "reason"),
    [
        ("BOOLEAN", 1, "TypeError: emit v — must be BOOLEAN; got int64"),
        ("BOOLEAN", "true", "TypeError: emit v — must be BOOLEAN; got string"),
        ("BIGINT", 1.5, "TypeError: emit v — must be BIGINT; got double"),
        ("BIGINT", 1.0, "TypeError: emit v — must be BIGINT; got double"),
        ("BIGINT", float("nan"), "TypeError: emit v — must be BIGINT; got double"),
        ("BIGINT", np.float64(2), "TypeError: emit v — must be BIGINT; got double"),
        ("BIGINT", True, "TypeError: emit v — must be BIGINT; got bool"),
        ("BIGINT", "1", "TypeError: emit v — must be BIGINT; got string"),
        ("BIGINT", decimal.Decimal(1), "TypeError: emit v — must be BIGINT; got decimal128(1, 0)"),
        ("BIGINT", 2**63, "TypeError: emit v — must be within 64 bits; got a greater integer"),
        (
            "BIGINT",
            np.uint64(2**63),
            "TypeError: emit v — must be BIGINT; "
            "got what Arrow refuses: Integer value 9223372036854775808 not in range",
        ),
        ("BIGINT", NOON, "TypeError: emit v — must be BIGINT; got timestamp[us]"),
        (
            "DOUBLE",
            2**53 + 1,
            "TypeError: emit v — must be DOUBLE; "
            "got what Arrow refuses: Integer value 9007199254740993 not in range",
        ),
        ("DOUBLE", True, "TypeError: emit v — must be DOUBLE; got bool"),
        ("DOUBLE", "1.5", "TypeError: emit v — must be DOUBLE; got string"),
        ("DOUBLE", decimal.Decimal("1.5"), "TypeError: emit v — must be DOUBLE; got decimal128(2, 1)"),
        ("STRING", b"x", "TypeError: emit v — must be STRING; got binary"),
        ("STRING", 1, "TypeError: emit v — must be STRING; got int64"),
        ("STRING", ["x"], "TypeError: emit v — must be STRING; got list<item: string>"),
        (
            "STRING",
            "no \udcff",
            "TypeError: emit v — must be STRING; got what Arrow refuses: 'utf-8' codec can't encode",
        ),
        (
            "STRING",
            "x" * (MOST_TEXT_BYTES + 1),
            "ValueError: emit v — must be texts of at most 16 MiB; got one of 16,777,217 bytes",
        ),
        ("TIMESTAMP", 1, "TypeError: emit v — must be TIMESTAMP; got int64"),
        ("TIMESTAMP", "2024-07-01", "TypeError: emit v — must be TIMESTAMP; got string"),
        (
            "TIMESTAMP",
            np.datetime64("2024-07-01T12:00:00.000000001"),
            "TypeError: emit v — must be TIMESTAMP; "
            "got what Arrow refuses: Casting from timestamp[ns] to timestamp[us] would lose data",
        ),
        (
            "TIMESTAMP",
            pd.Timestamp("2024-07-01T12:00:00.000000001"),
            "TypeError: emit v — must be whole microseconds; got nanoseconds",
        ),
        (
            "TIMESTAMP",
            np.datetime64("20240-07-01T12:00:00", "s"),
            "ValueError: emit v — must be between the years 1 and 9999; got another year",
        ),
        ("DATE", NOON, "TypeError: emit v — must be DATE; got timestamp[us]"),
        (
            "DATE",
            np.datetime64("20240-07-01"),
            "ValueError: emit v — must be between the years 1 and 9999; got another year",
        ),
        (
            "TIMESTAMP",
            np.datetime64("2024-07-01T12", "h"),
            "TypeError: emit v — must be TIMESTAMP; got what Arrow refuses: Unsupported datetime64 time unit",
        ),
        ("TIMESTAMP", np.datetime64("NaT", "us"), "TypeError: emit v — must be a value or None; got NaT"),
        ("TIMESTAMP", pd.NaT, "TypeError: emit v — must be a value or None; got NaT"),
        ("BIGINT", pd.NA, "TypeError: emit v — must be a value or None; got <NA>"),
        (
            "DATE",
            object(),
            "TypeError: emit v — must be DATE; got what Arrow refuses: Could not convert <object object",
        ),
    ],
)
def test_any_other_value_is_the_operators_failure(declared: str, value: Any, reason: str) -> None:
    assert outcome(declared, [{"v": value}]).startswith(reason)


@pytest.mark.parametrize(
    ("declared", "values", "reason"),
    [
        ("BIGINT", [1, 1.5], "TypeError: emit v — must be BIGINT; got double"),
        (
            "BIGINT",
            [1, True],
            "TypeError: emit v — must be BIGINT; got what Arrow refuses: Expected integer, got bool",
        ),
        ("BIGINT", [5, np.True_], "TypeError: emit v — must be BIGINT; got truth values among others"),
        ("DOUBLE", [2.5, True], "TypeError: emit v — must be DOUBLE; got truth values among others"),
        (
            "DOUBLE",
            [0.5, 2**53 + 1],
            "TypeError: emit v — must be DOUBLE; "
            "got what Arrow refuses: Integer value 9007199254740993 is outside",
        ),
        (
            "STRING",
            ["x", float("nan")],
            "TypeError: emit v — must be STRING; "
            "got what Arrow refuses: Expected bytes, got a 'float' object",
        ),
        ("DATE", [DAY, NOON], "TypeError: emit v — must be dates or times; got both"),
    ],
)
def test_one_value_of_another_type_among_many_is_found(declared: str, values: list[Any], reason: str) -> None:
    assert outcome(declared, [{"v": value} for value in values]).startswith(reason)


def test_dates_stand_among_times() -> None:
    midnight = NOON_UTC - dt.timedelta(hours=12)
    assert outcome("TIMESTAMP", [{"v": DAY}, {"v": NOON}, {}]) == [midnight, NOON_UTC, None]
    assert outcome("TIMESTAMP", [{"v": NOON.replace(tzinfo=BERLIN)}, {"v": DAY}]) == [
        NOON_UTC - dt.timedelta(hours=2),
        midnight,
    ]


@pytest.mark.parametrize("rows", [[{}, {"x": 1}], pa.table({"x": [1, 2]})])
def test_rows_of_a_rule_without_emit_are_matches(rows: Rows) -> None:
    matches = found(RULES.replace(", emit: {v: TYPE}", ""), rows).matches
    assert matches["selection_id"].to_pylist() == [0, 0]
    assert "v" not in matches.column_names


def test_times_with_and_without_a_zone_mean_the_same_in_any_order() -> None:
    values = [NOON.replace(tzinfo=BERLIN), NOON]
    expected = [NOON_UTC - dt.timedelta(hours=2), NOON_UTC]
    assert outcome("TIMESTAMP", [{"v": value} for value in values]) == expected
    assert outcome("TIMESTAMP", [{"v": value} for value in reversed(values)]) == expected[::-1]


@pytest.mark.parametrize(
    ("declared", "column", "expected"),
    [
        ("STRING", pa.array(["a", "b"]).dictionary_encode(), ["a", "b"]),
        ("STRING", pa.array(["a"], pa.large_string()), ["a"]),
        ("DOUBLE", pa.array([1, 2], pa.int8()), [1.0, 2.0]),
        (
            "TIMESTAMP",
            pa.array([0], pa.timestamp("s", "America/New_York")),
            [dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)],
        ),
        ("BIGINT", pa.array([1.0, 2.0]), "TypeError: emit v — must be BIGINT; got double"),
        ("BIGINT", pa.array(["1"]), "TypeError: emit v — must be BIGINT; got string"),
        ("STRING", pa.array([1]), "TypeError: emit v — must be STRING; got int64"),
        (
            "STRING",
            pa.Array.from_buffers(
                pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\1\0\0\0"), pa.py_buffer(b"\xff")]
            ),
            "pyarrow.lib.ArrowInvalid: ",
        ),
    ],
)
def test_a_table_is_held_to_the_same(declared: str, column: pa.Array, expected: Any) -> None:
    got = outcome(declared, pa.table({"v": column}))
    assert got == expected or got[: len(expected)] == expected


@pytest.mark.parametrize(
    "odd",
    [
        None,
        7,
        "text",
        object(),
        [7],
        [{1, 2}],
        {"v": 1},
        pd.DataFrame({"v": [1]}),
        pa.record_batch({"v": [1]}),
    ],
)
def test_what_is_neither_rows_nor_a_table_is_the_operators_failure(odd: Any) -> None:
    assert "Error: " in outcome("BIGINT", odd)


def test_rows_that_are_too_much_together_are_the_operators_failure() -> None:
    rows = [{"v": "x" * (8 << 20)}] * 33
    assert (
        outcome("STRING", rows)
        == "ValueError: the rows that are returned at once must be at most 256 MiB; got 264 MiB"
    )
