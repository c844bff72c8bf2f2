"""Events that wait: however they come and go, those below the frontier are released once; runs are few."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_pace import ways
from spark_pace.core import order as log
from spark_pace.core.order import Pending
from spark_pace.core.tables import HOME, SOURCE, TIME

STEADY = settings(deadline=None, derandomize=True, database=None)


def table(times: list[int]) -> pa.Table:
    return pa.table({
        TIME: pa.array(times, pa.int64()),
        SOURCE: pa.array([f"s{time}" for time in times], pa.string()).dictionary_encode(),
        HOME: pa.array([time % 2 == 0 for time in times]),
    })  # fmt: skip


@pytest.mark.parametrize(("small", "largest"), [(0, 1 << 20), (0, 0), (0, 10), (8, 1 << 20)])
@STEADY
@given(
    st.lists(st.tuples(st.lists(st.integers(0, 60), min_size=1, max_size=9), st.integers(0, 15)), max_size=12)
)
def test_what_waits_is_released_once(small: int, largest: int, steps: list[tuple[list[int], int]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ways, "SMALL", small)
        patch.setattr(ways, "LARGEST", largest)
        pending, waiting, frontier = Pending(), list[int](), 0
        for times, more in steps:
            new = [frontier + time for time in times]
            pending.add(table(new))
            waiting += new
            frontier += more
            released = list(pending.release(frontier))
            got = [time for piece in released for time in piece[TIME].to_pylist()]
            assert sorted(got) == sorted(time for time in waiting if time < frontier)
            waiting = [time for time in waiting if time >= frontier]
            for piece in released:
                assert piece[SOURCE].to_pylist() == [f"s{time}" for time in piece[TIME].to_pylist()]
                assert set(piece[SOURCE].chunk(0).dictionary.to_pylist()) == set(piece[SOURCE].to_pylist())
            assert sum(run.rows for run in pending.runs) == len(waiting)
            assert pending.counted == sum(time % 2 == 0 for time in waiting)


def test_there_are_few_runs_and_an_event_is_sorted_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ways, "SMALL", 16)
    sorted_rows = 0
    make = log.run_of

    def counted(events: pa.Table) -> log.Run:
        nonlocal sorted_rows
        sorted_rows += events.num_rows
        return make(events)

    monkeypatch.setattr(log, "run_of", counted)
    pending = Pending()
    for batch in range(512):
        pending.add(table(list(range(8 * batch, 8 * batch + 8))))
        assert not list(pending.release(0))
    assert len(pending.runs) <= 9
    assert sorted_rows <= 512 * 8 * 10
