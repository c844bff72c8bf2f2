"""What matches cost on their way from an operator to the Delta table: 500,000, of two events each.

Timed in processor seconds of one process, without Spark, the least of several turns: finding the matches and
gathering their columns; the result as bytes, and read from them; putting it in order and numbering it;
appending it to the table. Before any figure is printed, what the table has is compared with what the core
finds when it hands results over as they are.

``python -m benchmarks.matches [MATCHES]``
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
import pyarrow as pa

from spark_pace import read_table
from spark_pace.core.columns import NO_FRONTIER
from spark_pace.core.intake.pack import pack
from spark_pace.core.intake.sift import sift
from spark_pace.core.local import run
from spark_pace.core.merger import matches_schema, merge
from spark_pace.core.operate.operator import work_off
from spark_pace.core.operate.result import decode_result
from spark_pace.core.order.order import OrderSpec
from spark_pace.core.plan.plan import Plan, build_plan
from spark_pace.core.split.lanes import Lane
from spark_pace.core.split.slot_splitter import SlotSplitter
from spark_pace.io.delta import DeltaTables
from spark_pace.rules import load_rules

MATCHES = 500_000
TURNS = 5
FILES = 20
CARDS = 100_000
EVENTS = 'events: {schema: "time TIMESTAMP, kind STRING, card STRING, value DOUBLE", event_time: time}\n'
PATTERN = "pattern: {sequence: [{a: kind = 'A'}, {b: kind = 'B'}]}, within: 1 h"
RULES = {
    "plain": f"{{name: pairs, {PATTERN}}}",
    "partition_by: [card]": f"{{name: pairs, partition_by: [card], {PATTERN}}}",
    "emit: of five columns": f"{{name: pairs, {PATTERN}, emit: {{card: a.card, then: b.card, paid: a.value, "
    "back: b.value, at: b.time}}",
}
PARTS = ("find and gather", "encode", "decode", "merge", "append")

Made = TypeVar("Made")


def main() -> int:
    """Measure each rule."""
    matches = int(sys.argv[1]) if len(sys.argv) > 1 else MATCHES
    results = [measure(name, rule, matches) for name, rule in RULES.items()]
    for result in results:
        parts = ", ".join(f"{part} {result['seconds'][part]:.3f}" for part in PARTS)
        print(f"{result['rule']}: {parts}; result {result['result_bytes']:,} bytes, ", end="")
        print(f"file {result['file_bytes']:,} bytes")
    print(json.dumps(results))
    return 0


def measure(name: str, rule: str, matches: int) -> dict[str, Any]:
    """The processor seconds of each part.

    Raises:
        SystemExit: the table has other matches than the core finds.
    """
    batch = events(2 * matches)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rules.yaml"
        path.write_text(f"{EVENTS}rules:\n  - {rule}\n", encoding="utf-8")
        plan = build_plan(load_rules(path), order=OrderSpec())
        lanes = lanes_of(plan, batch)
        expected = run(plan, [batch]).matches
        turns = [turn(plan, lanes, Path(folder) / str(number), expected) for number in range(TURNS)]
    seconds = {part: min(turn["seconds"][part] for turn in turns) for part in PARTS}
    return {"rule": name, "matches": expected.num_rows, **turns[-1], "seconds": seconds}


def turn(plan: Plan, lanes: list[Lane], folder: Path, expected: pa.Table) -> dict[str, Any]:
    """One way of all matches, and the check of what came of it."""
    seconds = dict[str, float]()

    def timed(part: str, action: Callable[[], Made]) -> Made:
        began = time.process_time()
        made = action()
        seconds[part] = time.process_time() - began
        return made

    tables = DeltaTables(cast(Any, None), str(folder), "benchmark")
    tables.prepare({"matches": matches_schema(plan)})
    found = timed("find and gather", lambda: [work_off(plan, lane) for lane in lanes])
    sent = timed("encode", lambda: [result.encode() for result in found])
    results = timed("decode", lambda: [decode_result(parcel) for parcel in sent])
    merged = timed("merge", lambda: merge(plan, results, {}))
    timed("append", lambda: tables.append("matches", merged.matches, 0))
    written = read_table(folder, "matches").sort_by("out_seq").cast(expected.schema)
    if not written.combine_chunks().equals(expected.combine_chunks()):
        raise SystemExit("the table — must have the matches that the core finds; got others")
    size = sum(file.stat().st_size for file in (folder / "matches").glob("*.parquet"))
    return {"seconds": seconds, "result_bytes": sum(map(len, sent)), "file_bytes": size}


def lanes_of(plan: Plan, batch: pa.Table) -> list[Lane]:
    """The lanes of a batch with which the input ends."""
    sifted = sift(plan, batch, NO_FRONTIER)
    frames = [frame for _, frame in pack(plan, sifted.events)]
    lanes: list[Lane] = []
    SlotSplitter(plan, 0).advance(frames, replace(sifted.progress, finish=True), lanes.append)
    return lanes


def events(count: int) -> pa.Table:
    """Pairs of events of one card each, at random times, in several files."""
    random = np.random.default_rng(1)
    numbers = np.arange(count)
    time = pa.array(1_700_000_000_000_000 + np.cumsum(random.integers(1, 1000, count)))
    each = -(-count // FILES)
    files = pa.array([f"file:///data/events/part-{number:03d}.json" for number in range(FILES)])
    source = pa.DictionaryArray.from_arrays((numbers // each).astype(np.int32), files)
    cards = np.repeat(random.integers(0, CARDS, -(-count // 2)), 2)[:count]
    return pa.table({
        "@time": time,
        "@source": source,
        "@offset": numbers % each,
        "time": time.view(pa.timestamp("us")),
        "kind": pa.array(["A", "B"]).take(pa.array(numbers % 2)),
        "card": [f"card{card:07d}" for card in cards],
        "value": random.random(count).round(4),
    })  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
