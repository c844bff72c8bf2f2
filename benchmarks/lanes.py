"""Lanes by a bound: what is sent twice, and how long the longest lane takes.

The testbed of the papers: a camera shows faces, and queries of ten seconds overlap. Every batch has a minute
of it. The stages of a job without Spark: the lanes of a batch, at most eight, are worked off one after the
other. Measured, and learned from, are processor seconds, so that nothing else on the machine counts. Every
bound must find what a sequential program finds.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.rows import Row, Sizes, require
from examples.faces.stream import BEGIN_US, seen, stream
from spark_pace.core.frames import decode_header
from spark_pace.core.intake.pack import pack
from spark_pace.core.intake.sift import Past, sift
from spark_pace.core.merger import merge
from spark_pace.core.operate.lane_matches import work_off
from spark_pace.core.operate.match_table import decode_result
from spark_pace.core.operate.python_operator import Answers, Spans, call_operator, gathered
from spark_pace.core.order import OrderSpec, Progress
from spark_pace.core.plan.plan import Plan, build_plan
from spark_pace.core.split.slot_splitter import SlotSplitter
from spark_pace.core.split.task import decode_lane
from spark_pace.io.event_files import table_events
from spark_pace.rules import load_rules
from spark_pace.spark.stages.earlier_batches import Measured, Prices, longest_lanes, over_bound

RULE = Path(__file__).parent.parent / "examples" / "faces" / "rule.yaml"
MINUTE_US = 60_000_000
MOST_LANES = 8
BOUNDS = (None, 2, 1, 0.5, 0.25, 0.1, 0.02)  # seconds
LEARNING = (
    2  # batches at the start, of which the first knows no price and the second only that of a cold start
)


@dataclass(frozen=True)
class Batch:
    """What a batch took: `rows` are those sent in all lanes, `longest` and `predicted` seconds of a lane."""

    lanes: int
    rows: int
    distinct: int
    longest: float
    predicted: float
    over: bool


def measure(sizes: Sizes) -> Iterator[Row]:
    """Each bound.

    Raises:
        SystemExit: a bound finds something else than a sequential program.
    """
    events = stream(60 * sizes.minutes, 1)
    expected = [row[0] for row in seen(events)]
    for bound in BOUNDS:
        found, batches = run(events, sizes.minutes, bound)
        require(found == expected, f"bound {bound}: {len(found):,} matches instead of {len(expected):,}")
        for what, (value, unit) in figures(batches[LEARNING:], bound).items():
            case = f"bound {'none' if bound is None else f'{bound:g} s'}; {what}"
            yield Row("lanes", case, value, unit, None, None, "a sequential program")


def run(events: pa.Table, minutes: int, bound: float | None) -> tuple[list[int], list[Batch]]:
    """The queries that found someone, in order, and what each batch took."""
    (rule,) = load_rules(RULE)
    rule = replace(rule, operator="examples.faces.operators:recognize_slowly")
    bound_us = None if bound is None else round(bound * 1e6)
    plan = build_plan([rule], order=OrderSpec(), lanes=MOST_LANES, latency_bound_us=bound_us)
    splitter, prices = SlotSplitter(plan, 0), Prices(plan)
    minute = pc.divide(pc.subtract(events["time"].cast(pa.int64()), BEGIN_US), MINUTE_US)
    found, batches = [], []
    for number in range(minutes):
        table = events.filter(pc.equal(minute, number))
        output = splitter.step(*intake(plan, table, splitter, number == minutes - 1), prices.known)
        results, work = zip(*(worked_off(plan, lane) for lane in output.lanes), strict=True)
        found += merge(plan, map(decode_result, results), {}).matches["query"].to_pylist()
        prices.learn(work)
        lanes, sent, distinct = (output.stats[name] for name in ("lanes", "lane_rows", "distinct_rows"))
        counters = longest_lanes(work)
        longest, predicted = counters["longest_lane_seconds"], counters["longest_lane_predicted"]
        over = bound is not None and over_bound(plan, work, MOST_LANES) is not None
        batches.append(Batch(lanes, sent, distinct, longest, predicted or 0.0, over))
    return found, batches


def worked_off(plan: Plan, lane: bytes) -> tuple[bytes, dict[str, Any]]:
    """The result of a lane and its row `WORK`, as the stage of operators has them, in processor seconds."""
    measured = Measured(timed)
    began = time.process_time()
    (result,) = (one.encode() for one in work_off(plan, decode_lane(lane), measured))
    seconds = time.process_time() - began
    header = decode_header(result)
    told = {name: header[name] for name in ("rule_index", "selections", "predicted_seconds")}
    return result, {**told, "operator_seconds": seconds, "sums": measured.sums(header["weight"], seconds)}


def timed(spans: Spans) -> Iterator[Answers]:
    """The answers for spans, with the processor seconds that each took."""
    for place in range(len(spans)):
        began = time.process_time()
        answers = gathered(spans.rule, [call_operator(spans.rule, spans[place])])
        yield replace(answers, seconds=(time.process_time() - began,))


def intake(
    plan: Plan, table: pa.Table, splitter: SlotSplitter, last: bool
) -> tuple[list[pa.Table], Progress]:
    """What the intake makes of a batch."""
    sifted = sift(plan, table_events(table, plan.schema, "camera").events, Past(splitter.frontier_us))
    return [frame for _, frame in pack(plan, sifted.events)], replace(sifted.progress, finish=last)


def figures(batches: list[Batch], bound: float | None) -> dict[str, tuple[float, str]]:
    """What the batches of a run say: sums, and medians of seconds."""
    sent = sum(batch.rows for batch in batches) / sum(batch.distinct for batch in batches)
    found = {
        "lanes": (statistics.mean(batch.lanes for batch in batches), ""),
        "sent / distinct": (sent, "times"),
        "longest lane": (statistics.median(batch.longest for batch in batches), "s"),
    }
    if bound is not None:
        found |= {
            "predicted": (statistics.median(batch.predicted for batch in batches), "s"),
            "within the bound": (statistics.mean(batch.longest <= bound for batch in batches), "of batches"),
            "predicted to be": (statistics.mean(not batch.over for batch in batches), "of batches"),
        }
    return found
