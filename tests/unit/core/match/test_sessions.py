"""Sessions: their beginnings in long streams, what is carried for them."""

from __future__ import annotations

from random import Random

import numpy as np
import pyarrow as pa
import pytest

from spark_pace.core.local_run import LocalRun
from spark_pace.core.match.delay import delay_us
from spark_pace.core.order import OrderSpec
from spark_pace.core.plan.plan import build_plan
from spark_pace.core.ranks import reached
from tests.oracle.matches import evaluate
from tests.support.checks import assert_equal
from tests.support.golden_cases import parse_events, rule_of
from tests.support.results import from_oracle, table_of

COUNTED = "emit: {n: count(*)}"
PAIR = "pattern: {sequence: [a: type = 'a', b: type = 'b']}"
NEXT = "context: 'next, selected'"
NOT = "pattern: {sequence: [a: type = 'a', {name: b, when: type = 'b', not: true}]}"


@pytest.mark.parametrize("seed", range(20))
def test_rows_that_are_reached_are_those_of_a_walk(seed: int) -> None:
    random, count = Random(seed), Random(seed).choice([0, 1, 2, 40, 300])
    following = [random.randint(row + 1, min(count, row + random.choice([1, 2, 30]))) for row in range(count)]
    begins = [random.random() < 0.05 for _ in following]
    walked, there = [], [*begins, False]
    for row in range(count):
        if there[row]:
            walked.append(row)
            there[following[row]] = True
    found = reached(np.array(following, np.int64), np.array(begins, np.bool_))
    assert found.tolist() == walked


@pytest.mark.parametrize("span", ["gap: 2 s", "gap: 2 s, within: 3 s", "gap: 2 s, within: 50 s"])
@pytest.mark.parametrize("keys", ["", ", partition_by: [x]"], ids=["one stream", "keys"])
def test_a_long_stream_has_the_oracles_sessions_and_only_open_ones_are_carried(keys: str, span: str) -> None:
    rule = rule_of(f"span: {{{span}}}, {COUNTED}{keys}")
    random, time, words = Random(7), 0.0, []
    for number in range(1500):
        time += random.choice([0, 1, 1, 1, 2, 2, 2, 2, 2, 2.5])
        words.append(f"a{number}@{time}={random.randint(0, 1)}")
    events = parse_events(" ".join(words))
    local, found, most = LocalRun(build_plan([rule], order=OrderSpec())), [], 0
    for start in range(0, len(events), 100):
        step = local.step(table_of(rule, events[start : start + 100]))
        found.append(step.matches)
        most = max(most, step.stats["carry"])
        assert step.stats["open"] <= 2
    found.append(local.step(None, finish=True).matches)
    expected = from_oracle(rule, evaluate(rule, list(events)))
    assert_equal(rule, expected, pa.concat_tables(found))
    assert len(expected) > 100
    assert most < 80


@pytest.mark.parametrize(
    ("span", "keys", "expected"),
    [
        ("gap: 2 s", COUNTED, 0),
        ("gap: 2 s", PAIR, 0),
        ("gap: 2 s", f"{PAIR}, {NEXT}", None),
        ("gap: 2 s, within: 9 s", f"{PAIR}, {NEXT}", 9),
        ("gap: 2 s", f"{PAIR}, {NEXT}, within: 5 s", 5),
        ("gap: 2 s", NOT, None),
        ("gap: 2 s", f"{NOT}, merge: detection", 0),
        ("gap: 2 s", f"{NOT}, within: 3 s", None),
        ("gap: 2 s", f"{NOT}, within: 3 s, {NEXT}, merge: detection", 6),
        ("gap: 2 s, within: 4 s", f"{NOT}, within: 3 s", 4),
    ],
)
def test_a_match_waits_for_its_own_session_alone(span: str, keys: str, expected: int | None) -> None:
    found = delay_us(rule_of(f"span: {{{span}}}, {keys}"))
    assert found == (None if expected is None else expected * 1_000_000)
