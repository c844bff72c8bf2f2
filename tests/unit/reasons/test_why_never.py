"""Which components no event of the input could be."""

from __future__ import annotations

from pathlib import Path

from spark_pace.reasons.answer import lines_of
from tests.unit.reasons.test_why import told


def test_components_that_no_event_could_be_are_told(tmp_path: Path) -> None:
    rest = (
        "filter: x > 0\n    pattern: {sequence: [a: type = 'a', {name: n, when: type = 'n', not: true}, "
        "b: type = 'b', c: x > prev(x)]}\n    within: 9 s"
    )
    answer = told(tmp_path, "a=1 b=0 c a=2", rest, 0)
    assert (answer.passing, answer.of_events) == ({"a": 2, "b": 0}, 4)
    assert "  never        b: true for 0 of 4 events" in lines_of(answer)
    assert "never" not in str(told(tmp_path, "a=1 b=2 c=3", rest, 0))
