"""What a batch costs while many events of one key wait: rules without `partition_by`, in each context.

Every batch brings 10,000 events, of which some can end a match. Before the timed batches many come that
cannot, and wait within a day. Timed in the core, from a batch's records to its numbered matches, without
Spark and without the snapshot of the state: processor time, the median of several batches. The matches of all
batches are compared with those of one batch of all events.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from benchmarks.core_runs import plan_of, records, timed_batches
from benchmarks.rows import Row, Sizes

BATCH = 10_000
TIMED = 5
ENDS = (10, 1000)
CARDS = 1000
EVERY_US = 20_000
SCHEMA = "time TIMESTAMP, type STRING, x DOUBLE, card BIGINT"
PAIR = "{sequence: [{a: type = 'a'}, {b: type = 'b'}]}"
TRIPLE = "{sequence: [{a: type = 'a'}, {b: type = 'b'}, {c: type = 'c'}]}"
PATTERNS = {
    "a;b": (PAIR, ""),
    "a;b;c": (TRIPLE, ""),
    "a;b rare": (PAIR, "b.x > a.x + 0.9999"),
    "a;b often": (PAIR, "b.x > a.x"),
    "a;b;c equal": (TRIPLE, "a.card = b.card"),
    "a;b;c rare": (TRIPLE, "c.x > a.x + 0.999999"),
}
CONTEXTS = [
    *(f"{selection}, zero" for selection in ("each", "latest", "next", "earliest")),
    *(f"{selection}, selected" for selection in ("each", "latest", "next", "all", "earliest")),
]
# every candidate with this condition is a match: so many that no batch could bring them
TOO_MANY = {(name, f"each, {used}") for name in ("a;b;c", "a;b;c equal") for used in ("zero", "selected")}


def rules() -> dict[str, str]:
    """The text of each rule, by name."""
    found = {}
    for name, (pattern, where) in PATTERNS.items():
        condition = f", where: {where}" if where else ""
        for context in CONTEXTS:
            if (name, context) in TOO_MANY:
                continue
            merges = ("selection", "detection") if context.endswith("zero") else ("selection",)
            for merge in merges:
                keys = f"pattern: {pattern}{condition}, within: 1 d, merge: {merge}, context: '{context}'"
                found[f"{name} / {context} / {merge}"] = f"{{name: waits, {keys}}}"
    return found


def measure(sizes: Sizes) -> Iterator[Row]:
    """Each rule with each number of events that wait; the floor is the first number."""
    for name, rule in rules().items():
        plan = plan_of(SCHEMA, "event_time: time", [rule])
        steps = 3 if ";c" in name else 2
        for ends in ENDS:
            base = None
            for carried in sizes.carried:
                seconds, _ = timed_batches(plan, batches_of(carried, (steps, ends)))
                taken = statistics.median(seconds[-TIMED:])
                base = base or taken
                case = f"{name}, {ends} ends; {carried:,} wait"
                yield Row("one_key", case, 1000 * taken, "ms a batch", taken / base, None, "one batch of all")


def batches_of(carried: int, kinds: tuple[int, int]) -> Iterator[pa.Table]:
    """Batches that bring what waits, then those that are timed."""
    random = np.random.default_rng(1)
    for start in range(0, carried, 10 * BATCH):
        yield events(start, min(10 * BATCH, carried - start), (kinds[0], 0), random)
    for turn in range(TIMED):
        yield events(carried + BATCH * turn, BATCH, kinds, random)


def events(first: int, count: int, kinds: tuple[int, int], random: np.random.Generator) -> pa.Table:
    """Events, 50 a second: of all types but the last one, and some of the last one of `kinds[0]` types."""
    steps, ends = kinds
    kind = random.integers(0, steps - 1, count)
    kind[random.integers(0, count, ends)] = steps - 1
    return records(
        np.arange(first, first + count) * EVERY_US,
        first,
        type=np.array(["a", "b", "c"])[kind],
        x=random.random(count),
        card=random.integers(0, CARDS, count),
    )
