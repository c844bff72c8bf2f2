"""What `why` says of a group that directly follows another one: with which event it begins."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_pace.reasons.answer import lines_of
from tests.unit.reasons.test_why import told

RULE = """pattern:
      sequence:
        - s: type = 's'
        - {name: a, when: type = 'a', times: 2+}
        - {name: b, when: type = 'b', times: 1+}
        - c: type = 'c'
    within: 1 h
    context: each, zero"""


@pytest.mark.parametrize(
    ("events", "at", "shown"),
    [
        ("s a b a b c", 2, "s#0 a#1, then b#2: a 2+: 1 event"),
        ("s a a b a b c", 4, "b begins with b#3"),
        ("s a b c", 3, "a 2+: 1 event"),
        ("s a a b a b c", 5, "s#0 a#1 a#2 b#3 b#5 c#6"),
    ],
)
def test_it_is_told_with_which_event_a_group_begins(tmp_path: Path, events: str, at: int, shown: str) -> None:
    lines = "\n".join(lines_of(told(tmp_path, events, RULE, f"events.json:{at}")))
    assert shown in lines
