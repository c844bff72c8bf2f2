"""Many rules over one scan: of one shape with other numbers, and with equal predicates and other windows.

Timed in the core: processor seconds, from the columns of all events to the numbered matches; then the whole
job from JSON files to Delta with one rule and with the most. All rules together find little, so that the
rules are measured and not their matches. Before a figure is given, the matches of batches are compared with
those of one batch, and those of the first and the last rule with what each finds alone.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.core_runs import rules_of
from benchmarks.events import IDS, write_events
from benchmarks.jobs import DATA, job, require_equal, run_anew
from benchmarks.patterns import FILES
from benchmarks.rows import Row, Sizes, processor, require
from spark_pace.core.local_run import run
from spark_pace.core.order import OrderSpec
from spark_pace.core.plan.plan import build_plan
from spark_pace.core.plan.rule import Rule
from spark_pace.io.replay import read_all
from spark_pace.spark.session import build_session

SCHEMA, EVENT_TIME = "ts BIGINT, id BIGINT, etype STRING, value DOUBLE", "event_time: ts, time_unit: ms"
ROUNDS = 3
TARGET = "<= 6"


def one_shape(number: int) -> str:
    """A rule for an id of its own."""
    own = f"id = {number % IDS}"
    return _rule(number, f"a: etype = 'A' and {own}, b: etype = 'B' and {own}", "10 s")


def equal_predicates(number: int) -> str:
    """A rule with a window of its own."""
    return _rule(
        number, "a: etype = 'A' and value > 0.999, b: etype = 'B' and value > 0.999", f"{number + 1} ms"
    )


def _rule(number: int, sequence: str, within: str) -> str:
    pattern = f"pattern: {{sequence: [{sequence}]}}, within: {within}, context: 'next, selected'"
    return f"{{name: r{number:05d}, {pattern}}}"


KINDS = {"one shape": one_shape, "equal predicates": equal_predicates}


def measure(sizes: Sizes) -> Iterator[Row]:
    """Each kind with each number of rules; the floor is one rule."""
    folder = write_events(DATA / f"stream-{sizes.kernel_events}", sizes.kernel_events, FILES, "number")
    schema = rules_of(SCHEMA, EVENT_TIME, [one_shape(0)])[0].schema
    stream = read_all(folder, schema).events.combine_chunks()
    for kind, text in KINDS.items():
        base = None
        for count in sizes.rules:
            seconds = in_core(named(text, count), stream)
            base = base or seconds
            yield _row(f"{kind}; {count:,}", seconds, base, count)
    spark = build_session("bench", quick=True)
    try:
        base = None
        for count in (sizes.rules[0], sizes.rules[-1]):
            spec = job("many_rules", folder, named(one_shape, count))
            require_equal(run_anew(spec)[0])
            seconds = statistics.median(run_anew(spec)[1].seconds for _ in range(sizes.rounds))
            base = base or seconds
            yield _row(f"one shape, JSON files to Delta; {count:,}", seconds, base, count)
    finally:
        spark.stop()


def _row(case: str, seconds: float, base: float, count: int) -> Row:
    target = TARGET if count >= 1_000 else None
    return Row("rules", case, seconds, "s", seconds / base, target, "the first and the last rule alone")


def named(text: Callable[[int], str], count: int) -> tuple[Rule, ...]:
    """So many rules of a kind."""
    return rules_of(SCHEMA, EVENT_TIME, map(text, range(count)))


def in_core(rules: tuple[Rule, ...], stream: pa.Table) -> float:
    """The least processor seconds of some rounds.

    Raises:
        SystemExit: the matches depend on the batches, or on the other rules.
    """
    plan = build_plan(rules, order=OrderSpec())
    found = run(plan, [stream]).matches
    rows = -(-stream.num_rows // 10)
    batches = run(plan, [stream.slice(first, rows) for first in range(0, stream.num_rows, rows)]).matches
    require(
        found.combine_chunks().equals(batches.combine_chunks()), "rules — batches must give equal matches"
    )
    for rule in {rules[0].name: rules[0], rules[-1].name: rules[-1]}.values():
        alone = run(build_plan((rule,), order=OrderSpec()), [stream]).matches
        own = found.filter(pc.equal(found["rule"], rule.name)).select(alone.column_names)
        require(
            own.combine_chunks().equals(alone.combine_chunks()),
            f"{rule.name} — must find what it finds alone",
        )
    return min(processor(lambda: run(plan, [stream])) for _ in range(ROUNDS))
