"""What a batch costs while many events of one key wait: rules without `partition_by`, in each context.

Every batch brings 10,000 events, of which some can end a match. Before the timed batches many come that
cannot, and wait within a day. Timed in the core, from a batch's records to its numbered matches, without
Spark and without the snapshot of the state: processor time, the median of several batches. The matches of all
batches are compared with those of one batch of all events.

``python -m benchmarks.one_key [--carried N ...] [--ends N ...] [--rule TEXT ...] [--unchecked]``
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pyarrow as pa

from spark_pace.core.local import LocalRun, run
from spark_pace.core.order.order import OrderSpec
from spark_pace.core.plan.plan import Plan, build_plan
from spark_pace.rules import load_rules

BATCH = 10_000
TIMED = 5
CARRIED = (0, 100_000, 1_000_000, 2_000_000)
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


def main() -> int:
    """Measure each rule with each number of events that wait."""
    parser = argparse.ArgumentParser(description="What a batch costs while events of one key wait.")
    parser.add_argument("--carried", type=int, nargs="+", default=CARRIED)
    parser.add_argument("--ends", type=int, nargs="+", default=ENDS)
    parser.add_argument("--rule", nargs="+", default=[""])
    parser.add_argument("--unchecked", action="store_true")
    given = parser.parse_args()
    chosen = {name: rule for name, rule in rules().items() if any(part in name for part in given.rule)}
    timed(plan_of(next(iter(chosen.values()))), 0, 10, checked=False)  # to warm up
    results = []
    for name, rule in chosen.items():
        plan = plan_of(rule)
        for ends in given.ends:
            rows = [timed(plan, count, ends, checked=not given.unchecked) for count in given.carried]
            results.append({"rule": name, "ends": ends, "rows": rows})
            told = "  ".join("{ms:>6.0f} ({carry:>9,}, {matches:>6,})".format(**row) for row in rows)
            print(f"{name:40} {ends:>5} {told}", flush=True)
    path = Path(__file__).parents[1] / "out" / "one_key.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    return 0


def plan_of(rule: str) -> Plan:
    """The plan of one rule."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rules.yaml"
        events = f'events: {{schema: "{SCHEMA}", event_time: time}}'
        path.write_text(f"{events}\nrules:\n  - {rule}\n", encoding="utf-8")
        return build_plan(load_rules(path), order=OrderSpec())


def timed(plan: Plan, carried: int, ends: int, *, checked: bool) -> dict[str, Any]:
    """Let events wait, then time batches.

    Raises:
        SystemExit: the matches are not those of one batch.
    """
    random = np.random.default_rng(1)
    pattern = plan.rules[0].rule.pattern
    assert pattern is not None
    steps = len(pattern.components)
    batches = [events(start, 10 * BATCH, (steps, 0), random) for start in range(0, carried, 10 * BATCH)]
    batches += [events(carried + BATCH * turn, BATCH, (steps, ends), random) for turn in range(TIMED)]
    local = LocalRun(plan)
    seconds, matches = [], []
    for batch in batches:
        start = process_time()
        step = local.step(batch)
        seconds.append(process_time() - start)
        matches.append(step.matches)
    found = sum(table.num_rows for table in matches)
    carry = step.stats["carry"]
    if checked:
        matches.append(local.step(None, finish=True).matches)
        whole = run(plan, [pa.concat_tables(batches).combine_chunks()]).matches
        if not pa.concat_tables(matches).combine_chunks().equals(whole.combine_chunks()):
            raise SystemExit(f"{carried:,} events that wait — must give the matches of one batch; got others")
    ms = 1000 * statistics.median(seconds[-TIMED:])
    return {"carried": carried, "ms": round(ms, 1), "carry": carry, "matches": found}


def events(first: int, count: int, kinds: tuple[int, int], random: np.random.Generator) -> pa.Table:
    """Events, 50 a second: of all types but the last one, and some of the last one of `kinds[0]` types."""
    steps, ends = kinds
    numbers = np.arange(first, first + count)
    kind = random.integers(0, steps - 1, count)
    kind[random.integers(0, count, ends)] = steps - 1
    time = pa.array(numbers * EVERY_US)
    return pa.table({
        "@time": time,
        "@source": pa.DictionaryArray.from_arrays(np.zeros(count, np.int32), ["events"]),
        "@offset": numbers,
        "time": time.view(pa.timestamp("us")),
        "type": np.array(["a", "b", "c"])[kind],
        "x": random.random(count),
        "card": random.integers(0, CARDS, count),
    })  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
