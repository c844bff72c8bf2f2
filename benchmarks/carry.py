"""What a batch costs while many events wait: 10,000 payments, and more and more that wait for a day.

A payment below 5 waits for one above 900 on the same card. Timed in the core, from a batch's records to its
numbered matches, without Spark and without the snapshot of the state; the median of several batches, some of
whose payments are large. The matches of all batches are compared with those of one batch of all events.

``python -m benchmarks.carry [CARRIED ...]``
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa

from spark_pace.core.local import LocalRun, run
from spark_pace.core.order.order import OrderSpec
from spark_pace.core.plan.plan import Plan, build_plan
from spark_pace.rules import load_rules

BATCH = 10_000
TIMED = 9
LARGE = 10  # payments above 900 in a timed batch
CARDS = 100_000
CARRIED = (0, 100_000, 1_000_000, 2_000_000)
EVENTS = 'events: {schema: "time TIMESTAMP, value DOUBLE, card STRING", event_time: time}\n'
PATTERN = "pattern: {sequence: [{a: value < 5}, {b: value > 900}]}, within: 1 d"
RULES = {
    "partition_by: [card]": f"{{name: waits, partition_by: [card], {PATTERN}}}",
    "where: a.card = b.card": f"{{name: waits, {PATTERN}, where: a.card = b.card}}",
}


def main() -> int:
    """Measure each rule with each number of events that wait."""
    carried = [int(text) for text in sys.argv[1:]] or list(CARRIED)
    measure(*next(iter(RULES.items())), [0])  # to warm up
    results = [measure(name, rule, carried) for name, rule in RULES.items()]
    for result in results:
        print(f"{result['rule']}: " + ", ".join(told(row, result["rows"][0]) for row in result["rows"]))
    print(json.dumps(results))
    return 0


def told(row: dict[str, Any], base: dict[str, Any]) -> str:
    """One figure as text."""
    return f"{row['carried']:,} wait {row['seconds']:.3f} s (x {row['seconds'] / base['seconds']:.2f})"


def measure(name: str, rule: str, carried: list[int]) -> dict[str, Any]:
    """The seconds of a batch, for each number of events that wait when it comes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rules.yaml"
        path.write_text(f"{EVENTS}rules:\n  - {rule}\n", encoding="utf-8")
        plan = build_plan(load_rules(path), order=OrderSpec())
    return {"rule": name, "batch": BATCH, "rows": [timed(plan, count) for count in carried]}


def timed(plan: Plan, carried: int) -> dict[str, Any]:
    """Let events wait, then time batches.

    Raises:
        SystemExit: the matches are not those of one batch.
    """
    random = np.random.default_rng(1)
    batches = [payments(start, 10 * BATCH, 0, random) for start in range(0, carried, 10 * BATCH)]
    batches += [payments(carried + BATCH * turn, BATCH, LARGE, random) for turn in range(TIMED)]
    local = LocalRun(plan)
    seconds, matches = [], []
    for batch in batches:
        start = perf_counter()
        matches.append(local.step(batch).matches)
        seconds.append(perf_counter() - start)
    matches.append(local.step(None, finish=True).matches)
    found = pa.concat_tables(matches).combine_chunks()
    if not found.equals(run(plan, [pa.concat_tables(batches).combine_chunks()]).matches.combine_chunks()):
        raise SystemExit(f"{carried:,} waiting payments — must give the matches of one batch; got others")
    return {"carried": carried, "seconds": statistics.median(seconds[-TIMED:]), "matches": found.num_rows}


def payments(first: int, count: int, large: int, random: np.random.Generator) -> pa.Table:
    """Payments, 500 a second, on random cards."""
    numbers = np.arange(first, first + count)
    time = pa.array(numbers * 2000)
    value = random.random(count) * 4
    value[random.integers(0, count, large)] = 1000
    return pa.table({
        "@time": time,
        "@source": pa.DictionaryArray.from_arrays(np.zeros(count, np.int32), ["payments"]),
        "@offset": numbers,
        "time": time.view(pa.timestamp("us")),
        "value": value,
        "card": [f"card{number:07d}" for number in random.integers(0, CARDS, count)],
    })  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
