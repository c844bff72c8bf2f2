"""What `why` says of rules whose filter, conditions over components or fields look at the events before."""

from __future__ import annotations

from pathlib import Path

from spark_pace.reasons.answer import lines_of
from tests.unit.reasons.test_why import told

CHANGES = """filter: x <> prev(x)
    pattern: {sequence: [a: type = 'a', b: type = 'b']}
    within: 5 s"""


def test_a_filter_is_tested_with_the_event_before_whether_that_passes_it_or_not(tmp_path: Path) -> None:
    answer = told(tmp_path, "z=1 a=1 b=1 b=2", CHANGES, "events.json:2")
    assert answer.not_in_stream == "the filter does not hold: x <> prev(x, 1)"
    answer = told(tmp_path, "a=1 z=2 b=3", CHANGES, "events.json:1")
    assert answer.not_in_stream == "it matches no component"
    answer = told(tmp_path, "z=0 a=1 z=1 b=2", CHANGES, "events.json:3")
    (test,) = answer.filter
    assert (test.holds, test.values) == (True, {"x": 2, "prev(x, 1)": 1})
    assert [str(member) for member in answer.matches[0].events] == ["a#0", "b#1"]


def test_a_condition_over_components_is_told_with_the_values_before_them(tmp_path: Path) -> None:
    rest = """pattern: {sequence: [a: type = 'a', b: type = 'b']}
    where: b.x > prev(a.x)
    within: 5 s"""
    answer = told(tmp_path, "z=7 a=1 b=2", rest, 2)
    text = "selection 0, a#1 b#2: b.x > prev(a.x, 1): 2 > 7 is false"
    assert text in "\n".join(lines_of(answer))
