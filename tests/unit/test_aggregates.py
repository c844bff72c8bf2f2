"""Aggregates of spans: whole numbers are added exactly, others in stream order; values compare as in SQL."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from spark_pace.core.match.stream import Stream
from spark_pace.core.operate.aggregates import SpanAggregates


def aggregated(function: str, values: list[Any], *spans: tuple[int, int]) -> list[Any]:
    stream = Stream(pa.table({"x": values}), np.zeros(1, np.int64))
    start, end = (np.array([span[side] for span in spans]) for side in (0, 1))
    return SpanAggregates(stream, start, end).aggregate(function, None, "x").to_pylist()  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    "spans",
    [[(0, 300), (100, 200)], [(at, at + 3 + at % 5) for at in range(280)]],
    ids=["few long ones", "many short ones"],
)
def test_floating_point_numbers_are_added_in_stream_order(spans: list[tuple[int, int]]) -> None:
    random = np.random.default_rng(7)
    values = (random.normal(size=300) * 10.0 ** random.integers(-9, 9, 300)).tolist()
    values[150] = None
    expected, deviations, exact = [], [], []
    for start, end in spans:
        known = [value for value in values[start:end] if value is not None]
        total = 0.0
        for value in known:
            total += value
        squares, mean = 0.0, total / len(known)
        for value in known:
            squares += (value - mean) * (value - mean)
        expected.append(total)
        exact.append(math.fsum(known))
        deviations.append(math.sqrt(squares / (len(known) - 1)))
    assert aggregated("sum", values, *spans) == expected
    assert aggregated("stddev", values, *spans) == deviations
    assert expected != exact, "the order matters for these numbers"


def test_a_whole_sum_is_exact_or_null_and_never_wraps_around() -> None:
    most, least = 2**63 - 1, -(2**63)
    spans = [(0, 2), (0, 3), (3, 5), (2, 4), (0, 5)]
    assert aggregated("sum", [most, 1, -1, least, -1], *spans) == [None, most, None, None, -2]
    assert aggregated("avg", [most, 1, -1, least, -1], (0, 2), (3, 5)) == [2.0**62, -(2.0**62)]


def test_nan_is_the_greatest_number_and_zero_has_no_sign() -> None:
    nan = float("nan")
    values = [1.0, nan, -0.0, 0.0, nan, None]
    assert aggregated("min", values, (0, 2), (2, 6), (5, 6)) == [1.0, 0.0, None]
    assert [math.isnan(value) for value in aggregated("max", values, (0, 2), (2, 5), (2, 4))] == [
        True,
        True,
        False,
    ]
    assert [math.copysign(1, value) for value in aggregated("max", values, (2, 3), (2, 4))] == [1, 1]
    assert math.copysign(1, aggregated("sum", [-0.0, -0.0], (0, 1), (0, 2))[0]) == 1
