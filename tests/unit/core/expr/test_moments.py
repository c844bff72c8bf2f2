"""Times as microseconds, there and back."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from spark_pace.core.expr.time_functions import time_of, us_of


@pytest.mark.parametrize("us", [0, 1, -1, -62_135_596_800_000_000, 253_402_300_799_999_999])
def test_a_time_is_exact_to_the_microsecond_from_year_1_to_9999(us: int) -> None:
    assert us_of(time_of(us)) == us


def test_a_time_of_another_zone_is_the_same_moment() -> None:
    there = datetime(1970, 1, 1, 2, tzinfo=timezone(timedelta(hours=1)))
    assert us_of(there) == 3_600_000_000 and time_of(us_of(there)) == there
