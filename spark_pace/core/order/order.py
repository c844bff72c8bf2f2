"""Releases events in stream order, once the frontier has passed them.

Sources: semantics, section 6.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import pyarrow as pa

from spark_pace.core.columns import NO_FRONTIER, SOURCE, TIME, UNKNOWN_TIME, Bools, Ints
from spark_pace.core.order.pending_events import Pending
from spark_pace.core.order.progress import FileProgress, Progress, Tick, move_on
from spark_pace.core.order.repeats import drop_repeats
from spark_pace.core.ranks import sorted_rows
from spark_pace.core.tables import array, chosen, concat, numbers

# What decides if an event is late: the batches before its own, the files before its own, or the earlier
# records of its source in its partition.
Before = Literal["batches", "files", "records"]
MOST_NAMED = 5  # of the sources that a batch tells
IN = " in "  # joins a source and its partition in names of sources, if `Before` is "records"


@dataclass(frozen=True)
class OrderSpec:
    """The rules by which the frontier follows the sources, and by which events are late.

    Attributes:
        delay_us: how far behind the greatest event time the frontier stays.
        by_source: True if the frontier follows the slowest source; False: the fastest.
        idle_after_us: sources that lag more than this behind the fastest are not waited for; None: all are.
        expected_sources: the names of sources that are waited for before their first record.
        deduplicate_on: an event is dropped if one with equal values in these columns was kept at most
            `delay_us` before it; empty: none is dropped.
        before: what decides if an event is late.
    """

    delay_us: int = 0
    by_source: bool = False
    idle_after_us: int | None = None
    expected_sources: tuple[str, ...] = ()
    deduplicate_on: tuple[str, ...] = ()
    before: Before = "batches"

    @property
    def in_any_order(self) -> OrderSpec:
        """The same rules for records that come all at once and in no order, so that none of them is late."""
        return replace(self, before="batches")


def stream_order(events: pa.Table, ties: tuple[str, ...]) -> Ints:
    """The permutation (int64[n]) that sorts events by event time, then by `ties`, ascending, nulls first.

    `ties` are `Plan.tie_columns`, of which source and offset come last. Text is compared by its UTF-8 bytes.
    """
    time = numbers(events, TIME)
    if (time[1:] > time[:-1]).all():
        return np.arange(len(time))
    return sorted_rows({name: array(events, name) for name in (TIME, *ties)})


def _behind(events: pa.Table, frontier_us: int, late_files: Iterable[LateFile]) -> Bools:
    """bool[n]: which events are below the frontier, or below the frontier of their late file."""
    time = numbers(events, TIME)
    limits = {file.name: file.frontier_us for file in late_files}
    if not limits:
        return time < frontier_us
    source = array(events, SOURCE)
    of_source = np.array([limits.get(name, frontier_us) for name in source.dictionary.to_pylist()], np.int64)
    return time < of_source[source.indices.to_numpy()]  # type: ignore[no-any-return]


def _first_time(events: pa.Table) -> int:
    """The time of a frame's first event; `NO_FRONTIER` if it has none.

    If sources send their events in order, frames in the order of these times often need no sorting.
    """
    return int(numbers(events, TIME)[0]) if events.num_rows else NO_FRONTIER


@dataclass(frozen=True)
class Standing:
    """The progress of each source.

    Attributes:
        waited_for: the greatest event time of each source that can hold the frontier back; `NO_FRONTIER` for
            an expected source without records, because its first time is not known.
        idle: the greatest event time of each source that is not waited for; for one without records, the
            least event time of all events.
        unheard: the expected sources without records.
    """

    waited_for: dict[str, int]
    idle: dict[str, int]
    unheard: frozenset[str] = frozenset()

    def holding(self, reached_us: int, most: int) -> list[str]:
        """The names of the slowest sources that have come no further than `reached_us`, at most `most`."""
        behind = [source for source, at in self.waited_for.items() if at <= reached_us]
        slowest = sorted(behind, key=lambda source: (self.waited_for[source], source))[:most]
        return [f"{source} (never heard of)" if source in self.unheard else source for source in slowest]

    def slowest_idle(self, most: int) -> list[str]:
        """The names of the slowest sources that are not waited for, at most `most`."""
        return sorted(self.idle, key=lambda source: (self.idle[source], source))[:most]


@dataclass(frozen=True)
class LateFile:
    """A file with late records: they are behind the frontier that earlier files have set.

    Attributes:
        entry: the file's index in the order of files.
        name: the file, as the source of its events.
        listed: what a task must know to read the file.
        frontier_us: the frontier before the file.
    """

    entry: int
    name: str
    listed: str
    frontier_us: int


@dataclass(frozen=True)
class Advance:
    """The result of a batch.

    Attributes:
        released: the events below the new frontier, in stream order, without repeats; None if there are none.
        late: the late events that the intake has not put aside: below the frontier at the beginning of the
            batch, or below that of their file; None if there are none.
        repeats: the number of events that were dropped as repeats.
        late_files: the files with late events, in order; empty unless earlier files decide which events are
            late.
    """

    released: pa.Table | None
    late: pa.Table | None
    repeats: int = 0
    late_files: tuple[LateFile, ...] = ()


@dataclass
class Order:
    """The running state: the frontier, and the events that wait for it.

    Attributes:
        frontier_us: events below it have been released; it never moves back.
        max_time_us: the greatest event time so far; once the input has ended, that of a tick if it is later.
        pending: the events at or above the frontier.
        sources: the greatest event time of each source with records; empty unless the frontier follows
            sources.
        first_us: the least event time so far.
        recent: the events that later ones can repeat, see `repeats.Kept`; None if there are none.
    """

    frontier_us: int = NO_FRONTIER
    max_time_us: int = NO_FRONTIER
    pending: Pending = field(default_factory=Pending)
    sources: dict[str, int] = field(default_factory=dict)
    first_us: int = UNKNOWN_TIME
    recent: pa.Table | None = None

    def advance(
        self, frames: list[pa.Table], progress: Progress, spec: OrderSpec, ties: tuple[str, ...]
    ) -> Advance:
        """Add a batch of events, move the frontier, and release the events that it has passed.

        Args:
            frames: event tables, in any order.
            progress: how far the sources have come in this batch.
            spec: how the frontier follows the sources.
            ties: the columns that order events of the same time.
        """
        fresh = concat(sorted(frames, key=_first_time)) if frames else None
        begun_us = self.frontier_us
        late_files = tuple(self._follow(progress, spec))
        late = None
        if fresh is not None:
            is_late = _behind(fresh, begun_us, late_files)
            if is_late.any():
                late = chosen(fresh, is_late)
                fresh = chosen(fresh, ~is_late)
        self._move(progress, spec)
        released = self._release(fresh, ties)
        if released is None or not spec.deduplicate_on:
            return Advance(released, late, late_files=late_files)
        kept = drop_repeats(released, self.recent, spec.deduplicate_on, spec.delay_us, self.frontier_us)
        self.recent = kept.recent
        return Advance(kept.events, late, kept.repeats, late_files)

    def _follow(self, progress: Progress, spec: OrderSpec) -> Iterator[LateFile]:
        """Move the frontier from file to file and tick to tick; yield the files with records behind it."""
        parts: list[FileProgress | Tick] = [*progress.files, *progress.ticks]
        for part in sorted(parts, key=lambda part: part.entry):
            if isinstance(part, Tick):
                self.frontier_us = max(self.frontier_us, part.time_us)
                continue
            if part.least_us < self.frontier_us:
                yield LateFile(part.entry, part.name, part.listed, self.frontier_us)
            self._move(Progress(part.max_time_us, False, part.sources, part.least_us), spec)

    def _move(self, progress: Progress, spec: OrderSpec) -> None:
        move_on(self.sources, progress.sources)
        if progress.least_us is not None:
            self.first_us = min(self.first_us, progress.least_us)
        if progress.max_time_us is not None:
            self.max_time_us = max(self.max_time_us, progress.max_time_us)
        if progress.finish:
            if self.frontier_us != UNKNOWN_TIME:  # ticks have moved it
                self.max_time_us = max(self.max_time_us, self.frontier_us)
            self.frontier_us = UNKNOWN_TIME
            return
        reached_us = self.max_time_us
        if spec.by_source:
            reached_us = min(self.standing(spec).waited_for.values(), default=NO_FRONTIER)
        if reached_us > NO_FRONTIER:
            self.frontier_us = max(self.frontier_us, reached_us - spec.delay_us)

    def standing(self, spec: OrderSpec) -> Standing:
        """The progress of each source; empty if the frontier does not follow sources."""
        if not spec.by_source or self.first_us == UNKNOWN_TIME:
            return Standing({}, {})
        heard = set(self.sources)
        if spec.before == "records":
            heard = {name.rpartition(IN)[0] if IN in name else name for name in heard}
        unheard = frozenset(spec.expected_sources) - heard
        times = dict.fromkeys(unheard, self.first_us) | self.sources
        fastest_us = max(times.values(), default=0)
        most_us = spec.idle_after_us
        idle = {name: at for name, at in times.items() if most_us is not None and fastest_us - at > most_us}
        times |= dict.fromkeys(unheard, NO_FRONTIER)
        return Standing({name: at for name, at in times.items() if name not in idle}, idle, unheard)

    def _release(self, fresh: pa.Table | None, ties: tuple[str, ...]) -> pa.Table | None:
        parts = list(self.pending.release(self.frontier_us))
        if fresh is not None:
            ready = numbers(fresh, TIME) < self.frontier_us
            if ready.any():
                parts.append(chosen(fresh, ready))
            if not ready.all():
                self.pending.add(chosen(fresh, ~ready))
        if not parts:
            return None
        events = concat(parts)
        order = stream_order(events, ties)
        if np.array_equal(order, np.arange(len(order))):
            return events
        return events.take(pa.array(order))
