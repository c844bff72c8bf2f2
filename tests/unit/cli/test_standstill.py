"""A run says that its stream stands, once, if events wait and no batch comes."""

from __future__ import annotations

import threading

import pytest

from spark_pace.cli.standstill import Standstill, standing
from tests.unit.cli.test_run_and_status import progress

LONG = 3600.0


def test_the_line_says_how_many_wait_where_the_frontier_stands_and_what_would_move_it() -> None:
    batch = progress(pending=399, frontier_us=60_000_000, slowest_source=None)
    assert standing(batch, 30.0) == (
        "waiting: no batch has ended for 30 s; 399 events not yet passed by the frontier, "
        "which stands at 1970-01-01 00:01:00 UTC. Only a later event moves it, or a clock in events."
    )


def test_it_names_the_source_that_holds_the_frontier() -> None:
    told = standing(progress(pending=1, frontier_us=None, slowest_source="north"), 30.0)
    assert told.endswith(
        "1 event not yet passed by the frontier, which has not moved yet. "
        "Only a later event of the source north moves it, or a clock in events."
    )


def test_it_is_said_once_for_a_batch() -> None:
    told, said = list[str](), threading.Event()

    def say(line: str) -> None:
        told.append(line)
        said.set()

    standstill = Standstill(say, 0.01)
    standstill.after(progress(pending=1))
    assert said.wait(10)
    standstill.stop()
    assert len(told) == 1


@pytest.mark.parametrize("changes", [{"pending": 0}, {"pending": 1, "finished": True}])
def test_nothing_is_said_where_nothing_waits_or_the_input_has_ended(changes: dict[str, object]) -> None:
    standstill = Standstill(pytest.fail, 0.0)
    standstill.after(progress(**changes))
    assert standstill._timer is None


def test_a_further_batch_and_the_end_of_the_run_keep_it_silent() -> None:
    told = list[str]()
    standstill = Standstill(told.append, LONG)
    standstill.after(progress(pending=1))
    first = standstill._timer
    standstill.after(progress(pending=1))
    second = standstill._timer
    standstill.stop()
    assert first is not None
    assert second is not None
    first.join(10)
    second.join(10)
    assert not first.is_alive()
    assert not second.is_alive()
    assert told == []


def test_an_event_of_times_to_come_is_told_once() -> None:
    told = list[str]()
    standstill = Standstill(told.append, LONG)
    past, future = 60_000_000, 4_102_444_800_000_000  # 1970 and 2100
    for newest in (past, future, future, past, None, future):
        standstill.after(progress(max_time_us=newest))
    assert [line.partition(",")[0] for line in told] == [
        "warning: The newest event is of 2100-01-01 00:00:00Z"
    ]
    assert "Once the frontier follows it, events of now are late" in told[0]
