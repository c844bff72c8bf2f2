"""What a batch costs while many events wait: 10,000 payments, and more and more that wait for a day.

A payment below 5 waits for one above 900 on the same card. Timed in the core, from a batch's records to its
numbered matches, without Spark and without the snapshot of the state; the median of several batches, some of
whose payments are large. The matches of all batches are compared with those of one batch of all events.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from benchmarks.core_runs import plan_of, records, timed_batches
from benchmarks.rows import Row, Sizes

BATCH = 10_000
TIMED = 9
LARGE = 10  # payments above 900 in a timed batch
CARDS = 100_000
SCHEMA = "time TIMESTAMP, value DOUBLE, card STRING"
PATTERN = "pattern: {sequence: [{a: value < 5}, {b: value > 900}]}, within: 1 d"
RULES = {
    "partition_by: [card]": f"{{name: waits, partition_by: [card], {PATTERN}}}",
    "where: a.card = b.card": f"{{name: waits, {PATTERN}, where: a.card = b.card}}",
}


def measure(sizes: Sizes) -> Iterator[Row]:
    """Each rule with each number of events that wait; the floor is the first number."""
    for name, rule in RULES.items():
        plan = plan_of(SCHEMA, "event_time: time", [rule])
        timed_batches(plan, batches_of(0))  # to warm up
        base = None
        for carried in sizes.carried:
            seconds, _ = timed_batches(plan, batches_of(carried))
            taken = statistics.median(seconds[-TIMED:])
            base = base or taken
            case = f"{name}; {carried:,} wait"
            yield Row(
                "carry", case, 1000 * taken, "ms a batch", taken / base, None, "one batch of all events"
            )


def batches_of(carried: int) -> Iterator[pa.Table]:
    """Batches that bring what waits, then those that are timed."""
    random = np.random.default_rng(1)
    for start in range(0, carried, 10 * BATCH):
        yield payments(start, min(10 * BATCH, carried - start), 0, random)
    for turn in range(TIMED):
        yield payments(carried + BATCH * turn, BATCH, LARGE, random)


def payments(first: int, count: int, large: int, random: np.random.Generator) -> pa.Table:
    """Payments, 500 a second, on random cards."""
    value = random.random(count) * 4
    value[random.integers(0, count, large)] = 1000
    cards = [f"card{number:07d}" for number in random.integers(0, CARDS, count)]
    return records(np.arange(first, first + count) * 2000, first, value=value, card=cards)
