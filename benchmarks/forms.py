"""What each form of the rule language costs in the core, and how much it carries at most.

Events come a millisecond apart, of ten types, with a random number; every rule is without `partition_by` and
within 100 ms or as many events. Timed from a batch's columns to its numbered matches, in one process, without
Spark: processor time, the least of three rounds over all events in one batch, after a round that loads what
is needed. The matches of batches of a tenth are compared with those of one batch before a figure is printed.

With `--carry N`, N events come in batches of 100,000 instead, and the greatest number of events carried from
one batch to the next is compared with the bound that ``spark-pace explain`` states.

    python -m benchmarks.forms [--events 1000000] [--carry 10000000] [--form NAME ...]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from time import process_time

import numpy as np
import pyarrow as pa

from spark_pace.core.local import LocalRun, run
from spark_pace.core.order.order import OrderSpec
from spark_pace.core.plan.plan import Plan, build_plan
from spark_pace.rules import explain_as_json, load_rules

EVENTS = 1_000_000
CARRIED = 10_000_000
BATCH = 100_000
ROUNDS = 3
TYPES = np.array([*"abcdefghij"])
TIME = "within: 100 ms"
HEAD = 'events: {schema: "time TIMESTAMP, type STRING, x BIGINT", event_time: time}\nrules:\n'
SEQUENCES = {
    "sequence": "a: type = 'a', b: type = 'b'",
    "repetition": "{name: a, when: type = 'a', times: 2..5}, b: type = 'b'",
    "optional": "a: type = 'a', {name: o, when: type = 'c', times: 0..3}, b: type = 'b'",
    "negation": "a: type = 'a', {name: n, when: type = 'c', not: true}, b: type = 'b'",
    "trailing negation": "a: type = 'a', b: type = 'b', {name: n, when: type = 'c' and x < 100, not: true}",
    "prev": "a: type = 'a' and x > prev(x), b: type = 'b'",
}
FORMS = {
    **{name: f"pattern: {{sequence: [{sequence}]}}, {TIME}" for name, sequence in SEQUENCES.items()},
    "conjunction": f"pattern: {{conjunction: [a: type = 'a', b: type = 'b']}}, {TIME}",
    "strict": "pattern: {sequence: [a: type = 'a', b: type = 'b']}, contiguity: strict",
    "span with a pattern": (
        "span: {open: type = 'j', close: type = 'i', within: 100 ms}, "
        "pattern: {sequence: [a: type = 'a' and x > open.x, b: type = 'b']}"
    ),
    "span that aggregates": "span: {every: 10 ms, size: 100 ms}, where: count(*) > 0, emit: {mean: avg(x)}",
}
WITHOUT_WHERE = {"span that aggregates"}
CONTEXT, WAITING = "next, selected", "latest, zero"
OTHER_CONTEXTS = {"conjunction": "each, selected"}
COLUMNS = "{:<36}{:>9}{:>9}  {}"


def main() -> int:
    """Measure each form; 1 if matches differ or more is carried than explained."""
    parser = argparse.ArgumentParser(description="What each form of the rule language costs in the core.")
    parser.add_argument("--events", type=int, default=EVENTS)
    parser.add_argument("--carry", type=int, nargs="?", const=CARRIED)
    parser.add_argument("--form", nargs="+", choices=FORMS, default=list(FORMS))
    given = parser.parse_args()
    return 1 if measure(given.form, given.events, given.carry) else 0


def measure(forms: Iterable[str] = FORMS, count: int = EVENTS, carry: int | None = None) -> int:
    """Measure each form, with and without a condition; how many have failed."""
    wrong = 0
    print(COLUMNS.format("form", *(("carried", "bound", "") if carry else ("matches", "s", "M events/s"))))
    for form in forms:
        for condition in ["", *([] if form in WITHOUT_WHERE or carry else [", where: b.x >= a.x"])]:
            plan = plan_of(form, condition, waits=carry is not None)
            name = f"{form}{' with where' if condition else ''}"
            wrong += carried(name, plan, carry) if carry else timed(name, plan, count)
    return wrong


def plan_of(form: str, condition: str, *, waits: bool) -> Plan:
    """The plan of one form's rule; `waits`: in the context in which most waits."""
    aggregates = form in WITHOUT_WHERE
    context = "" if aggregates else f", context: '{WAITING if waits else OTHER_CONTEXTS.get(form, CONTEXT)}'"
    if condition and form == "repetition":
        condition = ", where: b.x >= first(a.x)"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rules.yaml"
        path.write_text(f"{HEAD}  - {{name: r, {FORMS[form]}{condition}{context}}}\n", encoding="utf-8")
        return build_plan(load_rules(path), order=OrderSpec())


def timed(name: str, plan: Plan, count: int) -> int:
    """Print what a form costs; 1 if the matches differ."""
    batches = [events(first, count // 10) for first in range(0, count, count // 10)]
    table = pa.concat_tables(batches).combine_chunks()
    found, seconds = run(plan, [table]).matches, []
    if not found.equals(run(plan, batches).matches):
        print(f"{name} — must give the matches of one batch in ten; gives others", file=sys.stderr)
        return 1
    for _ in range(ROUNDS):
        start = process_time()
        run(plan, [table])
        seconds.append(process_time() - start)
    least = min(seconds)
    print(COLUMNS.format(name, found.num_rows, f"{least:.3f}", f"{count / least / 1e6:.1f}"), flush=True)
    return 0


def carried(name: str, plan: Plan, count: int) -> int:
    """Print the most that a form carries; 1 if that is more than is explained."""
    local, most = LocalRun(plan), 0
    for first in range(0, count, BATCH):
        most = max(most, local.step(events(first, BATCH)).stats["carry"])
    bound = explain_as_json(plan.rules[0].rule)["carried"]["bound"]
    limit = (2 if bound == "2 events" else 101) * (
        2 if "twice" in bound else 1
    )  # both ends of a window count
    print(COLUMNS.format(name, most, limit, bound), flush=True)
    if most <= limit:
        return 0
    print(f"{name} — must carry at most {bound}; carried {most} events", file=sys.stderr)
    return 1


def events(first: int, count: int) -> pa.Table:
    """Events, one a millisecond; which they are depends on their numbers alone."""
    numbers = np.arange(first, first + count)
    mixed = (numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)) ^ np.uint64(0xD1B54A32D192ED03)
    mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    time = pa.array(numbers * 1000)
    return pa.table({
        "@time": time,
        "@source": pa.DictionaryArray.from_arrays(np.zeros(count, np.int32), ["events"]),
        "@offset": numbers,
        "time": time.view(pa.timestamp("us")),
        "type": TYPES[((mixed >> np.uint64(33)) % np.uint64(10)).astype(np.int64)],
        "x": ((mixed >> np.uint64(13)) % np.uint64(1000)).astype(np.int64),
    })  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
