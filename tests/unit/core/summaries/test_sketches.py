"""Sketches estimate how many distinct values there are, the same however a stream is cut."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_pace.core.ranks import folded
from spark_pace.core.summaries.distribution import SIZE, of_stored, registers_of, sizes, stored


def sketch_of(values: pa.Array) -> Any:
    return registers_of(values, np.array([0]), np.array([len(values)]))


@pytest.mark.parametrize("kind", [pa.int64(), pa.float64(), pa.string()])
@pytest.mark.parametrize("count", [0, 1, 10, 100, 1_000, 3_000, 20_000, 200_000])
def test_an_estimate_is_near_the_number_of_distinct_values(kind: pa.DataType, count: int) -> None:
    values = pa.array(np.repeat(np.arange(count) * 7 + 3, 2)).cast(kind)
    (found,) = sizes(sketch_of(values))
    assert abs(found - count) <= 3 * 1.04 / SIZE**0.5 * count


def test_the_error_is_the_one_that_is_told_and_there_is_no_bias() -> None:
    random = np.random.default_rng(11)
    counts = np.repeat([50, 700, 1_500, 5_000, 40_000], 60)
    values = pa.array(random.integers(0, 1 << 60, int(counts.sum())))
    end = np.cumsum(counts)
    errors = (sizes(registers_of(values, end - counts, end)) / counts - 1).reshape(-1, 60)
    assert (abs(errors.mean(axis=1)) < 0.018).all(), errors.mean(axis=1)
    assert (errors.std(axis=1) < 0.06).all(), errors.std(axis=1)


@given(st.lists(st.integers(0, 40) | st.none(), min_size=2, max_size=60), st.data())
def test_the_sketch_of_some_ranges_is_that_of_all_their_values(
    numbers: list[Any], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(1, len(numbers) - 1))
    values = pa.array(numbers, pa.int64())
    parts = registers_of(values, np.array([0, cut]), np.array([cut, len(numbers)]))
    parts = of_stored(stored(parts))
    whole = folded(np.maximum, parts, np.array([0]), np.array([2]))
    assert (whole == sketch_of(values)).all()


def test_values_that_are_equal_in_sql_count_once_and_nulls_never() -> None:
    alike = pa.array([0.0, -0.0, float("nan"), -float("nan"), None])
    assert sizes(sketch_of(alike)).tolist() == [2]
    moment, day = datetime(2024, 1, 2, 3), date(2024, 1, 2)
    for one, other in [(True, False), (moment, datetime(1969, 1, 1)), (day, date(1900, 1, 1)),
                       (Decimal("1.50"), Decimal("-1.50")), ("", "ü")]:  # fmt: skip
        assert sizes(sketch_of(pa.array([one, other, one, None]))).tolist() == [2]


def test_a_hash_is_the_same_in_every_release() -> None:
    texts = pa.array([f"card{number}" for number in range(1000)])
    assert sketch_of(texts)[0, :12].tolist() == [1, 0, 4, 2, 1, 2, 10, 2, 2, 1, 0, 0]
    for numbers, places in [([1, 2, 3], [193, 206, 493]), ([1.5, 2.0, 3.0], [138, 309, 491])]:
        assert np.flatnonzero(sketch_of(pa.array(numbers))[0]).tolist() == places
