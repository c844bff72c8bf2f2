"""What `why` says of an event that one before it keeps from the first component."""

from __future__ import annotations

from pathlib import Path

from spark_pace.reasons.answer import lines_of
from tests.unit.reasons.test_why import told

SEEN = (
    "pattern: {sequence: [{name: n, when: type = 'a', not: true, within: 3 s}, a: type = 'a' and x > 0]}\n"
    "    where: n.x = a.x"
)


def test_it_names_the_event_that_forbids(tmp_path: Path) -> None:
    answer = told(tmp_path, "a=1 a=2 a=1 c=1 a=1", SEEN, "events.json:4")
    lines = list(lines_of(answer))
    test = "not n within 3 s where n.x = a.x"
    assert (
        f"               a: no, {test} does not hold: n = '#2, events.json:2 at 2024-01-01T00:00:02Z'"
        in lines
    )
    assert answer.components[1].conditions[-1].holds is False
    assert (answer.matches, answer.candidates) == ((), ())


def test_it_says_that_none_forbids(tmp_path: Path) -> None:
    answer = told(tmp_path, "a=1 a=2 b b b a=1", SEEN, "events.json:5")
    assert [component.holds for component in answer.components] == [True, True]
    assert answer.components[1].conditions[-1].values == {}
    assert len(answer.matches) == 1


RISES = "type = 'n' and x > prev(x)"
RISING = f"pattern: {{sequence: [{{name: n, when: {RISES}, not: true, within: 3 s}}, a: type = 'a']}}"


def test_it_tests_conditions_on_the_events_before_that_event(tmp_path: Path) -> None:
    lines = list(lines_of(told(tmp_path, "n=1 n=2 a", RISING, 2)))
    assert any("not n within 3 s does not hold: n = '#1, events.json:1" in line for line in lines)
    assert len(told(tmp_path, "n=2 n=1 a", RISING, 2).matches) == 1


def test_an_event_that_only_forbids_is_in_the_stream(tmp_path: Path) -> None:
    answer = told(tmp_path, "n a", SEEN.replace("'a', not", "'n', not"), 0)
    assert (answer.seq, answer.not_in_stream) == (0, None)
    assert [component.holds for component in answer.components] == [True, False]


def test_it_tells_what_forbids_in_each_span(tmp_path: Path) -> None:
    rest = (
        "span: {open: type = 'o', close: type = 'c', within: 1 h}\n"
        "    pattern: {sequence: [{name: n, when: type = 'n', not: true}, a: type = 'a', b: type = 'b']}"
    )
    lines = list(lines_of(told(tmp_path, "o n o a b c", rest, 3)))
    inside = [line for line in lines if "in it a:" in line]
    assert [line.split("in it ")[1] for line in inside] == [
        "a: yes",
        "a: no, not n does not hold: n = '#1, events.json:1 at 2024-01-01T00:00:01Z'",
    ]
    assert sum(" a#3 b#4" in line for line in lines) == 1
