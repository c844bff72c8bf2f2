"""Aggregates of spans: numbers are added exactly, and rounded once; values compare as in SQL."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from spark_pace.core.expr import Aggregate
from spark_pace.core.match.stream import Stream
from spark_pace.core.operate.lane_matches import SpanAggregates
from spark_pace.core.split.panes import ContentsOfEvents


def aggregated(function: Any, values: list[Any], *spans: tuple[int, int]) -> list[Any]:
    stream = Stream(pa.table({"x": values}), np.zeros(1, np.int64))
    start, end = (np.array([span[side] for span in spans]) for side in (0, 1))
    columns = SpanAggregates(ContentsOfEvents(stream), start, end)
    one = Aggregate(function, None, "x", "DOUBLE")
    return columns.aggregate(one).to_pylist()  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    "spans",
    [[(0, 300), (100, 200)], [(at, at + 3 + at % 5) for at in range(280)]],
    ids=["few long ones", "many short ones"],
)
def test_a_sum_of_floating_point_numbers_is_exact_and_rounded_once(spans: list[tuple[int, int]]) -> None:
    random = np.random.default_rng(7)
    values = (random.normal(size=300) * 10.0 ** random.integers(-9, 9, 300)).tolist()
    values[150] = None
    known = [[value for value in values[start:end] if value is not None] for start, end in spans]
    exact = [math.fsum(one) for one in known]
    assert aggregated("sum", values, *spans) == exact
    assert aggregated("avg", values, *spans) == [
        total / len(one) for total, one in zip(exact, known, strict=True)
    ]
    in_turn = [reduce(add, one) for one in known]
    assert in_turn != exact, "in stream order these numbers give others"


def test_a_deviation_is_exact_where_the_numbers_are_large_and_their_differences_small() -> None:
    far = 2.0**50
    values = [far + 1, far + 2, far + 3, far + 6, 1e200, 3e200, 1e-200, 3e-200]
    found = aggregated("stddev", values, (0, 3), (0, 4), (4, 6), (6, 8), (0, 2))
    expected = [1.0, math.sqrt(14 / 3), 1e200 * math.sqrt(2), 1e-200 * math.sqrt(2), math.sqrt(0.5)]
    assert found == pytest.approx(expected, rel=1e-15)
    assert aggregated("stddev", values, (0, 1)) == [None]
    assert aggregated("stddev", [1e200, 3e200], (0, 2)) == pytest.approx(expected[2:3], rel=1e-15)


def test_infinities_and_nan_are_added_as_numbers_are() -> None:
    inf, nan = math.inf, math.nan
    values = [1.0, inf, -inf, nan, 1.7e308, 1.7e308, -1.7e308]
    spans = [(0, 2), (1, 3), (2, 3), (3, 5), (4, 6), (4, 7), (0, 1)]
    expected = [inf, nan, -inf, nan, inf, 1.7e308, 1.0]
    assert list(map(str, aggregated("sum", values, *spans))) == list(map(str, expected))
    assert math.isnan(aggregated("stddev", values, (0, 2))[0])


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


@pytest.mark.parametrize(
    "values",
    [
        [0.01, 99.99, -3.5, 1234.25],
        [1e-7, 1e7, -1e-7, 3.0],
        [1e15, -1e15, 0.1, 2.0**-60],
        [3e-320, 1e-300, -2e-310, 5e-324],
        [1.7e308, -1.7e308, 1e292, 0.5],
        [2.0**62, 2.0**-62, 1.0, -1.0],
    ],
    ids=["few digits", "more", "four", "the least", "the greatest", "far apart"],
)
def test_sums_are_exact_however_many_digits_hold_the_numbers(values: list[float]) -> None:
    many = values * 3000  # more than a block
    spans = [(0, len(many)), (1, 8), (8, 12_000), (4, 4 + 2 * 4096)]
    expected = [math.fsum(many[start:end]) for start, end in spans]
    assert aggregated("sum", many, *spans) == expected
    following = [(0, 5000), (5000, 5001), (5001, 12_000)]
    assert aggregated("sum", many, *following) == [math.fsum(many[start:end]) for start, end in following]
    scale = max(map(abs, values))
    if 1e-150 < scale < 1e150:
        exact = [Fraction(value) for value in many]
        middle = sum(exact) / len(exact)
        variance = sum((value - middle) ** 2 for value in exact) / (len(exact) - 1)
        assert aggregated("stddev", many, (0, len(many))) == pytest.approx([math.sqrt(variance)], rel=1e-15)
