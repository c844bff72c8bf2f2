"""The second step: holds events back until the frontier has passed them, and puts them in stream order.

Events that wait are a few runs, each sorted by event time. How far the sources have come, tasks find out from
their records. Repeats are dropped: events that equal, in some columns, one that was kept shortly before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from spark_pace import ways
from spark_pace.core.ranks import distinct, reached, sorted_rows
from spark_pace.core.tables import (
    HOME,
    NO_FRONTIER,
    SOURCE,
    TIME,
    UNKNOWN_TIME,
    Bools,
    Ints,
    array,
    chosen,
    compacted,
    concat,
    numbers,
)


@dataclass
class Run:
    """Events sorted by event time.

    Attributes:
        events: the events; they never change.
        start: the rows before this one have been released.
        name: the name under which `events` are stored; None if they are not.
    """

    events: pa.Table
    start: int = 0
    name: str | None = None

    @property
    def rows(self) -> int:
        """The number of waiting events."""
        return int(self.events.num_rows) - self.start

    def waiting(self) -> pa.Table:
        """The waiting events."""
        return self.events.slice(self.start)

    def release(self, frontier_us: int) -> pa.Table:
        """Release the events below the frontier, and return them."""
        begin, self.start = self.start, int(np.searchsorted(numbers(self.events, TIME), frontier_us))
        return compacted(self.events.slice(begin, self.start - begin))


def run_of(events: pa.Table) -> Run:
    """Make a run of events, which may be in any order."""
    time = numbers(events, TIME)
    if (time[1:] >= time[:-1]).all():
        return Run(compacted(events))
    return Run(compacted(events.take(pa.array(np.argsort(time, kind="stable")))))


@dataclass
class Pending:
    """All waiting events, as runs, the oldest first."""

    runs: list[Run] = field(default_factory=list)

    @property
    def counted(self) -> int:
        """The number of waiting events that this slot counts; an event may wait in several slots."""
        return sum(int(numbers(run.waiting(), HOME).sum()) for run in self.runs)

    def release(self, frontier_us: int) -> Iterator[pa.Table]:
        """Release the events below the frontier, and yield them in pieces."""
        for run in self.runs:
            if (ready := run.release(frontier_us)).num_rows:
                yield ready
        self.runs = [run for run in self.runs if run.rows]

    def add(self, events: pa.Table) -> None:
        """Add waiting events, in any order."""
        self.runs.append(run_of(events))
        runs = self.runs
        for at in range(len(runs) - 2, -1, -1):
            if ways.is_merged(runs[at].rows, runs[at + 1].rows):
                runs[at : at + 2] = [run_of(concat([runs[at].waiting(), runs[at + 1].waiting()]))]


@dataclass(frozen=True)
class FileProgress:
    """The progress of the sources in one file that has records.

    Attributes:
        entry: the file's index in the order of files.
        name: the file, which is the source of its events (``@source``).
        listed: what a task must know to read the file.
        progress: that of its records.
    """

    entry: int
    name: str
    listed: str
    progress: Progress


@dataclass(frozen=True)
class Tick:
    """A reading of the clock that is part of the input: what is earlier and comes after it is late.

    Attributes:
        time_us: the time before which nothing more is waited for.
        entry: its index in the order of files; 0 if files do not decide which events are late.
    """

    time_us: int
    entry: int = 0


@dataclass(frozen=True)
class Progress:
    """The progress of the sources by all good records of a batch; the same for every slot.

    Attributes:
        max_time_us: the greatest event time; None if the batch has no record.
        finish: True if the input ends with this batch.
        sources: the greatest event time of each source; empty unless the frontier follows sources.
        least_us: the least event time; None if the batch has no record.
        files: the progress of each file, in any order; empty unless earlier files decide which events are
            late.
        ticks: the readings of the clock, in any order.
    """

    max_time_us: int | None = None
    finish: bool = False
    sources: dict[str, int] = field(default_factory=dict)
    least_us: int | None = None
    files: tuple[FileProgress, ...] = ()
    ticks: tuple[Tick, ...] = ()

    @staticmethod
    def of(fields: Mapping[str, Any]) -> Progress:
        """Make the progress from the fields that `dataclasses.asdict` gives."""
        files = tuple(
            FileProgress(**{**file, "progress": Progress.of(file["progress"])}) for file in fields["files"]
        )
        ticks = tuple(Tick(**tick) for tick in fields["ticks"])
        return Progress(**{**fields, "files": files, "ticks": ticks})


def together(parts: Iterable[Progress]) -> Progress:
    """The progress of a batch, from the progress of its tasks."""
    parts = list(parts)
    sources: dict[str, int] = {}
    for part in parts:
        move_on(sources, part.sources)
    greatest = max((part.max_time_us for part in parts if part.max_time_us is not None), default=None)
    least = min((part.least_us for part in parts if part.least_us is not None), default=None)
    files = tuple(file for part in parts for file in part.files)
    ticks = tuple(tick for part in parts for tick in part.ticks)
    return Progress(greatest, any(part.finish for part in parts), sources, least, files, ticks)


def move_on(sources: dict[str, int], reached: Mapping[str, int]) -> None:
    """Raise the time of each source in `sources` to the time in `reached`."""
    for source, time_us in reached.items():
        sources[source] = max(time_us, sources.get(source, time_us))


@dataclass(frozen=True)
class Kept:
    """Released events after repeats were dropped.

    Attributes:
        events: the events that are no repeats.
        recent: the compared columns and times of kept events that later events can still repeat; None if
            there are none.
        repeats: the number of events that were dropped.
    """

    events: pa.Table
    recent: pa.Table | None
    repeats: int


def drop_repeats(
    events: pa.Table, recent: pa.Table | None, columns: tuple[str, ...], delay_us: int, frontier_us: int
) -> Kept:
    """Drop each event for which an equal one was kept at most `delay_us` before it.

    Args:
        events: the newly released events, in stream order.
        recent: `Kept.recent` of the release before; None at first.
        columns: the names of the attributes that are compared; null equals null.
        delay_us: a length of event time.
        frontier_us: no later event is before it.
    """
    keys = events.select([*columns, TIME])
    before = 0 if recent is None else recent.num_rows
    known = keys if recent is None else concat([recent, keys])
    _, code = distinct([array(known, name) for name in columns])
    time = numbers(known, TIME)
    kept = first_ones(code, time, delay_us)
    still = chosen(known, kept & (time >= frontier_us - delay_us))
    return Kept(chosen(events, kept[before:]), still if still.num_rows else None, int((~kept).sum()))


def first_ones(code: Ints, time: Ints, delay_us: int) -> Bools:
    """The rows to keep: the first of each code, and each that is more than `delay_us` after the last kept.

    Each row leads to the first later row of its code that is more than `delay_us` after it. The first row of
    each code is kept, and every row that it leads to, directly or not.

    Args:
        code: int64[n], equal for rows that may repeat each other.
        time: int64[n], ascending.
        delay_us: a distance in event time.

    Returns:
        bool[n].
    """
    order = np.argsort(code, kind="stable")
    ordered, at = code[order], time[order]
    times = np.unique(at)
    base = ordered * (len(times) + 1)
    place = base + np.searchsorted(times, at)
    beyond = np.searchsorted(place, base + np.searchsorted(times, at + delay_us, side="right"))
    same_code = np.append(ordered, -1)[beyond] == ordered
    first = np.append(True, ordered[1:] != ordered[:-1])[: len(code)]
    kept = np.zeros(len(code), np.bool_)
    kept[order[reached(np.where(same_code, beyond, len(code)), first)]] = True
    return kept


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
        recent: the events that later ones can repeat, see `Kept`; None if there are none.
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
            assert part.progress.least_us is not None
            if part.progress.least_us < self.frontier_us:
                yield LateFile(part.entry, part.name, part.listed, self.frontier_us)
            self._move(part.progress, spec)

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
