"""Stream order and release: a total order of events, a frontier, and what comes too late.

Sources: semantics, section 6.
"""

from __future__ import annotations

from collections.abc import Iterable
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
from spark_pace.core.order.repeats import drop_repeats


@dataclass(frozen=True)
class OrderSpec:
    """How the frontier follows the sources.

    Attributes:
        delay_us: how far behind the greatest event time the frontier stays.
        by_source: the frontier follows the slowest source, not the fastest.
        idle_after_us: a source that lags more than this behind the fastest is left out; None: none is.
        expected_sources: are waited for from the start.
        deduplicate_on: an event equal in these columns to one before it, by the delay at the most, is a repeat; empty: none is.
    """

    delay_us: int = 0
    by_source: bool = False
    idle_after_us: int | None = None
    expected_sources: tuple[str, ...] = ()
    deduplicate_on: tuple[str, ...] = ()


@dataclass(frozen=True)
class Progress:
    """How far the sources have come: over all valid records of a batch, the same for every slot.

    Attributes:
        max_time_us: the greatest event time; None where the batch had none.
        finish: the input is bounded and ends here.
        sources: the greatest event time of each source, where the frontier follows these.
        least_us: the least event time; None where the batch had none.
    """

    max_time_us: int | None = None
    finish: bool = False
    sources: dict[str, int] = field(default_factory=dict)
    least_us: int | None = None


def together(parts: Iterable[Progress]) -> Progress:
    """The progress of several tasks as that of one."""
    parts = list(parts)
    sources: dict[str, int] = {}
    for part in parts:
        for source, time_us in part.sources.items():
            sources[source] = max(time_us, sources.get(source, time_us))
    greatest = max((part.max_time_us for part in parts if part.max_time_us is not None), default=None)
    least = min((part.least_us for part in parts if part.least_us is not None), default=None)
    return Progress(greatest, any(part.finish for part in parts), sources, least)


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


@dataclass(frozen=True)
class Standing:
    """The greatest event time of each source: of those that hold the frontier, and of those left out as idle.

    A source that is expected and was never heard of stands at the least event time seen.
    """

    waited_for: dict[str, int]
    idle: dict[str, int]
    unheard: frozenset[str] = frozenset()

    def holding(self, reached_us: int, most: int) -> list[str]:
        """The names of sources that have come no further than `reached_us`, the slowest first; it is said of those that were never heard of."""
        behind = [source for source, at in self.waited_for.items() if at <= reached_us]
        slowest = sorted(behind, key=lambda source: (self.waited_for[source], source))[:most]
        return [f"{source} (never heard of)" if source in self.unheard else source for source in slowest]


@dataclass(frozen=True)
class Advance:
    """What a batch has moved.

    Attributes:
        released: events below the new frontier in stream order, without repeats; None where there are none.
        late: events below the frontier that held when the batch began; None where there are none.
        repeats: how many events were dropped.
    """

    released: pa.Table | None
    late: pa.Table | None
    repeats: int = 0


@dataclass
class Order:
    """Running state: events wait here until the frontier passes them.

    Attributes:
        frontier_us: events below it are out; it never moves back.
        max_time_us: the greatest event time seen.
        pending: events at or above the frontier, in no order; None where there are none.
        sources: the greatest event time of each source that was heard of, where the frontier follows these.
        first_us: the least event time seen.
        recent: what repeats are told by; None where there is nothing.
    """

    frontier_us: int = NO_FRONTIER
    max_time_us: int = NO_FRONTIER
    pending: pa.Table | None = None
    sources: dict[str, int] = field(default_factory=dict)
    first_us: int = UNKNOWN_TIME
    recent: pa.Table | None = None

    def advance(
        self, frames: list[pa.Table], progress: Progress, spec: OrderSpec, ties: tuple[str, ...]
    ) -> Advance:
        """Take a batch of events in and move the frontier.

        Args:
            frames: event tables, in any order.
            progress: of the sources in this batch.
            spec: how the frontier follows the sources.
            ties: the columns that order events of one event time.
        """
        fresh = concat(frames) if frames else None
        late = None
        if fresh is not None:
            is_late = numbers(fresh, TIME) < self.frontier_us
            if is_late.any():
                late = chosen(fresh, is_late)
                fresh = chosen(fresh, ~is_late)
        self._move(progress, spec)
        waiting = [table for table in (self.pending, fresh) if table is not None and table.num_rows]
        self.pending = None
        released = self._release(concat(waiting), ties) if waiting else None
        if released is None or not spec.deduplicate_on:
            return Advance(released, late)
        kept = drop_repeats(released, self.recent, spec.deduplicate_on, spec.delay_us, self.frontier_us)
        self.recent = kept.recent
        return Advance(kept.events, late, kept.repeats)

    def _move(self, progress: Progress, spec: OrderSpec) -> None:
        self.sources = together([Progress(sources=self.sources), progress]).sources
        if progress.least_us is not None:
            self.first_us = min(self.first_us, progress.least_us)
        if progress.max_time_us is not None:
            self.max_time_us = max(self.max_time_us, progress.max_time_us)
        if progress.finish:
            self.frontier_us = UNKNOWN_TIME
            return
        reached_us = (
            min(self.standing(spec).waited_for.values(), default=NO_FRONTIER)
            if spec.by_source
            else self.max_time_us
        )
        if reached_us > NO_FRONTIER:
            self.frontier_us = max(self.frontier_us, reached_us - spec.delay_us)

    def standing(self, spec: OrderSpec) -> Standing:
        """Where the sources are that the frontier follows."""
        if not spec.by_source or self.first_us == UNKNOWN_TIME:
            return Standing({}, {})
        times = dict.fromkeys(spec.expected_sources, self.first_us) | self.sources
        fastest_us = max(times.values(), default=0)
        idle = {
            source: at
            for source, at in times.items()
            if spec.idle_after_us is not None and fastest_us - at > spec.idle_after_us
        }
        unheard = frozenset(spec.expected_sources) - self.sources.keys()
        return Standing({source: at for source, at in times.items() if source not in idle}, idle, unheard)

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
