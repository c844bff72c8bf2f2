"""Stream order and release: a total order of events, a frontier, and what comes too late.

Sources: semantics, section 6.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from spark_pace.core.columns import (
    NO_FRONTIER,
    SOURCE,
    TIME,
    UNKNOWN_TIME,
    Ints,
    array,
    chosen,
    concat,
    numbers,
    sorted_rows,
)


@dataclass(frozen=True)
class OrderSpec:
    """How the frontier follows the sources.

    Attributes:
        delay_us: how far behind the greatest event time the frontier stays.
        by_source: the frontier follows the slowest source, not the fastest.
        idle_after_us: a source that lags more than this behind the fastest is left out; None: none is.
        expected_sources: are waited for from the start.
        deduplicate_on: events that are equal in these columns are repeats of the first; empty: none is.
    """

    delay_us: int = 0
    by_source: bool = False
    idle_after_us: int | None = None
    expected_sources: tuple[str, ...] = ()
    deduplicate_on: tuple[str, ...] = ()


@dataclass(frozen=True)
class Progress:
    """How far the sources have come: over all valid events of a batch, the same for every slot.

    Attributes:
        max_time_us: the greatest event time; None where the batch had none.
        finish: the input is bounded and ends here.
    """

    max_time_us: int | None
    finish: bool = False


def stream_order(events: pa.Table, ties: tuple[str, ...]) -> Ints:
    """The permutation that sorts events by (event time, tie columns ascending, nulls first)."""
    time = numbers(events, TIME)
    order = np.argsort(time, kind="stable")
    ordered = time[order]
    equal = np.append(False, ordered[1:] == ordered[:-1])
    tied = np.flatnonzero(equal | np.append(equal[1:], False)) if len(order) else order
    if len(tied):
        order[tied] = order[tied][_sorted(events.take(pa.array(order[tied])), (TIME, *ties))]
    return order


def _sorted(events: pa.Table, names: tuple[str, ...]) -> Ints:
    columns = {name: array(events, name) for name in names}
    columns[SOURCE] = columns[SOURCE].cast(pa.string())
    return sorted_rows(columns)


@dataclass
class Order:
    """Running state: events wait here until the frontier passes them.

    Attributes:
        frontier_us: events below it are out; it never moves back.
        max_time_us: the greatest event time seen.
        pending: events at or above the frontier, in no order; None where there are none.
        sources: the greatest event time of each source.
        first_us: the least event time that a source has reported.
        recent: what repeats are told by; None where there is nothing.
    """

    frontier_us: int = NO_FRONTIER
    max_time_us: int = NO_FRONTIER
    pending: pa.Table | None = None
    sources: dict[str, int] = field(default_factory=dict)
    first_us: int = UNKNOWN_TIME
    recent: pa.Table | None = None

    def advance(
        self, frames: list[pa.Table], progress: Progress, delay_us: int, ties: tuple[str, ...]
    ) -> tuple[pa.Table | None, pa.Table | None]:
        """Take a batch of events in and move the frontier.

        Args:
            frames: event tables, in any order.
            progress: of the sources in this batch.
            delay_us: how far behind the greatest event time the frontier stays.
            ties: the columns that order events of one event time.

        Returns:
            released: events below the new frontier in stream order; late: events below the frontier
            that held when the batch began. None where there are none.
        """
        fresh = concat(frames) if frames else None
        late = None
        if fresh is not None:
            is_late = numbers(fresh, TIME) < self.frontier_us
            if is_late.any():
                late = chosen(fresh, is_late)
                fresh = chosen(fresh, ~is_late)
        self._move(progress, delay_us)
        waiting = [table for table in (self.pending, fresh) if table is not None and table.num_rows]
        if not waiting:
            self.pending = None
            return None, late
        return self._release(concat(waiting), ties), late

    def _move(self, progress: Progress, delay_us: int) -> None:
        if progress.max_time_us is not None:
            self.max_time_us = max(self.max_time_us, progress.max_time_us)
        if progress.finish:
            self.frontier_us = UNKNOWN_TIME
        elif self.max_time_us > NO_FRONTIER:
            self.frontier_us = max(self.frontier_us, self.max_time_us - delay_us)

    def _release(self, events: pa.Table, ties: tuple[str, ...]) -> pa.Table | None:
        ready = numbers(events, TIME) < self.frontier_us
        self.pending = None if ready.all() else chosen(events, ~ready)
        events = chosen(events, ready)
        if not events.num_rows:
            return None
        order = stream_order(events, ties)
        if np.array_equal(order, np.arange(len(order))):
            return events
        return events.take(pa.array(order))
