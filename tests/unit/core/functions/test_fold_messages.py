"""What is said of a fold that raises, or that returns a field which nobody has declared."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from spark_pace.core.python_functions import Runs, fold_here
from spark_pace.errors import OperatorError
from spark_pace.rules import load_rules

HERE = "tests.unit.core.functions.test_fold_messages"
RULES = """
events: {schema: "time TIMESTAMP, x BIGINT", event_time: time}
rules:
  - name: folds
    fold: FUNCTION
    emit: {n: BIGINT, label: STRING}
"""
Event = dict[str, Any]


def runs(function: str) -> Runs:
    """A run of two events, 0 and 1."""
    events = pa.table({"time": pa.array([0, 1], pa.timestamp("us")), "x": [0, 1]})
    return Runs(
        load_rules(RULES.replace("FUNCTION", f"{HERE}:{function}"))[0],
        events,
        np.arange(2) + 100,
        np.array([0, 2]),
        None,
        [None],
    )


def misspelt(state: Any, event: Event) -> tuple[Any, list[Event]]:
    return None, [{"n": 1, "label": "a", "lable": "b"}] if event["x"] == 0 else [{"lable": "b", "other": 1}]


def misspelt_of_table(state: Any, events: pa.Table) -> tuple[Any, pa.Table]:
    return None, pa.table({"row": [0], "n": [1], "lable": ["a"]})


misspelt_of_table.takes_table = True  # type: ignore[attr-defined]


@pytest.mark.parametrize(("function", "seq"), [("misspelt", 101), ("misspelt_of_table", 100)])
def test_a_misspelt_field_of_a_fold_is_refused_with_the_one_that_may_be_meant(
    function: str, seq: int
) -> None:
    got = 'TypeError: a row must have the fields of emit; got "lable" (did you mean "label"?). No state'
    with pytest.raises(OperatorError) as caught:
        fold_here(runs(function))
    assert f"seq {seq} — its fold {HERE}:{function} must return; got {got}" in str(caught.value)


def raises_below(state: Any, event: Event) -> None:
    json.loads("{")


def test_a_fold_that_raises_is_told_with_the_line_of_its_own_file() -> None:
    line = raises_below.__code__.co_firstlineno + 1
    with pytest.raises(OperatorError) as caught:
        fold_here(runs("raises_below"))
    assert "JSONDecodeError: Expecting property name" in str(caught.value)
    assert f" ({__file__}, line {line}). No state has changed" in str(caught.value)
