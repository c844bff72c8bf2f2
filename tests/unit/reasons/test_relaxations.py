"""The constraints of a pattern, and what is told where they keep an event from matches."""

from __future__ import annotations

from pathlib import Path

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


def test_the_constraints_of_a_rule_are_a_list() -> None:
    (rule,) = load_rules(RULES.format(rest=EVERYTHING))
    assert rule.pattern is not None
    found, pattern = relaxations(rule.pattern), rule.pattern
    assert [(one.kind, one.condition) for one in found] == FOUND
    for one in found:
        pattern, before = one.without(pattern), pattern
        assert pattern != before
    assert [one.kind for one in relaxations(pattern)] == ["forbidden"]  # which forbids nothing any more


def test_the_mildest_change_of_a_number_is_told(tmp_path: Path) -> None:
    rest = "pattern: {sequence: [{name: g, when: type = 'g', times: 40}, c: type = 'c']}\n    within: 1 h"
    answer = told(tmp_path, "g " * 33 + "c", rest, "events.json:30")
    assert [one.reasons[0].values for one in answer.candidates] == [{"count": 33}]
    assert "g#9 … 14 more … g#24" in str(answer)
