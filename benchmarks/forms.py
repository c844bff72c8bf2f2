"""What each form of the rule language and each parameter context costs in the core, and how much they carry.

Events come a millisecond apart, of ten types, with a random number; every rule is without `partition_by` and
within 100 ms or as many events. Timed from a batch's columns to its numbered matches, in one process, without
Spark: processor time, the least of three rounds over all events in one batch, after a round that loads what
is needed. The matches of batches of a tenth are compared with those of one batch before a figure is given.

Then the events come in batches of a hundredth in the context in which most wait: the greatest number of
events carried from one batch to the next must not be above the bound that ``spark-pace explain`` states.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from benchmarks.core_runs import plan_of, records
from benchmarks.rows import Row, Sizes, processor, require
from spark_pace.core.local_run import LocalRun, run
from spark_pace.core.match.contexts import CONTEXTS
from spark_pace.core.plan.plan import Plan
from spark_pace.rules import explain_as_json

ROUNDS = 3
TYPES = np.array([*"abcdefghij"])
TIME = "within: 100 ms"
SCHEMA, EVENT_TIME = "time TIMESTAMP, type STRING, x BIGINT", "event_time: time"
SEQUENCES = {
    "sequence": "a: type = 'a', b: type = 'b'",
    "repetition": "{name: a, when: type = 'a', times: 2..5}, b: type = 'b'",
    "optional": "a: type = 'a', {name: o, when: type = 'c', times: 0..3}, b: type = 'b'",
    "until": "{name: a, when: type = 'a', times: 1..5, until: type = 'c'}, b: type = 'b'",
    "groups beside groups": (
        "{name: a, when: type = 'a', times: 1..5}, {name: o, when: type = 'c', times: 0..3}, b: type = 'b'"
    ),
    "negation": "a: type = 'a', {name: n, when: type = 'c', not: true}, b: type = 'b'",
    "trailing negation": "a: type = 'a', b: type = 'b', {name: n, when: type = 'c' and x < 100, not: true}",
    "leading negation": "{name: n, when: x < 1, not: true, within: 1 s}, a: type = 'a', b: type = 'b'",
    "disjunction": "a: type = 'a', {disjunction: [b: type = 'b', c: type = 'c']}",
    "prev": "a: type = 'a' and x > prev(x), b: type = 'b'",
}
FORMS = {
    **{name: f"pattern: {{sequence: [{sequence}]}}, {TIME}" for name, sequence in SEQUENCES.items()},
    "first seen": (
        "pattern: {sequence: [{name: n, when: type = 'a', not: true, within: 100 ms}, "
        f"a: type = 'a', b: type = 'b']}}, {TIME}, where: n.x = a.x"
    ),
    "conjunction": f"pattern: {{conjunction: [a: type = 'a', b: type = 'b']}}, {TIME}",
    "strict": "pattern: {sequence: [a: type = 'a', b: type = 'b']}, contiguity: strict",
    "span with a pattern": (
        "span: {open: type = 'j', close: type = 'i', within: 100 ms}, "
        "pattern: {sequence: [a: type = 'a' and x > open.x, b: type = 'b']}"
    ),
    "span that aggregates": "span: {every: 10 ms, size: 100 ms}, where: count(*) > 0, emit: {mean: avg(x)}",
}
OF_GROUPS = {"repetition", "until", "groups beside groups"}
WITHOUT_WHERE = {"span that aggregates"}
CONTEXT, WAITING = "next, selected", "latest, zero"
OTHER_CONTEXTS = {"conjunction": "each, selected"}
WHERE = ", where: b.x >= a.x"
TARGETS = {"": ">= 20e6", WHERE: ">= 8e6"}
SLOW = "earliest, selected"


def measure(sizes: Sizes) -> Iterator[Row]:
    """Each form and each context, with and without a condition; then what each form carries."""
    batches = [
        events(first, sizes.kernel_events // 10)
        for first in range(0, sizes.kernel_events, sizes.kernel_events // 10)
    ]
    for form in FORMS:
        for condition in ["", *([] if form in WITHOUT_WHERE else [WHERE])]:
            context = OTHER_CONTEXTS.get(form, CONTEXT)
            yield timed(f"{form}; {_column(condition)}", plan(form, condition, context), batches, None)
    for context in dict.fromkeys(str(context.value) for context in CONTEXTS.values()):
        for condition, target in TARGETS.items():
            aimed = ">= 3e6" if condition and context == SLOW else target
            yield timed(
                f"context: {context}; {_column(condition)}",
                plan("sequence", condition, context),
                batches,
                aimed,
            )
    for form in FORMS:
        yield carried(form, plan(form, "", WAITING), sizes.kernel_events)


def _column(condition: str) -> str:
    return "with where" if condition else "types only"


def plan(form: str, condition: str, context: str) -> Plan:
    """The plan of one form's rule."""
    if condition and form in OF_GROUPS:
        condition = ", where: b.x >= first(a.x)"
    if ", where: " in FORMS[form]:
        condition = condition.replace(", where: ", " and ")
    given = "" if form in WITHOUT_WHERE else f", context: '{context}'"
    return plan_of(SCHEMA, EVENT_TIME, [f"{{name: r, {FORMS[form]}{condition}{given}}}"])


def timed(case: str, plan: Plan, batches: list[pa.Table], target: str | None) -> Row:
    """What a rule costs.

    Raises:
        SystemExit: the matches of the batches are not those of one.
    """
    table = pa.concat_tables(batches).combine_chunks()
    found = run(plan, [table]).matches
    require(found.equals(run(plan, batches).matches), f"{case} — one batch and ten must give equal matches")
    least = min(processor(lambda: run(plan, [table])) for _ in range(ROUNDS))
    return Row(
        "kernels", case, table.num_rows / least, "events/s", None, target, "the matches of ten batches"
    )


def carried(form: str, plan: Plan, count: int) -> Row:
    """The most that a form carries, and the bound as its target."""
    local, most = LocalRun(plan), 0
    for first in range(0, count, count // 100):
        most = max(most, local.step(events(first, count // 100)).stats["carry"])
    bound = explain_as_json(plan.rules[0].rule)["carried"]["bound"]
    limit = (2 if bound == "2 events" else 101) * (
        2 if "twice" in bound else 1
    )  # both ends of a window count
    return Row(
        "kernels", f"carried at most: {form}", most, "events", None, f"<= {limit}", "what explain states"
    )


def events(first: int, count: int) -> pa.Table:
    """Events, one a millisecond; which they are depends on their numbers alone."""
    numbers = np.arange(first, first + count)
    mixed = (numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)) ^ np.uint64(0xD1B54A32D192ED03)
    mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    types = TYPES[((mixed >> np.uint64(33)) % np.uint64(10)).astype(np.int64)]
    return records(
        numbers * 1000, first, type=types, x=((mixed >> np.uint64(13)) % np.uint64(1000)).astype(np.int64)
    )
