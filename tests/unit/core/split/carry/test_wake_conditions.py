"""Keys of which no more events come: what waits for the end of a window goes out when that has passed."""

from __future__ import annotations

import pyarrow as pa
import pytest

from spark_pace.core.intake.pack import pack
from spark_pace.core.intake.sift import Past, sift
from spark_pace.core.local_run import LocalRun
from spark_pace.core.order import OrderSpec, Progress
from spark_pace.core.plan.plan import build_plan
from spark_pace.core.plan.rule import Rule
from spark_pace.core.split.slot_splitter import SlotSplitter
from spark_pace.core.split.task import decode_lane
from spark_pace.rules import load_rules
from tests.oracle.matches import evaluate
from tests.support.checks import assert_equal, assert_released_in_time
from tests.support.golden_cases import SCHEMA, parse_events
from tests.support.loaded_rules import CONTEXTS
from tests.support.results import from_oracle, table_of

PAIR = {"sequence": [{"a": "type = 'a'"}, {"b": "type = 'b'"}]}
NOTHING_BEHIND = {"sequence": [*PAIR["sequence"], {"name": "d", "when": "type = 'd'", "not": True}]}


def rule_of(**keys: object) -> Rule:
    rule = {"name": "r", "partition_by": ["x"], "merge": "selection", "filter": "type <> 'z'"}
    rule |= {"pattern": PAIR, **keys}
    rule = {key: value for key, value in rule.items() if value is not None}
    (loaded,) = load_rules({"events": SCHEMA, "rules": [rule]})
    return loaded


@pytest.mark.parametrize("context", CONTEXTS, ids=str)
@pytest.mark.parametrize("merge", ["selection", "detection"])
def test_a_match_goes_out_when_the_windows_before_it_end_and_nothing_is_left(
    context: object, merge: str
) -> None:
    rule = rule_of(context=str(context), merge=merge, within="5 s", where="b.y >= a.y")
    falls_silent(rule, "a1@0=1,9 a2@1=1,1 b1@2=1,5 a3@3=1,2 b2@4=1,3 a4@4=1,7")


@pytest.mark.parametrize("operator", [False, True])
@pytest.mark.parametrize(
    "span",
    [
        {"open": "type = 'o'", "close": "type = 'c'", "within": "5 s"},
        {"every": "2 s", "size": "5 s"},
        {"gap": "2 s"},
        {"gap": "5 s", "within": "6 s"},
    ],
)
def test_a_span_ends_when_its_time_is_over_and_nothing_is_left(span: dict[str, str], operator: bool) -> None:
    inside = {"pattern": None, "operator": "tests.support.operators:summary", "emit": {"n": "BIGINT"}}
    rule = rule_of(span=span, **(inside if operator else {}))
    falls_silent(rule, "o1@0=1,1 o2@1=1,1 a1@2=1,1 b1@3=1,1")


@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize("context", CONTEXTS, ids=str)
def test_an_event_that_ends_no_match_does_not_hide_the_end_of_a_window(context: object, keyed: bool) -> None:
    """In the batch in which the window of a1 ends, a3 comes: it can end nothing."""
    key = ["x"] if keyed else None
    rule = rule_of(context=str(context), within="5 s", where="b.y >= a.y", partition_by=key)
    batches = ("a1@0=1,9 a2@1=1,1 b1@2=1,5 z1@4", "a3@5.5=1,1 z2@6", "z3@30")
    each_batch_gives_what_is_releasable(rule, *batches)


@pytest.mark.parametrize("pattern", [PAIR, NOTHING_BEHIND], ids=["pair", "nothing behind"])
@pytest.mark.parametrize("merge", ["selection", "detection"])
@pytest.mark.parametrize(
    "span",
    [{"open": "type = 'o'", "close": "type = 'c'", "within": "100 s"}, {"every": "1000 s", "size": "1000 s"}],
)
@pytest.mark.parametrize("context", CONTEXTS, ids=str)
def test_a_window_inside_a_span_ends_by_time_alone(
    context: object, span: dict[str, str], merge: str, pattern: dict[str, object]
) -> None:
    """It lets matches out that wait for it; with a negation in last place it decides them."""
    keys = {"pattern": pattern, "span": span, "merge": merge, "where": "b.y >= a.y"}
    rule = rule_of(context=str(context), within="5 s", **keys)
    batches = ("o1@0=1,1 a1@1=1,9 a2@2=1,1 b1@3=1,5 z1@4", "z2@20", "z3@30", "c1@31=1,1 z4@200")
    each_batch_gives_what_is_releasable(rule, *batches)


def each_batch_gives_what_is_releasable(rule: Rule, *batches: str) -> None:
    """Run the batches; after each of them, what has gone out is what the frontier has made releasable."""
    events = parse_events(" ".join(batches))
    matches = evaluate(rule, events)
    assert matches
    assert_released_in_time(rule, matches, [table_of(rule, parse_events(text)) for text in batches])


@pytest.mark.parametrize(
    ("rule", "stream", "waiting"),
    [
        ({"context": "latest, zero", "pattern": {"sequence": [{"a": "type = 'a'"}]}}, "a1@0 a2@1 z1@4", 0),
        ({"context": "latest, zero"}, "a1@0 a2@1 b1@2 z1@4", 1),
        (
            {
                "context": "earliest, selected",
                "pattern": {"sequence": [{"a": "type = 'a'"}, {"b": "type in ('a', 'b')"}]},
            },
            "a1@0 a2@1 z1@4",
            0,
        ),
    ],
)
def test_without_a_window_those_are_open_that_later_events_can_reach(
    rule: dict[str, object], stream: str, waiting: int
) -> None:
    loaded = rule_of(**rule, partition_by=None)
    run = LocalRun(build_plan([loaded], order=OrderSpec()))
    steps = [run.step(table_of(loaded, parse_events(text))) for text in (stream, "z2@20")]
    steps.append(run.step(None, finish=True))
    assert [step.stats["open"] for step in steps] == [waiting] * 3


def falls_silent(rule: Rule, stream: str) -> None:
    """Run the events of one key, let the frontier pass them, and then all windows that start at them."""
    run = LocalRun(build_plan([rule], order=OrderSpec()))
    steps = [run.step(table_of(rule, parse_events(text))) for text in (stream, "z1@4.5=9", "z2@20=9")]
    expected = from_oracle(rule, evaluate(rule, parse_events(stream)))
    assert expected
    assert_equal(rule, expected, pa.concat_tables([step.matches for step in steps]))
    assert steps[1].stats["carry"] > 0
    assert (steps[2].stats["carry"], steps[2].stats["open"]) == (0, 0)


@pytest.mark.parametrize("context", ["each, zero", "next, zero"])
def test_keys_that_lack_an_event_of_a_component_are_no_work_for_operators(context: str) -> None:
    rule = rule_of(context=context, within="5 s", where="b.y >= a.y")
    plan = build_plan([rule], order=OrderSpec())
    table = table_of(rule, parse_events("a1@0=1,1 a2@1=2,1 a3@2=3,1 b1@3=2,1 b2@4=4,1"))
    frames = [frame for _, frame in pack(plan, sift(plan, table, Past()).events)]
    lanes = SlotSplitter(plan, 0).step(frames, Progress(finish=True)).lanes
    keys = [key for lane in lanes for key in decode_lane(lane).events[plan.rules[0].key_column].to_pylist()]
    assert set(keys) == {keys[0]}
    assert len(keys) == 2
