"""Texts in the table of failed selections: bounded, valid, and enough to find the cause."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from spark_pace.core.local_run import run
from spark_pace.core.operate.lane_matches import MOST_SHOWN_BYTES
from spark_pace.core.operate.python_operator import Span
from spark_pace.core.order import OrderSpec
from spark_pace.core.plan.plan import build_plan
from spark_pace.errors import OperatorError
from spark_pace.rules import load_rules

RULES = """
events: {schema: "time TIMESTAMP, s STRING", event_time: time}
rules:
  - {name: r, PARTITION span: {every: 3 events, size: 3 events},
     operator: "tests.unit.core.functions.test_error_texts:OPERATOR", emit: {n: BIGINT}}
"""


class Unprintable(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")


class Odd(Exception):
    def __str__(self) -> str:
        return 7  # type: ignore[return-value]


class NoNotes(Exception):
    @property
    def __notes__(self) -> list[str]:
        raise ValueError("no notes")


class Huge:
    def __repr__(self) -> str:
        return "r" * 50_000_000


def long(span: Span) -> None:
    raise ValueError("begin " + "x" * 100_000_000 + " end")


def surrogates(span: Span) -> None:
    raise ValueError("\ud800" * 20_000)


def unprintable(span: Span) -> None:
    raise Unprintable


def odd(span: Span) -> None:
    raise Odd


def no_notes(span: Span) -> None:
    raise NoNotes


def huge_repr(span: Span) -> None:
    raise KeyError(Huge())


def many(span: Span) -> None:
    raise ValueError(
        "as a group of Python 3.11 shows itself\n"
        "    | ValueError: b\n"
        "    +------------------------------------"
    )


def failed(
    operator: str, texts: list[str], partition: str = "", on_error: Any = "quarantine"
) -> dict[str, Any]:
    """The row of the one selection, which has three events."""
    times = pa.array(np.arange(3) * 1_000_000)
    events = pa.table({
        "@time": times, "@source": pa.array(["s"] * 3).dictionary_encode(),
        "@offset": pa.array([0, 1, 2], pa.int64()),
        "time": times.view(pa.timestamp("us")), "s": pa.array(texts, pa.string()),
    })  # fmt: skip
    result = run(
        build_plan(
            load_rules(RULES.replace("OPERATOR", operator).replace("PARTITION", partition)),
            order=OrderSpec(),
            on_operator_error=on_error,
        ),
        [events],
    )
    (row,) = result.failed.to_pylist()
    return dict(row)


@pytest.mark.parametrize(
    ("operator", "ends"),
    [
        ("long", "x end"),
        ("surrogates", r"\ud800"),
        ("unprintable", "Unprintable: <exception str() failed>"),
        ("odd", "Odd: <exception str() failed>"),
        ("no_notes", ""),
        ("huge_repr", "rrr"),
    ],
)
def test_the_reason_is_short_whatever_an_exception_says(operator: str, ends: str) -> None:
    reason = failed(operator, ["a", "b", "c"])["reason"]
    assert len(reason) < 10_100
    assert reason.strip().endswith(ends)
    assert reason.startswith("Traceback") or "NoNotes" in reason


def test_the_reason_says_how_much_of_it_is_left_out() -> None:
    reason = failed("long", ["a", "b", "c"])["reason"]
    assert len(reason) < 10_100
    assert "ValueError: begin xxx" in reason
    left_out = int(reason.split("\n… ")[1].split(" characters are left out here …\n")[0].replace(",", ""))
    assert 99_990_000 < left_out < 100_001_000


def test_a_message_about_it_is_short() -> None:
    with pytest.raises(OperatorError, match="its operator must return") as caught:
        failed("long", ["a" * 1_000_000] * 3, "partition_by: [s],", "fail")
    assert len(str(caught.value)) < 15_000
    assert len(str(caught.value).splitlines()[0]) < 3_000


def test_a_message_about_a_group_of_exceptions_says_one_of_them() -> None:
    with pytest.raises(OperatorError, match=r"must return; got ValueError: b\. Mend the operator"):
        failed("many", ["a", "b", "c"], on_error="fail")


def test_raw_holds_as_many_whole_events_as_there_is_room_for() -> None:
    row = failed("odd", ["x" * 400_000, '"' * 400_000, "z"])
    assert [json.loads(line)["s"] for line in row["raw"].splitlines()] == ["x" * 400_000]
    assert row["reason"].endswith("\nraw holds the first 1 of 3 events")


def test_raw_is_empty_where_the_first_event_has_no_room() -> None:
    row = failed("odd", ["x" * MOST_SHOWN_BYTES, "y", "z"])
    assert row["raw"] == b""
    assert row["reason"].endswith("\nraw holds the first 0 of 3 events")
    assert (row["source"], row["offset"]) == ("s", 0)


def test_a_long_key_is_shortened() -> None:
    key = failed("odd", ["k" * 1_000_000] * 3, "partition_by: [s],")["key"]
    assert len(key) < 10_100
    assert key.startswith('{"s":"kkk')
    assert key.endswith('kkk"}')
