"""*earliest, selected*: what a later match uses up changes no turn before it, however the stream is cut."""

from __future__ import annotations

from itertools import pairwise

import pyarrow as pa
import pytest

from spark_pace.core.order import OrderSpec
from spark_pace.core.plan.plan import build_plan
from spark_pace.rules import load_rules
from tests.oracle.matches import evaluate
from tests.support.checks import assert_equal
from tests.support.drive import drive
from tests.support.golden_cases import SCHEMA, parse_events
from tests.support.results import from_oracle, table_of

A, B, C = ({"name": kind, "when": f"type = '{kind}'"} for kind in "abc")


@pytest.mark.parametrize("merge", ["selection", "detection"])
def test_a_turn_that_is_over_is_not_taken_otherwise(merge: str) -> None:
    """With b1 and b2 the group is too large at c1. When c2 has used b2 up it is not: c1 is past."""
    rule = {
        "name": "r",
        "pattern": {"sequence": [A, {**B, "times": "0..1"}, C]},
        "where": "a.x = c.x",
        "within": "60 s",
        "context": "earliest, selected",
        "merge": merge,
    }
    (loaded,) = load_rules({"events": SCHEMA, "rules": [rule]})
    events = parse_events("a1=1 b1 a2=2 b2 c1=1 c2=2 z1 c3=1")
    found = from_oracle(loaded, evaluate(loaded, events))
    names = [event.row["id"] for event in events]
    told = sorted(" ".join(names[offset] for *_, offset in row["events"]) for row in found)
    assert told == ["a1 b1 c3", "a2 b2 c2"]
    for cut in range(1, len(events)):
        batches = [table_of(loaded, events[i:j]) for i, j in pairwise([0, cut, len(events)])]
        steps = drive(build_plan([loaded], order=OrderSpec()), batches, finish=True)
        assert_equal(loaded, found, pa.concat_tables([step.matches for step in steps]))
