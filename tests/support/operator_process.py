"""Selections for the process that runs Python operators, and what it answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from spark_pace.core.operate.python_operator import Span, Spans
from spark_pace.core.plan.rule import Rule
from spark_pace.rules import load_rules
from spark_pace.spark.stages.operator_process import OperatorProcess

NEVER_US = 60_000_000
RULES = """
events: {schema: "time TIMESTAMP, x BIGINT", event_time: time}
rules:
  - name: windows
    span: {every: 1 events, size: 1 events}
    operator: OPERATOR
    emit: {n: BIGINT, label: STRING}
"""
Operator = Callable[[Span], Any] | str  # the function, or its name as a rule gives it


def rule_of(operator: Operator) -> Rule:
    name = operator if isinstance(operator, str) else f"{operator.__module__}:{operator.__name__}"
    return load_rules(RULES.replace("OPERATOR", name))[0]


def spans(operator: Operator, values: list[int]) -> Spans:
    """A selection for each value."""
    count = len(values)
    times = pa.array(np.arange(count) * 1_000_000).view(pa.timestamp("us"))
    events = pa.table({"time": times, "x": pa.array(values, pa.int64())})
    start = np.arange(count)
    return Spans(rule_of(operator), events, None, start, start + 1, start + 100, np.full(count, True))


def answer(
    process: OperatorProcess, asked: Spans, timeout_us: int = NEVER_US
) -> tuple[list[dict[str, Any]], dict[int, str]]:
    """The rows of all spans, and for each span that failed the last line of its reason."""
    rows: list[dict[str, Any]] = []
    counts: list[int] = []
    failed: dict[int, str] = {}
    for answers in process.call(asked, timeout_us):
        for place, reason in answers.failed.items():
            failed[len(counts) + place] = reason.strip().splitlines()[-1]
        counts += answers.counts
        rows += answers.rows.to_pylist()
    assert len(counts) == len(asked)
    return rows, failed


def first(span: Span) -> int:
    """The value of a selection."""
    return int(span.opening["x"])
