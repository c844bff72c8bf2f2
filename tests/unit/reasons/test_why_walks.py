"""What `why` says of an event that matches only a negated component, where the walk of *next* passes by."""

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
