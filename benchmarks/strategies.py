"""The strategies of *earliest, selected* side by side, on one stream in memory: their kernels alone.

Each is run once, to load and compile, then timed in turns; the matches of all are compared first. The figures
are processor time, the least of several rounds, and events of the stream a second.

    python -m benchmarks.strategies [--events 2000000]

Sources: Siddam 2015, sections 5.4 (merger filter) and 6.2 (production sets); queues: the semantics of this
project, section 4.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import replace
from time import process_time

import numpy as np
import pyarrow as pa

from spark_pace.core.columns import MASK, SEQ, TIME, Ints
from spark_pace.core.expr import Literal
from spark_pace.core.match.contexts.earliest_selected import earliest_selected
from spark_pace.core.match.search.search import Search
from spark_pace.core.match.stream import Stream
from spark_pace.core.plan.rule import Component, Context, Pattern, Strategy, Within

EVENTS = 2_000_000
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

COLUMNS = "{:<11}{:<12}{:<8}{:<17}{:>9}{:>9}{:>12}"


def main() -> int:
    """Run all; 1 if two strategies disagree."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=EVENTS)
    events = parser.parse_args().events
    print(
        COLUMNS.format("components", "overlapping", "within", "strategy", "matches", "seconds", "M events/s")
    )
    for steps, overlapping, within in CASES:
        stream = stream_of(events, steps, overlapping=overlapping)
        kernels = {
            strategy: kernel(stream, steps, within, strategy) for strategy in strategies(steps, within)
        }
        found = {strategy: run() for strategy, run in kernels.items()}
        if any(not np.array_equal(found[None], other) for other in found.values()):
            print(f"{steps} components — the strategies must agree; they do not", file=sys.stderr)
            return 1
        times: dict[Strategy | None, list[float]] = {strategy: [] for strategy in kernels}
        for _ in range(ROUNDS):
            for strategy, run in kernels.items():
                start = process_time()
                run()
                times[strategy].append(process_time() - start)
        for strategy, seconds in times.items():
            shown = (steps, "yes" if overlapping else "no", within or "-", strategy or "default")
            least = min(seconds)
            figures = (len(found[strategy]), f"{least:.3f}", f"{events / least / 1e6:.1f}")
            print(COLUMNS.format(*shown, *figures))
    return 0


def strategies(steps: int, within: int | None) -> list[Strategy | None]:
    """Those that are exact; the merger filter makes all candidates, so it needs a window."""
    if within is None:
        return [None, "queues", "production_sets"]
    return list(STRATEGIES) if steps == 2 else [None, "merger_filter"]


def kernel(stream: Stream, steps: int, within: int | None, strategy: Strategy | None) -> Callable[[], Ints]:
    """What is timed: from the masks to the rows of the matches."""
    components = tuple(Component(f"c{k}", Literal(True, "BOOLEAN")) for k in range(steps))
    window = None if within is None else Within(time_us=within)
    pattern = replace(Pattern(components, (), window, Context("earliest", "selected")), strategy=strategy)

    def run() -> Ints:
        found = earliest_selected(stream, pattern, Search(stream, pattern))
        return found.members.reshape(-1, steps)

    return run


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


if __name__ == "__main__":
    sys.exit(main())
