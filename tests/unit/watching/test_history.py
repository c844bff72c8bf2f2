"""The history of batches: whatever the cut, and however long the run."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from spark_pace.errors import shown_time
from spark_pace.io.metrics import METRICS_SCHEMA
from spark_pace.watching.history import MOST_BARS, MOST_BATCHES, MOST_COUNTS, NOTHING
from spark_pace.watching.troubles import of_stream
from tests.support.watched import BEGAN


def rows(number: int, seconds: float) -> pa.Table:
    """The rows of so many batches, each so many seconds behind the one before."""
    columns = {
        name: pa.nulls(number, kind)
        for name, kind in zip(METRICS_SCHEMA.names, METRICS_SCHEMA.types, strict=True)
    }
    places = np.arange(number)
    columns |= {name: pa.array(places) for name in ("batch_id", "records", "late", "pending")}
    columns["seconds"] = pa.array(np.full(number, seconds))
    columns["written_at"] = pa.array([BEGAN + timedelta(seconds=seconds * place) for place in range(number)])
    columns["frontier"] = columns["max_event_time"] = columns["written_at"]
    by_rule = [[(f"r{place % 3}", place)] for place in range(number)]
    columns["matches_by_rule"] = pa.array(by_rule, METRICS_SCHEMA.field("matches_by_rule").type)
    return pa.table(columns)


@pytest.mark.parametrize("cut", [1, 7, 1_000])
@pytest.mark.parametrize("are_mixed", [False, True])
def test_a_history_read_in_parts_is_the_history_read_at_once(cut: int, are_mixed: bool) -> None:
    batches, found = rows(3_000 if cut > 1 else 40, 2.0), NOTHING
    whole = NOTHING.after(batches)
    if are_mixed:
        batches = batches.take(np.random.default_rng(1).permutation(batches.num_rows))
    for first in range(0, batches.num_rows, cut):
        found = found.after(batches.slice(first, cut))
    assert found == whole


def test_of_a_long_history_the_last_batches_are_kept_and_all_sums() -> None:
    found = NOTHING.after(rows(100_000, 5.0))
    assert found.batches["batch_id"].to_pylist() == [*range(100_000 - MOST_BATCHES, 100_000)]
    assert found.sums["records"] == sum(range(100_000)) and found.sums["batches"] == 100_000
    begins, matrix = found.matrix(["r2", "r0", "r1", "none"])
    assert len(begins) <= MOST_BARS + 1 and np.unique(np.diff(begins)).size == 1
    first = 100_000 - MOST_BATCHES
    expected = [sum(number for number in range(first, 100_000) if number % 3 == rule) for rule in (2, 0, 1)]
    assert [sum(one) for one in matrix] == [*expected, 0]
    assert {rule: matches for rule, (matches, _) in found.totals.items()} == {
        f"r{first}": sum(range(first, 100_000, 3)) for first in range(3)
    }


def changed(batches: pa.Table, name: str, values: Any) -> pa.Table:
    return batches.set_column(batches.column_names.index(name), name, pa.array(values))


@pytest.mark.parametrize("parts", [1, 3])
def test_since_when_the_frontier_stands_is_exact_however_long_the_run(parts: int) -> None:
    number, stood = 3 * MOST_BATCHES, 2 * MOST_BATCHES
    batches = rows(number, 600.0)
    frontier = batches["frontier"].to_pylist()
    frontier[number - stood :] = [frontier[number - stood]] * stood
    batches, found = changed(batches, "frontier", frontier), NOTHING
    for first in range(0, number, number // parts):
        found = found.after(batches.slice(first, number // parts))
    now = BEGAN + timedelta(seconds=600.0 * number)
    told = dict(of_stream(None, found, None, now))["stands"]
    since = shown_time(frontier[-1])
    assert told.startswith(f"The frontier stands at {since} since {since}, with ")


def test_since_when_no_records_have_come_is_exact_however_long_the_run() -> None:
    number, silent = 3 * MOST_BATCHES, 2 * MOST_BATCHES
    batches = changed(rows(number, 60.0), "records", np.where(np.arange(number) < number - silent, 5, 0))
    found = NOTHING
    for first in range(0, number, 7_000):
        found = found.after(batches.slice(first, 7_000))
    first, last = (batches["written_at"][place].as_py() for place in (0, number - silent - 1))
    assert found.came == NOTHING.after(batches).came == (first, last, number - silent)
    now = BEGAN + timedelta(seconds=60.0 * number)
    told = dict(of_stream(None, found, None, now))["silent"]
    assert told.startswith(f"Nothing has come from any source since {shown_time(last)}, for ")


def test_of_many_rules_the_last_counts_are_kept_and_no_batch_copies_them() -> None:
    rules = [(f"r{number}", 1) for number in range(1_000)]
    batches = rows(301, 2.0)
    kind = METRICS_SCHEMA.field("matches_by_rule").type
    batches = changed(batches, "matches_by_rule", pa.array([rules] * 301, kind))
    found = NOTHING.after(batches.slice(0, 150)).after(batches.slice(150, 149))
    assert found.by_rule.num_rows == MOST_COUNTS
    before = found.by_rule["matches"].chunks
    found = found.after(batches.slice(299, 1))
    after = found.by_rule["matches"].chunks
    assert [one.buffers()[1].address for one in after[:-1]] == [one.buffers()[1].address for one in before]
    for _ in range(70):  # what is cut off is let go of
        found = found.after(batches.slice(300, 1))
    assert found.by_rule.num_rows == MOST_COUNTS
    assert sum(one.buffers()[1].size for one in found.by_rule["matches"].chunks) < 1.1 * 8 * MOST_COUNTS
    assert {matches for matches, _ in found.totals.values()} == {370}


def test_without_batches_there_is_nothing() -> None:
    assert NOTHING.matrix(["r"]) == ([], [[]]) and NOTHING.totals == {} and NOTHING.last is None
    assert NOTHING.newest is None and NOTHING.after(rows(0, 1.0)) == NOTHING
