"""What `why` says where neighbours are asked for: the first event that breaks a candidate."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_pace.reasons.answer import lines_of
from tests.unit.reasons.test_why import told

RULE = """pattern: {{sequence: [{{name: a, when: type = 'a', times: 3}}{then}]}}
    contiguity: strict
    context: {context}"""

BOTH = "a#0 a#1 a#3 a#4 a#5 b#6: a 3: 5 events; contiguity strict: #2 stands between"


@pytest.mark.parametrize(
    ("events", "then", "at", "shown"),
    [
        ("a a x a a a b", ", b: type = 'b'", 0, BOTH),
        ("a a x a a a b", ", b: type = 'b'", 5, "a#3 a#4 a#5 b#6"),
        ("a a a a a b", ", b: type = 'b'", 0, "a#0 a#1 a#2 a#3 a#4 b#5: a 3: 5 events"),
        ("a a a x b", ", b: type = 'b'", 0, "a#0 a#1 a#2 b#4: contiguity strict: #3 stands between"),
        ("x a b", ", b: type = 'b'", 1, "a#1 b#2: a 3: 1 event"),
        ("a a x a", "", 0, "a#0 a#1: a 3: 2 events"),
        ("a a x a", "", 0, "a#0 a#1 a#3: contiguity strict: #2 stands between"),
    ],
)
@pytest.mark.parametrize("context", ["each, zero", "each, selected", "latest, zero"])
def test_the_event_that_breaks_a_strict_group_is_told(
    tmp_path: Path, events: str, then: str, at: int, shown: str, context: str
) -> None:
    rule = RULE.format(then=then, context=context)
    lines = "\n".join(lines_of(told(tmp_path, events, rule, f"events.json:{at}")))
    assert shown in lines
    assert "within 4 events" not in lines


@pytest.mark.parametrize(
    ("events", "then", "shown"),
    [
        ("a a x a", "", "a#0 a#1: a 3: 2 events"),
        ("a a x a", "", "a#0 a#1 a#3: contiguity strict: #2 stands between"),
        ("a a x a b", ", b: type = 'b'", "a#0 a#1 a#3 b#4: contiguity strict: #2 stands between"),
    ],
)
def test_the_same_is_told_of_a_walk(tmp_path: Path, events: str, then: str, shown: str) -> None:
    rule = RULE.format(then=then, context="next, selected")
    assert shown in "\n".join(lines_of(told(tmp_path, events, rule, "events.json:0")))


def test_an_event_that_stands_between_is_told_of_candidates_whose_window_is_over(tmp_path: Path) -> None:
    rule = RULE.format(then=", b: type = 'b'", context="each, zero")
    answer = told(tmp_path, "a a x a a a b", rule, "events.json:2")
    broken = [(one.reasons[0].kind, [by.event.seq for by in one.reasons[0].by]) for one in answer.candidates]
    assert broken == [("contiguity", [2])] * 2


@pytest.mark.parametrize(
    ("events", "pattern", "at", "shown"),
    [
        (
            "a x z b",
            "a: type = 'a', {name: g, when: type = 'x', times: 0..2}, "
            "{name: b, when: type = 'b', follows: strict}",
            1,
            "selection 0, a#0 g#1 b#3: b follows strict: #2 stands between",
        ),
        (
            "a z b z c",
            "a: type = 'a', {name: b, when: type = 'b', follows: strict}, c: type = 'c'",
            2,
            "selection 0, a#0 b#2 c#4: b follows strict: #1 stands between",
        ),
    ],
)
def test_the_event_before_one_that_must_follow_directly_is_told(
    tmp_path: Path, events: str, pattern: str, at: int, shown: str
) -> None:
    rule = f"pattern: {{sequence: [{pattern}]}}\n    within: 9 s"
    assert shown in "\n".join(lines_of(told(tmp_path, events, rule, f"events.json:{at}")))


def test_a_window_of_both_ends_at_the_event_that_fills_it(tmp_path: Path) -> None:
    rule = """pattern: {sequence: [a: type = 'a', b: type = 'b']}
    within: {time: 30 s, events: 3}"""
    answer = told(tmp_path, "a z z b", rule, "events.json:3")
    assert [one.window_ends for one in answer.selections] == ["2024-01-01T00:00:02Z"]
    assert "within 30 s and 3 events: 4 events" in "\n".join(
        lines_of(told(tmp_path, "a z z b", rule, "events.json:0"))
    )


def test_a_walk_that_sought_on_behind_a_break_is_told_to_be_broken_there(tmp_path: Path) -> None:
    rule = """contiguity: strict
    pattern: {sequence: [start: "true", {name: down, when: x < prev(x), times: 3+},
      {name: up, when: x > prev(x), times: 1+}]}
    where: last(up.x) > start.x
    within: 50 events
    context: next, selected"""
    events = " ".join(f"a={x}" for x in (10, 9, 8, 7, 8, 7, 8, 9, 20, 19, 18, 17, 18, 30))
    down = "selection 0, start#0 down#1 down#2 down#3"
    for at, shown in [
        (4, f"{down} up#4: last(up.x) > start.x: 8 > 10 is false"),
        (4, f"{down} up#4 up#6 up#7 up#8: contiguity strict: #5 stands between"),
        (5, "start#4 down#5 up#6 up#7: down 3+: 1 event"),
        (5, "start#5 down#9 down#10 down#11 up#12: contiguity strict: #6, #7, #8 stand between"),
        (9, "start#8 down#9 down#10 down#11 up#12 up#13"),
        (9, "start#9 down#10 down#11 up#12 up#13: down 3+: 2 events"),
    ]:
        assert shown in "\n".join(lines_of(told(tmp_path, events, rule, f"events.json:{at}")))
