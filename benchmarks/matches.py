"""What matches cost on their way from an operator to the Delta table: of two events each.

Timed in processor seconds of one process, without Spark, the least of several turns: finding the matches and
gathering their columns; the result as bytes, and read from them; putting it in order and numbering it;
appending it to the table. Before any figure is printed, what the table has is compared with what the core
finds when it hands results over as they are.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import numpy as np
import pyarrow as pa

from benchmarks.core_runs import plan_of
from benchmarks.rows import Row, Sizes, require
from spark_pace import read_table
from spark_pace.core.intake.pack import pack
from spark_pace.core.intake.sift import Past, sift
from spark_pace.core.local_run import run
from spark_pace.core.merger import matches_schema, merge
from spark_pace.core.operate.lane_matches import work_off
from spark_pace.core.operate.match_table import decode_result
from spark_pace.core.plan.plan import Plan
from spark_pace.core.split.slot_splitter import SlotSplitter
from spark_pace.core.split.task import Lane
from spark_pace.io.delta_tables import DeltaTables

TURNS = 5
FILES = 20
CARDS = 100_000
SCHEMA = "time TIMESTAMP, kind STRING, card STRING, value DOUBLE"
PATTERN = "pattern: {sequence: [{a: kind = 'A'}, {b: kind = 'B'}]}, within: 1 h"
RULES = {
    "plain": f"{{name: pairs, {PATTERN}}}",
    "partition_by: [card]": f"{{name: pairs, partition_by: [card], {PATTERN}}}",
    "emit: of five columns": f"{{name: pairs, {PATTERN}, emit: {{card: a.card, then: b.card, paid: a.value, "
    "back: b.value, at: b.time}}",
}
PARTS = ("find and gather", "encode", "decode", "merge", "append")

Made = TypeVar("Made")


def measure(sizes: Sizes) -> Iterator[Row]:
    """Each rule, with as many matches as measurements in the core have events."""
    for name, rule in RULES.items():
        matches, seconds = seconds_of(rule, sizes.kernel_events)
        for part in PARTS:
            each = 1e9 * seconds[part] / matches
            yield Row("matches", f"{name}; {part}", each, "ns a match", checked="the core's matches")


def seconds_of(rule: str, matches: int) -> tuple[int, dict[str, float]]:
    """How many matches there are, and the processor seconds of each part.

    Raises:
        SystemExit: the table has other matches than the core finds.
    """
    batch = events(2 * matches)
    plan = plan_of(SCHEMA, "event_time: time", [rule])
    with tempfile.TemporaryDirectory() as folder:
        lanes = lanes_of(plan, batch)
        expected = run(plan, [batch]).matches
        turns = [turn(plan, lanes, Path(folder) / str(number), expected) for number in range(TURNS)]
    return expected.num_rows, {part: min(seconds[part] for seconds in turns) for part in PARTS}


def turn(plan: Plan, lanes: list[Lane], folder: Path, expected: pa.Table) -> dict[str, float]:
    """The processor seconds of one way of all matches; what came of it is checked."""
    seconds = dict[str, float]()

    def timed(part: str, action: Callable[[], Made]) -> Made:
        began = time.process_time()
        made = action()
        seconds[part] = time.process_time() - began
        return made

    tables = DeltaTables(str(folder), "benchmark")
    tables.prepare({"matches": matches_schema(planned.rule for planned in plan.rules)})
    found = timed("find and gather", lambda: [one for lane in lanes for one in work_off(plan, lane)])
    sent = timed("encode", lambda: [result.encode() for result in found])
    results = timed("decode", lambda: [decode_result(parcel) for parcel in sent])
    merged = timed("merge", lambda: merge(plan, results, {}))
    timed("append", lambda: tables.append("matches", merged.matches, 0))
    written = read_table(folder, "matches").sort_by("out_seq").cast(expected.schema)
    right = written.combine_chunks().equals(expected.combine_chunks())
    require(right, "the table — must have the matches that the core finds; got others")
    return seconds


def lanes_of(plan: Plan, batch: pa.Table) -> list[Lane]:
    """The lanes of a batch with which the input ends."""
    sifted = sift(plan, batch, Past())
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
