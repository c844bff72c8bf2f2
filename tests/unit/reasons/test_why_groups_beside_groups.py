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
        ("s a b a b c", 2, "s#0 a#1 b#2 b#4 c#5: a 2+: 1 event"),
        ("s a a b a b c", 4, "b begins with b#3"),
        ("s a b c", 3, "a 2+: 1 event"),
        ("s a a b a b c", 5, "s#0 a#1 a#2 b#3 b#5 c#6"),
    ],
)
def test_it_is_told_with_which_event_a_group_begins(tmp_path: Path, events: str, at: int, shown: str) -> None:
    lines = "\n".join(lines_of(told(tmp_path, events, RULE, f"events.json:{at}")))
    assert shown in lines


OPTIONAL = RULE.replace("times: 1+", "times: 0..1")


@pytest.mark.parametrize(
    ("events", "at", "shown"),
    [
        ("s a a b c", 4, "s#0 a#1 a#2 b#3 c#4"),
        ("s a b a c", 4, "s#0 a#1 a#3 c#4"),
        ("s a a b b c", 5, "s#0 a#1 a#2 b#3 b#4 c#5: b 0..1: 2 events"),
        ("s a b c", 3, "s#0 a#1 b#2 c#3: a 2+: 1 event"),
        ("s a a", 2, "s#0 a#2: waits for c"),
        ("s a a b a c", 4, "b begins with b#3"),
    ],
)
def test_an_optional_group_begins_so_too_or_is_empty(
    tmp_path: Path, events: str, at: int, shown: str
) -> None:
    lines = "\n".join(lines_of(told(tmp_path, events, OPTIONAL, f"events.json:{at}")))
    assert shown in lines
