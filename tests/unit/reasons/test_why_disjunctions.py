"""What `why` says of events that may stand for a component of a disjunction."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_pace.reasons.answer import lines_of
from tests.unit.reasons.test_why import told

EITHER = """pattern: {sequence: [a: type = 'a', disjunction: [b: type = 'b', c: "type in ('b', 'c')"]]}
    where: b.x = a.x and c.x > a.x and c.x < 9
    within: 5 s"""


@pytest.mark.parametrize(
    ("events", "at", "shown"),
    [
        ("a=1 b=2", 1, "selection 0, a#0 b#1: b.x = a.x: 2 = 1 is false"),
        ("a=2 c=1", 1, "selection 0, a#0 c#1: c.x > a.x: 1 > 2 is false"),
        ("a=2 d=1", 0, "selection 0, a#0: waits for b or c"),
    ],
)
def test_what_stopped_a_candidate_names_the_component_that_the_event_stands_for(
    tmp_path: Path, events: str, at: int, shown: str
) -> None:
    answer = told(tmp_path, events, EITHER, at)
    assert shown in "\n".join(lines_of(answer))


def test_an_event_is_tested_against_each_component(tmp_path: Path) -> None:
    answer = told(tmp_path, "a=1 b=1 c=9", EITHER, "events.json:2")
    assert {test.component: test.holds for test in answer.components} == {"a": False, "b": False, "c": False}
    answer = told(tmp_path, "a=1 b=1 c=9", EITHER, 1)
    assert {test.component: test.holds for test in answer.components} == {"a": False, "b": True, "c": True}
    assert [str(member) for member in answer.matches[0].events] == ["a#0", "b#1"]


def test_of_conditions_that_are_looked_up_the_one_of_its_component_is_told(tmp_path: Path) -> None:
    either = """pattern: {sequence: [a: type = 'a', disjunction: [b: type = 'b', c: type = 'c']]}
    where: b.x = a.x and a.x = c.x
    within: 5 s"""
    answer = told(tmp_path, "a=1 c=2", either, 1)
    assert "selection 0, a#0 c#1: a.x = c.x: 1 = 2 is false" in "\n".join(lines_of(answer))


ALTERNATIVES = """pattern:
      disjunction:
        - sequence: [a: type = 'a', b: type = 'b']
        - sequence: [c: type = 'c', d: type = 'd']
    within: 5 s"""


@pytest.mark.parametrize(
    ("events", "context", "at", "shown"),
    [
        ("a d", "each, zero", 0, "selection 0, a#0: waits for b"),
        (
            "a d",
            "each, zero",
            1,
            "  d#1: no c came before d#1",
        ),
        (
            "a c d b",
            "each, selected",
            0,
            "selection 0, a#0 b#3: #2 closed the selection that #0 opened",
        ),
    ],
)
def test_each_alternative_is_followed_by_itself(
    tmp_path: Path, events: str, context: str, at: int, shown: str
) -> None:
    rule = f"{ALTERNATIVES}\n    context: {context}"
    assert shown in "\n".join(lines_of(told(tmp_path, events, rule, at)))
