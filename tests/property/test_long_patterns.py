"""Patterns of nine to sixteen components, the most there may be, in all contexts, beside the oracle."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from benchmarks.core_runs import rules_of
from spark_pace.core.local_run import run
from spark_pace.core.order import OrderSpec
from spark_pace.core.plan.plan import build_plan
from spark_pace.core.plan.rule import Rule
from tests.oracle.matches import Event, evaluate
from tests.support import results
from tests.support.loaded_rules import CONTEXTS

SCHEMA = "time TIMESTAMP, n BIGINT, k STRING"
MORE = 3  # events beside one of each number: so few that the oracle, which tries all places, is soon done
ROUNDS = 6
SPANS = ("", "span: {open: n = 0, close: n = 20, within: 40 s}, ", "span: {every: 20 s, size: 40 s}, ")


def rule(chance: random.Random, context: str, span: str) -> Rule:
    """A sequence in which each component takes one number of `n`, and one of them the next one, too."""
    count = chance.randrange(9, 15 if "open" in span else 17)
    twice = chance.randrange(count)
    components = [
        f'{{name: c{place}, when: "n in ({place}, {place + (place == twice)})"}}' for place in range(count)
    ]
    if chance.random() < 0.5:
        place = chance.randrange(1, count)
        components[place] = components[place].replace("}", ", times: 1+}")
    elif chance.random() < 0.5:
        components[chance.randrange(1, count - 1)] = '{name: without, when: "n = 20", not: true}'
    ends = f"c{count - 1}"
    where = "" if "times" in components[-1] else f"where: {ends}.k >= c0.k, "
    within = chance.choice(["15 s", "20 s", "17 events"])
    return of_text(
        f"{{name: r, {span}pattern: {{sequence: [{', '.join(components)}]}}, {where}"
        f"context: '{context}', within: {within}}}"
    )


def of_text(text: str) -> Rule:
    (found,) = rules_of(SCHEMA, "event_time: time", [text])
    return found


def stream(chance: random.Random) -> list[Event]:
    """Events whose numbers rise from 0 to 16, with some others between them."""
    numbers = list(range(17))
    for _ in range(MORE):
        numbers.insert(chance.randrange(len(numbers)), chance.choice([0, 8, 15, 20, chance.randrange(17)]))
    rows = [{"time": at * 1_000_000, "n": n, "k": chance.choice("ab")} for at, n in enumerate(numbers)]
    return [Event(row["time"], "s", at, row) for at, row in enumerate(rows)]


def cases(context: str) -> Iterator[tuple[Rule, list[Event]]]:
    chance = random.Random(context)
    for number in range(ROUNDS):
        yield rule(chance, context, SPANS[number % len(SPANS)]), stream(chance)


def found_as_expected(one: Rule, events: list[Event]) -> int:
    """How many matches the core finds, if they are those of the oracle."""
    expected = results.from_oracle(one, evaluate(one, events))
    found = run(build_plan([one], order=OrderSpec()), [results.table_of(one, events)]).matches
    assert not results.difference(expected, results.from_core(one, found))
    return found.num_rows


@pytest.mark.parametrize("context", [f"{one.selection}, {one.consumption}" for one in CONTEXTS])
def test_sequences_of_many_give_what_the_oracle_gives(context: str) -> None:
    assert sum(found_as_expected(one, events) for one, events in cases(context))


def test_a_conjunction_of_nine_gives_what_the_oracle_gives() -> None:
    """The oracle tries all orders of as many events: no more of either are possible."""
    components = [
        f"{{name: c{place}, when: n {'>= 7' if place > 6 else f'= {place}'}}}" for place in range(9)
    ]
    one = of_text(f"{{name: r, pattern: {{conjunction: [{', '.join(components)}]}}, within: 1 min}}")
    rows = [{"time": at * 1_000_000, "n": n, "k": "a"} for at, n in enumerate([3, 8, 0, 7, 5, 4, 1, 2, 6])]
    events = [Event(row["time"], "s", at, row) for at, row in enumerate(rows)]
    assert found_as_expected(one, events) == 2  # 7 and 8 may change places
