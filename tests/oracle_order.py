"""What becomes of every record, read one by one: the definition of order, lateness and repeats that the core is held to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from spark_pace.core.order import OrderSpec
from spark_pace.core.rule import Rule
from tests.oracle import in_stream_order
from tests.oracle_contexts import Event


@dataclass
class Reading:
    """All that is to be known of an input.

    `frontiers`, `idle` and `slowest` have one entry for each batch: the frontier behind it, the sources left out of it, and those
    that hold it, the slowest first.
    """

    kept: list[Event] = field(default_factory=list)
    late: list[tuple[Event, int]] = field(default_factory=list)
    heartbeats: int = 0
    repeats: list[Event] = field(default_factory=list)
    frontiers: list[int | None] = field(default_factory=list)
    idle: list[set[str]] = field(default_factory=list)
    slowest: list[list[str]] = field(default_factory=list)


def read(
    rule: Rule, batches: Iterable[Sequence[Event]], spec: OrderSpec, source_of: Callable[[Event], str | None], beats: Callable[[Event], bool]
) -> Reading:
    """Read batches of records."""
    reading = Reading()
    heard: list[Event] = []
    on_time: list[Event] = []
    frontier: int | None = None
    for batch in batches:
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
        reached = [max(event.time for event in heard)] if heard and not spec.by_source else [min(awake.values())] if awake else []
        frontier = max([*([] if frontier is None else [frontier]), *(time - spec.delay_us for time in reached)], default=None)
        reading.frontiers.append(frontier)
        reading.idle.append(set(standing) - set(awake))
        holding = [source for source, time in awake.items() if frontier is not None and time - spec.delay_us <= frontier]
        silent = set(standing) - set(map(source_of, heard))
        slowest = sorted(holding, key=lambda source: (awake[source], source))
        reading.slowest.append([source + " (never heard of)" * (source in silent) for source in slowest])
    for event in in_stream_order(rule, on_time):
        repeated = any(same(event, kept, spec) and event.time - kept.time <= spec.delay_us for kept in reading.kept)
        (reading.repeats if spec.deduplicate_on and repeated else reading.kept).append(event)
    return reading


def stand(heard: list[Event], spec: OrderSpec, source_of: Callable[[Event], str | None]) -> dict[str, int]:
    """The greatest time of every source that is expected or was heard of."""
    if not spec.by_source or not heard:
        return {}
    names = {*spec.expected_sources, *map(source_of, heard)} - {None}
    first = min(event.time for event in heard)
    return {name: max((event.time for event in heard if source_of(event) == name), default=first) for name in names if name is not None}


def is_idle(time: int, standing: dict[str, int], spec: OrderSpec) -> bool:
    return spec.idle_after_us is not None and max(standing.values()) - time > spec.idle_after_us


def same(event: Event, other: Event, spec: OrderSpec) -> bool:
    return all(event.row[name] == other.row[name] for name in spec.deduplicate_on)
