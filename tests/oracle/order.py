"""What becomes of every record, read one by one: what order, lateness and repeats mean for the core."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from spark_pace.core.order import OrderSpec, Tick
from spark_pace.core.plan.rule import Rule
from tests.oracle.contexts import Event
from tests.oracle.rules_stream import in_stream_order


@dataclass
class Reading:
    """All that is to be known of an input.

    `frontiers`, `idle` and `slowest` have one entry for each batch: the frontier behind it, the sources that
    it leaves out, and the sources that hold it back, the slowest first.
    """

    kept: list[Event] = field(default_factory=list)
    late: list[tuple[Event, int]] = field(default_factory=list)
    heartbeats: int = 0
    repeats: list[Event] = field(default_factory=list)
    frontiers: list[int | None] = field(default_factory=list)
    idle: list[set[str]] = field(default_factory=list)
    slowest: list[list[str]] = field(default_factory=list)


def read(
    rule: Rule,
    batches: Iterable[Sequence[Event] | Tick],
    spec: OrderSpec,
    source_of: Callable[[Event], str | None],
    beats: Callable[[Event], bool],
) -> Reading:
    """Read batches of records, and ticks of a clock among them."""
    reading = Reading()
    heard: list[Event] = []
    on_time: list[Event] = []
    frontier: int | None = None
    for batch in batches:
        if isinstance(batch, Tick):
            frontier = batch.time_us if frontier is None else max(frontier, batch.time_us)
            continue
        for event in batch:
            if beats(event):
                reading.heartbeats += 1
            elif frontier is not None and event.time < frontier:
                reading.late.append((event, frontier - event.time))
            else:
                on_time.append(event)
        heard += batch
        standing = stand(heard, spec, source_of)
        awake = {source: time for source, time in standing.items() if not is_idle(time, standing, spec)}
        silent = set(standing) - set(map(source_of, heard))
        if not silent & set(awake):  # nobody knows where a source begins that was never heard of
            frontier = frontier_after(frontier, heard, awake, spec)
        reading.frontiers.append(frontier)
        reading.idle.append(set(standing) - set(awake))
        slowest = holding(awake, silent, None if frontier is None else frontier + spec.delay_us)
        reading.slowest.append([source + " (never heard of)" * (source in silent) for source in slowest])
    for event in in_stream_order(rule, on_time):
        near = [kept for kept in reading.kept if event.time - kept.time <= spec.delay_us]
        repeated = any(same(event, kept, spec) for kept in near)
        (reading.repeats if spec.deduplicate_on and repeated else reading.kept).append(event)
    return reading


def holding(awake: dict[str, int], silent: set[str], reached: int | None) -> list[str]:
    """The sources that hold the frontier back, the slowest first: those that are silent before all others."""
    found = [
        source
        for source, time in awake.items()
        if source in silent or (reached is not None and time <= reached)
    ]
    return sorted(found, key=lambda source: (source not in silent, awake[source], source))


def late_by_record(
    partitions: Iterable[Sequence[Event]],
    spec: OrderSpec,
    source_of: Callable[[Event], str | None],
    beats: Callable[[Event], bool],
) -> Reading:
    """Read partitions, where an event is late by the earlier records of its source in its own partition."""
    reading = Reading()
    for partition in partitions:
        for place, event in enumerate(partition):
            earlier = [one.time for one in partition[:place] if source_of(one) == source_of(event)]
            behind = max(earlier, default=event.time) - spec.delay_us - event.time
            if beats(event):
                reading.heartbeats += 1
            elif behind > 0:
                reading.late.append((event, behind))
            else:
                reading.kept.append(event)
    return reading


def frontier_after(
    before: int | None, heard: list[Event], awake: dict[str, int], spec: OrderSpec
) -> int | None:
    """The frontier: behind the slowest source that is awake, or the greatest time. It never goes back."""
    times = awake.values() if spec.by_source else [event.time for event in heard]
    reached = (min if spec.by_source else max)(times, default=None)
    known = [
        time for time in (before, None if reached is None else reached - spec.delay_us) if time is not None
    ]
    return max(known, default=None)


def stand(heard: list[Event], spec: OrderSpec, source_of: Callable[[Event], str | None]) -> dict[str, int]:
    """The greatest time of every source that is expected or was heard of."""
    if not spec.by_source or not heard:
        return {}
    names = {*spec.expected_sources, *map(source_of, heard)} - {None}
    first = min(event.time for event in heard)
    return {
        name: max((event.time for event in heard if source_of(event) == name), default=first)
        for name in names
        if name is not None
    }


def is_idle(time: int, standing: dict[str, int], spec: OrderSpec) -> bool:
    return spec.idle_after_us is not None and max(standing.values()) - time > spec.idle_after_us


def same(event: Event, other: Event, spec: OrderSpec) -> bool:
    return all(event.row[name] == other.row[name] for name in spec.deduplicate_on)
