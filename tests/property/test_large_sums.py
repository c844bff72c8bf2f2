"""Sums and means of BIGINTs near the ends of their type: the oracle's, in every context and form."""

from __future__ import annotations

from random import Random

import pytest

from spark_pace import load_rules
from spark_pace.core.local_run import run
from spark_pace.core.order import OrderSpec
from spark_pace.core.plan.plan import build_plan
from tests.oracle.matches import evaluate
from tests.oracle.stream import Event
from tests.support.results import difference, from_core, from_oracle, table_of
from tests.support.streams import LARGE

SCHEMA = 'events: {schema: "time TIMESTAMP, type STRING, x BIGINT", event_time: time}\nrules:\n'
A, B, C = ("a: type = 'a'", "{name: b, when: type = 'b', times: 1+}", "c: type = 'c'")
GROUP = "{name: a, when: type = 'a', times: 2+}"
SO_FAR = "{{name: a, when: \"type = 'a' and {}\", times: 1+}}"
ENDED = "{name: a, when: type = 'a', times: 1+, until: type = 'b'}"
# the components, and conditions on them; what `coalesce` is around, columns test
FORMS = [
    (f"{GROUP}, {C}", ["avg(a.x) < 0", "sum(a.x) < 0", "coalesce(sum(a.x) >= 0, false)", "sum(a.x) is null"]),
    (
        f"{GROUP}, {B}, {C}",
        ["avg(a.x) > avg(b.x)", "sum(a.x) > sum(b.x)", "coalesce(avg(a.x) < avg(b.x), false)"],
    ),
    (f"{C}, {GROUP}", ["avg(a.x) <= c.x", "coalesce(avg(a.x) <= c.x, false)", "sum(a.x) - c.x > 0"]),
    (f"{SO_FAR.format('sum(a.x) + x < 0')}, {C}", [""]),
    (f"{SO_FAR.format('avg(a.x) >= x')}, {C}", ["sum(a.x) is not null"]),
    (f"{SO_FAR.format('coalesce(sum(a.x) > x, true)')}, {C}", [""]),
    (f"{ENDED}, {C}", ["avg(a.x) > 4e18", "sum(a.x) > 0"]),
]
CONTEXTS = [
    *("each, zero", "latest, zero", "earliest, zero", "next, zero"),
    *("each, selected", "latest, selected", "earliest, selected", "next, selected"),
]
SPANS = """
  - name: spans
    span: {every: 2 s, size: 5 s}
    where: avg(x) > 0 or sum(x) is null
    emit: {s: sum(x), m: avg(x)}
  - name: counts
    span: {every: 1 events, size: 3 events}
    where: sum(x) > -5
    emit: {s: sum(x), m: avg(x), n: count(*)}
"""


def text_of(context: str) -> str:
    rules = [
        f"  - name: r{number}_{place}\n    pattern: {{sequence: [{components}]}}\n"
        f"    {where and f'where: {where}'}\n"
        f"    within: 9 s\n    context: '{context}'\n    emit: {emits(components)}\n"
        for number, (components, conditions) in enumerate(FORMS)
        for place, where in enumerate(conditions)
    ]
    return SCHEMA + "".join(rules)


def emits(components: str) -> str:
    more = ", t: sum(b.x), n: avg(b.x)" if "name: b" in components else ""
    return f"{{s: sum(a.x), m: avg(a.x){more}}}"


def stream(chance: Random, size: int) -> list[Event]:
    time, found = 0, []
    for place in range(size):
        time += chance.choice((0, 1, 1)) * 1_000_000
        x = chance.choice((*LARGE, *LARGE, 0, 1, -1, None))
        found.append(Event(time, "s", place, {"time": time, "type": chance.choice("aaaabbc"), "x": x}))
    return found


@pytest.mark.parametrize("streams", [2, pytest.param(40, marks=pytest.mark.long)])
@pytest.mark.parametrize("context", [*CONTEXTS, None], ids=str)
def test_the_oracle_adds_up_the_same(context: str | None, streams: int) -> None:
    rules, chance, found = load_rules(SCHEMA + SPANS if context is None else text_of(context)), Random(3), 0
    for _ in range(streams):
        events = stream(chance, 10)
        table = table_of(rules[0], events)
        matches = run(build_plan(rules, order=OrderSpec()), [table.slice(0, 6), table.slice(6)]).matches
        for rule in rules:
            expected = from_oracle(rule, evaluate(rule, events))
            found += len(expected)
            assert not (wrong := difference(expected, from_core(rule, matches))), wrong
    assert found > 3 * streams
