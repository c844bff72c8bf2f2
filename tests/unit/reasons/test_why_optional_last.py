"""What `why` says of events that could belong to an optional component in last place."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_pace.reasons.answer import lines_of
from tests.unit.reasons.test_why import told

RULE = """pattern: {{sequence: [a: type = 'a', {{name: b, when: {when}, times: {times}}}]}}
    within: 5 s
    context: {context}"""
FURTHER = "\"type = 'b' and x > last(b.x)\""


@pytest.mark.parametrize(
    ("events", "when", "times", "at", "shown"),
    [
        ("a b", "type = 'b'", "0..1", 1, "matches      0, of selection 0, at 2024-01-01T00:00:01Z: a#0 b#1"),
        ("a b b", "type = 'b'", "0..1", 2, "a#0 b#1 b#2: b 0..1: 2 events"),
        ("a c c c c c b", "type = 'b'", "0..1", 6, "a#0 b#1: within 5 s: 6 s"),
        ("a c b", "type = 'b'", "0..1, until: type = 'c'", 2, "a#0 b#2: b: #1 ended it"),
        (
            "a c b",
            "type = 'b'",
            "0..1, follows: strict",
            2,
            "a#0 b#2: b follows strict: #1 stands between",
        ),
        ("a b=2 b=1 b=3", FURTHER, "0+", 2, "a#0 b#1 b#2 b#3: b#2: b.x > last(b.x): 1 > 2 is false"),
        ("b a", "type = 'b'", "0..1", 0, "none was open there"),
    ],
)
@pytest.mark.parametrize("context", ["each, zero", "next, zero", "next, selected"])
def test_it_says_why_an_event_does_not_belong_to_it(
    tmp_path: Path, events: str, when: str, times: str, at: int, shown: str, context: str
) -> None:
    rule = RULE.format(when=when, times=times, context=context)
    lines = "\n".join(lines_of(told(tmp_path, events, rule, f"events.json:{at}")))
    assert shown in lines


@pytest.mark.parametrize("context", ["each, zero", "latest, zero", "next, selected"])
def test_it_says_which_condition_is_false_of_an_event(tmp_path: Path, context: str) -> None:
    rule = RULE.format(when="type = 'b'", times="0..1", context=context)
    rule, policy = rule + "\n    where: first(b.x) = a.x", context.partition(",")[0]
    for at, shown in [
        (1, "a#0 b#1: first(b.x) = a.x: 2 = 1 is false"),
        (2, "a#0 b#2: first(b.x) = a.x: 3 = 1 is false"),
        (3, "Z: a#0 b#3"),
        (4, f"a#0 b#4: {policy}: the match #0 #3 was taken there"),
    ]:
        lines = lines_of(told(tmp_path, "a=1 b=2 b=3 b=1 b=1", rule, f"events.json:{at}"))
        assert shown in "\n".join(lines)


def test_a_walk_that_waits_for_it_says_so_of_other_events(tmp_path: Path) -> None:
    rule = RULE.format(when="type = 'b'", times="0..1", context="next, selected")
    assert "a#1 b#2: the selection that #0 opened was still open" in "\n".join(
        lines_of(told(tmp_path, "a a b", rule, "events.json:1"))
    )


def test_one_component_before_a_negated_one_is_told_of(tmp_path: Path) -> None:
    rule = "pattern: {sequence: [a: type = 'a', {name: n, when: type = 'n', not: true}]}\n    within: 5 s"
    lines = "\n".join(lines_of(told(tmp_path, "a n a", rule, "events.json:0")))
    assert "a#0: not n: n#1 forbids it" in lines
