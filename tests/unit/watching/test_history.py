"""The history of batches in few rows: whatever the cut, and however long the run."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pyarrow as pa
import pytest

from spark_pace.io.metrics import METRICS_SCHEMA
from spark_pace.watching.history import MOST_POINTS, NOTHING, History
from tests.support.watched import BEGAN


def rows(number: int, seconds: float) -> pa.Table:
    """The rows of so many batches, each so many seconds behind the one before."""
    columns = {
        name: pa.nulls(number, kind)
        for name, kind in zip(METRICS_SCHEMA.names, METRICS_SCHEMA.types, strict=True)
    }
    places = np.arange(number)
    columns |= {name: pa.array(places) for name in ("records", "late", "pending")}
    columns["seconds"] = pa.array(np.full(number, seconds))
    columns["written_at"] = pa.array([BEGAN + timedelta(seconds=seconds * place) for place in range(number)])
    columns["frontier"] = columns["max_event_time"] = columns["written_at"]
    by_rule = [[(f"r{place % 3}", place)] for place in range(number)]
    columns["matches_by_rule"] = pa.array(by_rule, METRICS_SCHEMA.field("matches_by_rule").type)
    return pa.table(columns)


@pytest.mark.parametrize("cut", [1, 7, 1_000])
def test_a_history_read_in_parts_is_the_history_read_at_once(cut: int) -> None:
    batches, found = rows(3_000, 2.0), NOTHING
    for first in range(0, 3_000 if cut > 1 else 40, cut):
        found = found.after(batches.slice(first, cut))
    whole = NOTHING.after(batches if cut > 1 else batches.slice(0, 40))
    assert found.batches.equals(whole.batches)
    assert found.matches.sort_by([("rule", "ascending"), ("begins_us", "ascending")]).equals(
        whole.matches.sort_by([("rule", "ascending"), ("begins_us", "ascending")])
    )


def test_a_long_history_is_short_and_loses_no_sum() -> None:
    found = NOTHING.after(rows(100_000, 5.0))
    assert MOST_POINTS / 2 < found.batches.num_rows <= MOST_POINTS
    sums = found.sums()
    assert sums["records"] == sum(range(100_000)) and sums["batches"] == 100_000
    begins, matrix = found.matrix(["r2", "r0", "r1", "none"])
    assert len(begins) <= MOST_POINTS / 8 + 1 and np.unique(np.diff(begins)).size == 1
    assert [sum(one) for one in matrix] == [sum(range(first, 100_000, 3)) for first in (2, 0, 1)] + [0]
    assert {rule: matches for rule, (matches, _) in found.totals().items()} == {
        f"r{first}": sum(range(first, 100_000, 3)) for first in range(3)
    }


@pytest.mark.parametrize("parts", [1, 3])
def test_since_when_the_frontier_stands_is_exact_however_long_the_run(parts: int) -> None:
    number, stood = 20_000, 9
    batches = rows(number, 600.0)  # 139 days, in stretches of more than three hours
    frontier = batches["frontier"].to_pylist()
    frontier[number - stood :] = [frontier[number - stood]] * stood
    batches = batches.set_column(batches.column_names.index("frontier"), "frontier", pa.array(frontier))
    found = NOTHING
    for first in range(0, number, -(-number // parts)):
        found = found.after(batches.slice(first, -(-number // parts)))
    us = int(frontier[-1].timestamp() * 1e6)
    assert found.stands == (us, us)


def test_since_when_no_records_have_come_is_exact_however_long_the_run() -> None:
    number, silent = 20_000, 9
    batches = rows(number, 600.0)
    records = np.where(np.arange(number) < number - silent, 5, 0)
    batches = batches.set_column(batches.column_names.index("records"), "records", pa.array(records))
    found = NOTHING
    for first in range(0, number, 7_000):
        found = found.after(batches.slice(first, 7_000))
    first, last = (int(batches["written_at"][place].as_py().timestamp() * 1e6) for place in (0, -silent - 1))
    assert found.came == NOTHING.after(batches).came == (first, last, number - silent)


def test_without_batches_there_is_nothing() -> None:
    assert isinstance(NOTHING, History)
    assert NOTHING.matrix(["r"]) == ([], [[]]) and NOTHING.totals() == {} and NOTHING.stands is None
    assert NOTHING.after(rows(0, 1.0)).batches.num_rows == 0
