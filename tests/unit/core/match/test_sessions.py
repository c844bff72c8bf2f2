"""Sessions: their beginnings in long streams, what is carried for them."""

from __future__ import annotations

from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
import pytest
import yaml

from spark_pace.core.local_run import LocalRun
from spark_pace.core.match.delay import delay_us
from spark_pace.core.order import OrderSpec
from spark_pace.core.plan.plan import build_plan
from spark_pace.core.plan.rule import Rule, SessionSpan
from spark_pace.core.ranks import reached
from spark_pace.rules import load_rules
from tests.oracle.matches import evaluate
from tests.support.checks import assert_equal
from tests.support.golden_cases import SCHEMA, parse_events
from tests.support.results import from_oracle, table_of

NEXT = {"pattern": {"sequence": [{"a": "type = 'a'"}, {"b": "type = 'b'"}]}, "context": "next, selected"}
NOT = {"pattern": {"sequence": [{"a": "type = 'a'"}, {"name": "b", "when": "type = 'b'", "not": True}]}}


def rule_of(folder: Path, span: dict[str, str], **keys: object) -> Rule:
    path = folder / "rules.yaml"
    rule = {"name": "r", "span": span, **({} if "pattern" in keys else {"emit": {"n": "count(*)"}}), **keys}
    path.write_text(yaml.safe_dump({"events": SCHEMA, "rules": [rule]}), encoding="utf-8")
    (loaded,) = load_rules(path)
    return loaded


def test_a_rule_file_gives_the_gap_and_the_longest_time(tmp_path: Path) -> None:
    assert rule_of(tmp_path, {"gap": "30 min"}).span == SessionSpan(1_800_000_000)
    assert rule_of(tmp_path, {"gap": "30 min", "within": "4 h"}).span == SessionSpan(
        1_800_000_000, 14_400_000_000
    )


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


@pytest.mark.parametrize("within", [None, "3 s", "50 s"])
@pytest.mark.parametrize("keys", [[], ["x"]], ids=["one stream", "keys"])
def test_a_long_stream_has_the_oracles_sessions_and_only_open_ones_are_carried(
    tmp_path: Path, keys: list[str], within: str | None
) -> None:
    span = {"gap": "2 s"} if within is None else {"gap": "2 s", "within": within}
    rule = rule_of(tmp_path, span, **({"partition_by": keys} if keys else {}))
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
        ({"gap": "2 s"}, {}, 0),
        ({"gap": "2 s"}, {"pattern": NEXT["pattern"]}, 0),
        ({"gap": "2 s"}, NEXT, None),
        ({"gap": "2 s", "within": "9 s"}, NEXT, 9),
        ({"gap": "2 s"}, NEXT | {"within": "5 s"}, 5),
        ({"gap": "2 s"}, NOT, None),
        ({"gap": "2 s"}, NOT | {"merge": "detection"}, 0),
        ({"gap": "2 s"}, NOT | {"within": "3 s"}, None),
        ({"gap": "2 s"}, NOT | {"within": "3 s", "context": "next, selected", "merge": "detection"}, 6),
        ({"gap": "2 s", "within": "4 s"}, NOT | {"within": "3 s"}, 4),
    ],
)
def test_a_match_waits_for_its_own_session_alone(
    tmp_path: Path, span: dict[str, str], keys: dict[str, object], expected: int | None
) -> None:
    found = delay_us(rule_of(tmp_path, span, **keys))
    assert found == (None if expected is None else expected * 1_000_000)
