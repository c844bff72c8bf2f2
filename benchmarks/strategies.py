"""The strategies of *earliest, selected* side by side, on one stream in memory: their kernels alone.

Each is run once, to load and compile, then timed in turns; the matches of all are compared first. The figures
are processor time, the least of several rounds, and events of the stream a second.

Then the merger filter as its source has it, with operator instances that know nothing of what is used up: for
one lane and for two, the processor time until the last match is known, if the lanes share the making of all
candidates evenly, and one merger takes them over and filters them.

Sources: Siddam 2015, sections 5.4 (merger filter) and 6.2 (production sets); queues: the semantics of this
project, section 4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from time import process_time

import numpy as np
import pyarrow as pa

from benchmarks.rows import Row, Sizes, processor, require
from spark_pace.core.expr import Literal
from spark_pace.core.match.candidates import Ranges, candidates
from spark_pace.core.match.compiled import sets
from spark_pace.core.match.contexts.earliest_selected import earliest_selected
from spark_pace.core.match.search.search import Search
from spark_pace.core.match.stream import Stream, window_start
from spark_pace.core.plan.rule import Component, Context, Pattern, Strategy, Within
from spark_pace.core.tables import MASK, SEQ, TIME, Ints

TYPES = 10
ROUNDS = 5
STRATEGIES: tuple[Strategy | None, ...] = (None, "queues", "production_sets", "merger_filter")
CASES = (
    (2, False, None),
    (2, True, None),
    (4, False, None),
    (4, True, None),
    (2, False, 100),
    (4, False, 100),
)


def measure(sizes: Sizes) -> Iterator[Row]:
    """Each case with all its strategies.

    Raises:
        SystemExit: two strategies disagree.
    """
    events = sizes.kernel_events
    for steps, overlapping, within in CASES:
        stream = stream_of(events, steps, overlapping=overlapping)
        kernels = {how: kernel(stream, steps, within, how) for how in strategies(steps, within)}
        found = {strategy: run() for strategy, run in kernels.items()}
        case = f"{steps} components{', overlapping' * overlapping}{f', within {within}' if within else ''}"
        agree = all(np.array_equal(found[None], other) for other in found.values())
        require(agree, f"{case} — the strategies must agree; they do not")
        seconds: dict[str, float] = {}
        for _ in range(ROUNDS):
            for strategy, run in kernels.items():
                name: str = strategy or "default"
                seconds[name] = min(seconds.get(name, np.inf), processor(run))
        if within is not None:
            making, merging = merger_filter_by_parts(stream, steps, within, found[None])
            seconds |= {"filter, 1 lane": making + merging, "filter, 2 lanes": making / 2 + merging}
        for name, least in seconds.items():
            ratio = seconds["default"] / least
            yield Row("strategies", f"{case}; {name}", events / least, "events/s", ratio, None, "each other")


def merger_filter_by_parts(stream: Stream, steps: int, within: int, expected: Ints) -> tuple[float, float]:
    """Processor seconds of the making of all candidates, and of taking them over and filtering them.

    Raises:
        ValueError: the matches are not those that are expected.
    """
    search = Search(stream, pattern_of(steps, within)).rotated()
    terminators, used = search.members[0], np.zeros(stream.rows, np.bool_)
    after = window_start(stream, terminators, search.pattern.within) - 1
    sets.first_unused(np.zeros((0, steps), np.int64), used)  # loads it
    taken, clock = [], [process_time()]
    for piece in candidates(search, Ranges(terminators, after, terminators)):
        clock.append(process_time())
        arrived = np.frombuffer(piece.astype(np.int32).tobytes(), np.int32).reshape(-1, steps)
        taken.append(sets.first_unused(arrived.astype(np.int64), used))
        clock.append(process_time())
    seconds = np.diff(clock)
    if not np.array_equal(np.roll(np.concatenate(taken), -1, axis=1), expected):
        raise ValueError("the merger filter must find the matches; it does not")
    return float(seconds[::2].sum()), float(seconds[1::2].sum())


def strategies(steps: int, within: int | None) -> list[Strategy | None]:
    """Those that are exact; the merger filter makes all candidates, so it needs a window."""
    if within is None:
        return [None, "queues", "production_sets"]
    return list(STRATEGIES) if steps == 2 else [None, "merger_filter"]


def kernel(stream: Stream, steps: int, within: int | None, strategy: Strategy | None) -> Callable[[], Ints]:
    """What is timed: from the masks to the rows of the matches."""
    pattern = replace(pattern_of(steps, within), strategy=strategy)

    def run() -> Ints:
        found = earliest_selected(stream, pattern, Search(stream, pattern))
        return found.members.reshape(-1, steps)

    return run


def pattern_of(steps: int, within: int | None) -> Pattern:
    """A sequence without conditions."""
    components = tuple(Component(f"c{k}", Literal(True, "BOOLEAN")) for k in range(steps))
    window = None if within is None else Within(time_us=within)
    return Pattern(components, (), window, Context("earliest", "selected"))


def stream_of(events: int, steps: int, *, overlapping: bool) -> Stream:
    """The events that match a component; of `events` events, one a microsecond, each of one or two types."""
    generator = np.random.default_rng(1)
    mask = np.uint16(1) << generator.integers(0, TYPES, events).astype(np.uint16)
    if overlapping:
        mask |= np.uint16(1) << generator.integers(0, TYPES, events).astype(np.uint16)
    mask &= np.uint16((1 << steps) - 1)
    kept = np.flatnonzero(mask)
    columns = {TIME: pa.array(kept), SEQ: pa.array(np.arange(len(kept))), MASK: pa.array(mask[kept])}
    return Stream(pa.table(columns), np.zeros(1, np.int64))
