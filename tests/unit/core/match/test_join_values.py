"""Rules whose conditions keep a match to one value of an attribute: which they are, what a batch touches."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_pace import ways
from spark_pace.core.intake.pack import pack
from spark_pace.core.match.method import method_of
from spark_pace.core.match.release import Resolution
from spark_pace.core.order import OrderSpec, Progress
from spark_pace.core.plan.plan import Plan, build_plan
from spark_pace.core.plan.rule import Rule
from spark_pace.core.split.carry.carry import Carry, Whole, whole_of
from spark_pace.core.split.slot_splitter import SlotSplitter
from spark_pace.core.split.snapshot import load
from spark_pace.core.split.task import decode_lane
from spark_pace.rules import load_rules
from tests.oracle.contexts import Event
from tests.oracle.matches import evaluate
from tests.support.checks import assert_released_in_time
from tests.support.golden_cases import parse_events
from tests.support.results import table_of

SCHEMA = {
    "schema": "time TIMESTAMP, id STRING, type STRING, x BIGINT, y BIGINT, v DOUBLE",
    "event_time": "time",
}
STEADY = settings(deadline=None, derandomize=True, database=None)


def rule_of(keys: str, components: str = "ab") -> Rule:
    sequence = [{name: f"type = '{name}'"} for name in components]
    rule = {"name": "r", "pattern": {"sequence": sequence}, "within": "10 s", **yaml.safe_load(f"{{{keys}}}")}
    (loaded,) = load_rules({"events": SCHEMA, "rules": [rule]})
    return loaded


def table(rule: Rule, events: tuple[Event, ...]) -> pa.Table:
    for event in events:
        event.row.setdefault("v", None)
    return table_of(rule, events)


def cut_events(*batches: str) -> list[tuple[Event, ...]]:
    """The events of some batches of one stream."""
    events, ends = parse_events(" ".join(batches)), np.cumsum([len(text.split()) for text in batches])
    return [events[end - len(text.split()) : end] for text, end in zip(batches, ends, strict=True)]


CHAIN, STAR, LATE = "a.x = b.x and b.x = c.x", "c.x = a.x and b.x = a.x", "a.x = c.x and b.x = c.x"


@pytest.mark.parametrize(
    ("components", "keys", "attribute"),
    [
        ("ab", "where: a.x = b.x", "x"),
        ("ab", "where: b.x = a.x and a.y < b.y", "x"),
        ("ab", "where: a.x = b.x and a.y = b.y", "x"),
        ("ab", "where: a.id = b.id, merge: detection", "id"),
        ("ab", "where: a.time = b.time", "time"),
        ("abc", f"where: {CHAIN}", "x"),
        ("abc", f"where: {STAR}", "x"),
        ("abc", f"where: {LATE}", "x"),
        ("abc", f"where: {LATE}, context: 'latest, zero'", "x"),
        ("abc", f"where: {CHAIN}, context: 'next, zero'", "x"),
        ("abc", f"where: {STAR}, context: 'next, zero'", "x"),
        # the walk takes the first b, whatever its x is
        ("abc", f"where: {LATE}, context: 'next, zero'", None),
        ("abc", "where: a.x = b.x", None),
        ("abcd", "where: a.x = b.x and c.x = d.x", None),
        ("abc", "where: a.x = b.x and b.y = c.y", None),
        ("ab", "where: a.x = b.y", None),
        ("ab", "where: a.x <= b.x", None),
        ("ab", "where: a.x = b.x or a.y = b.y", None),
        ("ab", "where: a.x + 1 = b.x + 1", None),
        ("ab", "where: a.v = b.v", None),  # 0.0 = -0.0, but not as text
        ("ab", "where: a.x = b.x, within: 10 events", None),
        ("ab", "where: a.x = b.x, partition_by: ['y']", None),
        ("ab", "where: a.x = b.x, context: 'each, selected'", None),
        ("ab", "where: a.x = b.x, context: 'earliest, selected'", None),
        ("ab", "where: a.x = b.x, span: {every: 5 s, size: 5 s}", None),
        ("ab", "", None),
    ],
)
def test_a_join_holds_every_component_of_every_match(
    components: str, keys: str, attribute: str | None
) -> None:
    assert method_of(rule_of(keys, components)).join == attribute


def test_what_is_left_to_be_tested_is_not_the_join() -> None:
    rule = rule_of(f"where: a.y < c.y and {CHAIN} and a.y = b.y", "abc")
    tested = method_of(rule).pattern
    assert tested is not None and rule.pattern is not None
    assert tested.where == (rule.pattern.where[0], rule.pattern.where[3])
    assert tested.components == rule.pattern.components


@pytest.mark.parametrize(
    ("keys", "batches"),
    [
        # b1 closes the first selection, for which a match of another value waits
        ("", ["a1@0=1 a2@1=2 b2@2=2 z1@3", "b1@4=1 z2@5"]),
        ("context: 'next, zero'", ["a1@0=1 a2@1=2 b2@2=2 z1@3", "b1@4=1 z2@5"]),
        # both of 2 and 3 wait, for selections that are closed one after the other
        ("", ["a1@0=1 a2@1=2 a3@1=3 b3@2=3 b2@2=2 z1@3", "b1@4=1 z2@5", "z3@30"]),
        # only time passes; null opens a selection too
        ("", ["a1@0=- a2@1=2 b2@2=2 b1@2=- z1@3", "z2@10", "z3@10.5", "z4@30"]),
        ("context: 'latest, zero'", ["a1@0=1 a2@1=2 b2@2=2 b3@4=2 z1@5", "z2@10.5", "z3@11.5", "z4@30"]),
        ("context: 'earliest, zero'", ["a1@0=1 a2@1=2 b2@2=2 z1@5", "a3@10=2 z2@10.5", "b3@11=2 z3@30"]),
        ("close: window", ["a1@0=1 a2@1=2 b2@2=2 z1@3", "b3@9=2 z2@10.5", "b4@10.7=2 z3@11.5", "z4@30"]),
    ],
)
def test_a_match_goes_out_when_selections_of_other_values_are_resolved(keys: str, batches: list[str]) -> None:
    rule = rule_of(f"where: a.x = b.x, {keys}")
    cut = cut_events(*batches)
    matches = evaluate(rule, [event for batch in cut for event in batch])
    assert matches and any(match.releasable > match.decided for match in matches)
    assert assert_released_in_time(rule, matches, [table(rule, batch) for batch in cut])


@pytest.mark.parametrize(
    ("keys", "rows"),
    [
        ("merge: detection", 2),
        ("merge: detection, context: 'latest, zero'", 2),
        ("context: 'earliest, zero'", 2),
        ("context: 'each, zero'", 0),  # the first selection is open, so nothing can go out
    ],
)
def test_a_batch_looks_at_the_values_that_it_touches(keys: str, rows: int) -> None:
    rule = rule_of(f"where: a.x = b.x, within: 1 d, {keys}")
    plan = build_plan([rule], order=OrderSpec())
    splitter = SlotSplitter(plan, 0)
    opening = " ".join(f"a{number}@0={number}" for number in range(1, 500))
    for text in (f"{opening} z1@1", "a1@1=1000 z1@1.5", "b1@2=77 z2@3"):
        lanes = advanced(splitter, plan, text)
    assert sum(decode_lane(lane).events.num_rows for lane in lanes) == rows


def advanced(splitter: SlotSplitter, plan: Plan, text: str) -> list[bytes]:
    """Let the splitter process a batch; its lanes."""
    events = table(plan.rules[0].rule, parse_events(text))
    frames = [frame for _, frame in pack(plan, events)]
    return splitter.step(frames, Progress(max(events["@time"].to_pylist()))).lanes


@pytest.mark.parametrize("context", ["each, zero", "latest, zero"])
def test_values_of_which_nothing_is_carried_are_forgotten(
    monkeypatch: pytest.MonkeyPatch, context: str
) -> None:
    monkeypatch.setattr(ways, "SMALL", 16)
    rule = rule_of(f"where: a.x = b.x, context: '{context}'")
    plan = build_plan([rule], order=OrderSpec())
    splitter = SlotSplitter(plan, 0)
    for second in range(150):
        advanced(splitter, plan, " ".join(f"a1@{second}={3 * second + place}" for place in range(3)))
    _, ((_, carry),) = load(plan, 0, splitter.snapshot())
    assert carry.rows <= 80  # of ten seconds, and for `latest` of ten more
    assert sum(chunk.keys.num_rows for chunk in carry.chunks) <= 3 * carry.rows + 32
    assert carry.whole is not None and carry.whole.next_selection == 3 * 149


@STEADY
@given(st.lists(st.tuples(st.sets(st.integers(0, 8)), st.integers(0, 5)), max_size=12))
def test_a_resolution_knows_what_a_set_would(batches: list[tuple[set[int], int]]) -> None:
    """Each batch closes some selections that are not far behind the first, and ends windows of some."""
    resolution, resolved, ended = Resolution(), set[int](), 0
    for closed, ends in batches:
        before = resolution = resolution.begun()
        numbers = {ended + number for number in closed}
        ended += ends
        resolved |= numbers | set(range(ended))
        over = np.arange(ended - ends, ended)
        resolution = resolution.after(over, np.array(sorted(numbers), np.int64))
        first = next(number for number in range(1000) if number not in resolved)
        assert (resolution.first, resolution.before) == (first, before.first)
        assert resolution.closed.tolist() == sorted(number for number in resolved if number > first)
        whole = whole_of(Whole(3, 5, resolution).stored())
        assert (whole.next_seq, whole.next_selection, whole.resolution.first) == (3, 5, first)
        assert whole.resolution.closed.tolist() == resolution.closed.tolist()


def test_events_are_kept_by_value_from_the_first_batch_on() -> None:
    rule = rule_of("where: a.x = b.x")
    plan = build_plan([rule], order=OrderSpec())
    splitter = SlotSplitter(plan, 0)
    for second, values in enumerate((["-", 1], [1, 2, 2])):
        advanced(splitter, plan, " ".join(f"a1@{second}={value}" for value in values) + f" z1@{second}.5")
        _, ((_, carry),) = load(plan, 0, splitter.snapshot())
        assert keys_of(carry) == sorted({"=1", "null"} if second == 0 else {"=1", "=2", "null"})
    assert carry.whole is not None and carry.whole.next_selection == 5


def keys_of(carry: Carry) -> list[str]:
    return sorted({key for chunk in carry.chunks for key in chunk.keys["key"].to_pylist()})
