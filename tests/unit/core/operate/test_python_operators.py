"""Python operators: what they see, what they may give, and what becomes of those that fail."""

from __future__ import annotations

from typing import Literal

import pyarrow as pa
import pytest

from spark_pace.core.local_run import LocalResult, run
from spark_pace.core.operate.python_operator import Span
from spark_pace.core.order import OrderSpec
from spark_pace.core.plan.plan import build_plan
from spark_pace.errors import OperatorError
from spark_pace.rules import load_rules

RULES = """
events: {schema: "time TIMESTAMP, x BIGINT", event_time: time}
rules:
  - name: windows
    span: {every: 10 s, size: 10 s}
    operator: tests.unit.core.operate.test_python_operators:OPERATOR
    emit: {n: BIGINT, label: STRING}
"""

attempts: list[int] = []


def counted(span: Span) -> pa.Table:
    return pa.table({"n": [span.events.num_rows], "other": [1]})


def frame(span: Span) -> list[dict[str, object]]:
    return [
        {
            "n": int(span.to_pandas()["x"].sum()),
            "label": f"{span.rule} {span.selection_id} {span.key} {span.closing}",
        }
    ]


def poisoned_by_two(span: Span) -> list[dict[str, object]]:
    attempts.append(span.selection_id)
    if 2 in span.events["x"].to_pylist():
        raise ValueError("two is poison")
    return [{"n": span.opening["x"], "label": "fine"}]


def wrong_type(span: Span) -> list[dict[str, object]]:
    return [{"n": "many"}]


def misspelt(span: Span) -> list[dict[str, object]]:
    return [{"n": 1, "lable": "fine"}]


def result(operator: str, on_error: Literal["quarantine", "fail"] = "quarantine") -> LocalResult:
    times = pa.array([second * 1_000_000 for second in (1, 11, 21)], pa.int64())
    events = pa.table({
        "@time": times,
        "@source": pa.array(["s"] * 3).dictionary_encode(),
        "@offset": pa.array([0, 1, 2], pa.int64()),
        "time": times.view(pa.timestamp("us")),
        "x": pa.array([1, 2, 3], pa.int64()),
    })  # fmt: skip
    return run(
        build_plan(
            load_rules(RULES.replace("OPERATOR", operator)), order=OrderSpec(), on_operator_error=on_error
        ),
        [events],
    )


def fields(matches: pa.Table) -> list[tuple[object, ...]]:
    return [(row["selection_id"], row["n"], row["label"]) for row in matches.to_pylist()]


def test_an_operator_may_give_a_table_and_emit_picks_its_fields() -> None:
    assert fields(result("counted").matches) == [(0, 1, None), (1, 1, None), (2, 1, None)]


def test_an_operator_sees_the_selection_with_its_name_number_and_ends() -> None:
    assert fields(result("frame").matches)[1] == (1, 2, "windows 1 None None")


def test_a_poison_selection_is_retried_then_set_aside_and_its_neighbours_stay_exact() -> None:
    attempts.clear()
    out = result("poisoned_by_two")
    assert fields(out.matches) == [(0, 1, "fine"), (2, 3, "fine")]
    assert out.matches["out_seq"].to_pylist() == [0, 1]
    assert attempts == [0, 1, 1, 2]
    (failed,) = out.failed.to_pylist()
    assert (failed["rule"], failed["key"], failed["selection_id"]) == ("windows", None, 1)
    assert failed["reason"].startswith("Traceback")
    assert "ValueError: two is poison" in failed["reason"]


def test_rows_of_another_type_than_declared_are_the_operators_failure() -> None:
    assert result("wrong_type").failed.num_rows == 3


def test_a_misspelt_field_is_the_operators_failure_too() -> None:
    (reason,) = set(result("misspelt").failed["reason"].to_pylist())
    got = 'a row must have the fields of emit; got "lable" (did you mean "label"?)'
    assert reason.endswith(f"TypeError: {got}\n")


def test_a_failing_operator_stops_the_run_where_that_is_asked_for() -> None:
    with pytest.raises(
        OperatorError,
        match=(
            r"rule windows key None selection 1 — its operator must return; "
            r"got ValueError: two is poison\. Mend"
        ),
    ):
        result("poisoned_by_two", "fail")


def test_an_operator_that_does_not_exist_is_named() -> None:
    with pytest.raises(
        OperatorError,
        match=r"operator tests\.unit\.core\.operate\.test_python_operators:absent — must be importable",
    ):
        result("absent")


def test_windows_that_only_the_end_of_the_input_ended_count_as_open() -> None:
    assert result("counted").stats["open"] == 1
