"""Rules that compute with DECIMALs find what the oracle finds, in every context and under any cut."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from random import Random

import pytest

from spark_pace import load_rules
from spark_pace.core.local_run import run
from spark_pace.core.order import OrderSpec
from spark_pace.core.plan.plan import build_plan
from spark_pace.core.plan.rule import Rule
from tests.oracle.matches import evaluate
from tests.oracle.stream import Event
from tests.support.results import difference, from_core, from_oracle, table_of

EVENTS = (
    'events: {schema: "time TIMESTAMP, kind STRING, m DECIMAL(6,2), w DECIMAL(20,8)", event_time: time}\n'
)
SEQUENCE = "pattern: {sequence: [a: kind = 'a', b: kind = 'b' and m * 2 > 0.5, c: kind = 'c']}"
GROUP = "pattern: {sequence: [{name: g, when: kind = 'a' or m % 1 = 0, times: 1+}, c: kind = 'c']}"
RULES = f"""
  - name: sequence
    {SEQUENCE}
    where: a.m + b.m < c.m * 1.5 and a.w / b.m < 2
    within: 12 s
    context: CONTEXT
    emit: {{total: a.m + b.m + c.w, ratio: a.m / c.m, rest: c.w % a.m, near: "round(b.w * 1.005, 3)"}}
  - name: group
    {GROUP}
    where: avg(g.m) < c.m + 0.25 and sum(g.m) - c.m > -5
    within: 12 s
    context: CONTEXT
    emit:
      mean: avg(g.m)
      of: avg(g.w)
      whole: cast(sum(g.w) as bigint)
      text: cast(-c.w as string)
      product: avg(g.m * 1.5)
      squares: sum(g.m * g.m)
      kinds: count(distinct g.m % 1)
"""
SPANS = """
  - name: spans
    span: {every: 3 s, size: 9 s}
    where: avg(m) - 0.5 > 0 or avg(m) is null
    emit: {mean: avg(m), of: avg(w), more: sum(w) / 7, n: count(m), product: avg(m * 1.5), most: max(m + w)}
  - name: values_of_spans
    span: {every: 3 s, size: 9 s}
    emit: {mean: avg(m), squares: sum(m * m), kinds: count(distinct m % 1), often: mode(m), near: avg(abs(m))}
"""
CONTEXTS = [
    "each, zero",
    "latest, zero",
    "next, selected",
    "earliest, selected",
    "each, selected",
]


def events(chance: Random, size: int) -> list[Event]:
    time, found = 0, []
    for place in range(size):
        time += chance.choice((0, 1, 1, 2)) * 1_000_000
        cents, units = chance.randrange(-200, 400), chance.randrange(-(10**10), 10**10)
        row = {
            "time": time,
            "kind": chance.choice("aabbcc"),
            "m": chance.choice((Decimal(cents).scaleb(-2), Decimal(cents // 100), None, Decimal("1.50"))),
            "w": chance.choice((Decimal(units).scaleb(-8), Decimal(0), None)),
        }
        found.append(
            Event(time, "s", place, {**row, **{n: exact(row[n], s) for n, s in (("m", 2), ("w", 8))}})
        )
    return found


def exact(value: object, scale: int) -> Decimal | None:
    return value.quantize(Decimal(1).scaleb(-scale)) if isinstance(value, Decimal) else None


@pytest.mark.parametrize("streams", [8, pytest.param(25, marks=pytest.mark.long)])
@pytest.mark.parametrize("context", [*CONTEXTS, None], ids=str)
def test_the_oracle_computes_the_same(context: str | None, streams: int) -> None:
    text = SPANS if context is None else RULES.replace("CONTEXT", f'"{context}"')
    rules = load_rules(EVENTS + "rules:" + text)
    chance, found = Random(11), 0
    for _ in range(streams):
        stream = events(chance, 14)
        for rule in rules:
            expected = from_oracle(rule, evaluate(rule, stream))
            found += len(expected)
            for rows in (14, 3):
                got = from_core(rule, in_batches(rule, stream, rows))
                assert not (wrong := difference(expected, got)), wrong
    assert found > 0.8 * streams


def in_batches(rule: Rule, stream: Sequence[Event], rows: int) -> object:
    table = table_of(rule, stream)
    batches = [table.slice(first, rows) for first in range(0, table.num_rows, rows)]
    return run(build_plan([rule], order=OrderSpec(), lanes=2, least_lane_rows=1), batches).matches
