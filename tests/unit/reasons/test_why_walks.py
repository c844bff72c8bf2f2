"""What `why` says of the walk of *next*, and of a group that ends with the event that was tried."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_pace.reasons.answer import lines_of
from tests.unit.reasons.test_why import told

RULE = """pattern:
      sequence:
        - s: type = 's'
        - {{name: g, when: type = 'g', times: 1..2}}
        - {{name: n, when: type = 'n', not: true}}
        - c: type = 'c'
    within: 1 h
    context: {context}"""
CONTEXTS = pytest.mark.parametrize("context", ["next, zero", "next, selected"])


@CONTEXTS
def test_an_event_behind_a_walk_that_left_some_of_a_group_out_stops_nothing(
    tmp_path: Path, context: str
) -> None:
    answer = told(tmp_path, "s g g g c n", RULE.format(context=context), "events.json:5")
    assert answer.candidates == ()
    assert [selection.state for selection in answer.selections] == ["closed"]


@CONTEXTS
def test_an_event_that_forbids_a_walk_is_told_to_do_so(tmp_path: Path, context: str) -> None:
    answer = told(tmp_path, "s g g g n c", RULE.format(context=context), "events.json:4")
    shown = "selection 0, s#0 g#1 g#2 c#5: not n: n#4 forbids it"
    assert shown in "\n".join(lines_of(answer))


@pytest.mark.parametrize(
    ("events", "at", "shown"),
    [
        ("g", 0, "selection 0, g#0: g 3+: 1 event"),
        ("g g", 1, "selection 0, g#0 g#1: g 3+: 2 events"),
        ("g g", 0, "selection 0, g#0 g#1: g 3+: 2 events"),
    ],
)
def test_an_event_with_which_a_group_ends_is_told_once(
    tmp_path: Path, events: str, at: int, shown: str
) -> None:
    rule = "pattern: {sequence: [{name: g, when: type = 'g', times: 3+}]}\n    within: 9 s"
    answer = told(tmp_path, events, rule, f"events.json:{at}")
    assert f"  {shown}" in "\n".join(f"  {line[15:]}" for line in lines_of(answer))
