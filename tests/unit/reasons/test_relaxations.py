"""The constraints of a pattern, and what is told where they keep an event from matches."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_pace.reasons.relaxations import relaxations
from spark_pace.rules import load_rules
from tests.unit.reasons.test_why import RULES, told

EVERYTHING = """pattern:
      sequence:
        - a: type = 'a'
        - {name: g, when: "type = 'g' and x > last(g.x)", times: 2..4, until: x = 9}
        - {name: n, when: type = 'n', not: true}
        - b: type = 'b'
        - {name: c, when: type = 'c', follows: strict}
    where: a.x = b.x and count(g) > b.x and n.x = a.x
    within: 9 s"""
FOUND = [
    ("where", "a.x = b.x"),
    ("where", "count(g) > b.x"),
    ("group", "g 2..4"),
    ("group", "g 2..4"),
    ("group", "g until x = 9"),
    ("group", "g.x > last(g.x)"),
    ("forbidden", "not n"),
    ("contiguity", "c follows: strict"),
    ("within", "within 9 s"),
]


def test_the_constraints_of_a_rule_are_a_list(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(RULES.format(rest=EVERYTHING), encoding="utf-8")
    (rule,) = load_rules(tmp_path / "rules.yaml")
    assert rule.pattern is not None
    found, pattern = relaxations(rule.pattern), rule.pattern
    assert [(one.kind, one.condition) for one in found] == FOUND
    for one in found:
        pattern, before = one.without(pattern), pattern
        assert pattern != before
    assert [one.kind for one in relaxations(pattern)] == ["forbidden"]  # which forbids nothing any more


ABC = "pattern: {sequence: [a: type = 'a', b: type = 'b', c: type = 'c']}"


@pytest.mark.parametrize(
    ("events", "rest", "at", "shown"),
    [
        (
            "a=1 b=2 d d d c",
            ABC + "\n    where: a.x = b.x\n    within: 3 s",
            1,
            ["selection 0, a#0 b#1 c#2: a.x = b.x: 1 = 2 is false; within 3 s: 5 s"],
        ),
        (
            "a=1 b=2 a=2 c d c",
            ABC + "\n    where: a.x = b.x\n    within: 9 s",
            1,
            ["selection 0, a#0 b#1 c#3: a.x = b.x: 1 = 2 is false"],
        ),
        (
            "c b a",
            ABC,
            1,
            ["b#1: no a came before b#1; the nearest is a#2; no c came after b#1; the nearest is c#0"],
        ),
        (
            "c b",
            ABC + "\n    within: 1 s",
            0,
            ["c#0: no a came before c#0; no b came before c#0; the nearest is b#1"],
        ),
        (
            "a b=1 b=2 c=2",
            ABC + "\n    where: b.x = c.x\n    within: 9 s\n    context: next, zero",
            2,
            ["selection 0, a#0 b#2 c#3: next: the walk took a#0 b#1, and no c behind"],
        ),
        (
            "a a b c",
            ABC + "\n    within: 9 s\n    context: next, selected",
            1,
            ["selection 0, a#1 b#2 c#3: next: the match #0 #2 #3 was taken there"],
        ),
        (
            "a n n c n d d",
            "pattern: {sequence: [a: type = 'a', {name: n, when: type = 'n', not: true}, c: type = 'c']}\n"
            "    within: 9 s",
            2,
            ["selection 0, a#0 c#3: not n: n#2, n#1 forbid it"],
        ),
        (
            "a c d d d d n c",
            "pattern: {sequence: [a: type = 'a', c: type = 'c', {name: n, when: type = 'n', not: true}]}\n"
            "    within: 4 s",
            0,
            [],
        ),
    ],
)  # fmt: skip
def test_no_more_is_told_than_keeps_the_event_from_a_match(
    tmp_path: Path, events: str, rest: str, at: int, shown: list[str]
) -> None:
    answer = told(tmp_path, events, rest, f"events.json:{at}")
    assert [str(candidate) for candidate in answer.candidates] == shown


def test_the_mildest_change_of_a_number_is_told(tmp_path: Path) -> None:
    rest = "pattern: {sequence: [{name: g, when: type = 'g', times: 40}, c: type = 'c']}\n    within: 1 h"
    answer = told(tmp_path, "g " * 33 + "c", rest, "events.json:30")
    assert [one.reasons[0].values for one in answer.candidates] == [{"count": 33}]
    assert "g#9 … 14 more … g#24" in str(answer)


def test_a_negated_component_in_last_place_does_not_blame_the_window(tmp_path: Path) -> None:
    rest = (
        "pattern: {sequence: [a: type = 'a', c: type = 'c', {name: n, when: type = 'n', not: true}]}\n"
        "    within: 4 s"
    )
    for events, shown in {
        "a c n d d d d": "selection 0, a#0 c#1: not n: n#2 forbids it",
        "a d d d d d c n": "selection 0, a#0 c#1: within 4 s: 6 s",
    }.items():
        answer = told(tmp_path, events, rest, "events.json:0")
        assert [str(candidate) for candidate in answer.candidates] == [shown]
