"""What `why` says of folds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from spark_pace.errors import ConfigError
from spark_pace.reasons import Why, why
from spark_pace.reasons.answer import FoldStep, lines_of
from spark_pace.rules import load_rules

FOLDS = """
events: {schema: "time TIMESTAMP, type STRING, x BIGINT", event_time: time}
rules:
  - name: door
    partition_by: [x]
    forget_key_after: 3 h
    fold:
      initial: closed
      moves:
        - {from: closed, when: type = 'o', to: open}
        - {from: open, when: x > prev(x), to: ajar, emit: false}
        - {from: [open, ajar], to: closed}
  - name: of_python
    fold: {function: m:f, version: 3}
    emit: {total: BIGINT}
"""


EVENTS = """\
{"time": "2024-01-01T00:00:00Z", "type": "c", "x": 1}
{"time": "2024-01-01T00:00:01Z", "type": "o", "x": 1}
{"time": "2024-01-01T00:00:02Z", "type": "o", "x": 1}
"""


def answered(folder: Path, rule: str, at: int, key: str | None) -> Why:
    (folder / "events.json").write_text(EVENTS)
    return why(load_rules(FOLDS.replace("3 h", "1 s")), folder / "events.json", rule=rule, at=at, key=key)


def test_why_tells_the_state_and_each_move_that_leaves_it(tmp_path: Path) -> None:
    assert list(lines_of(answered(tmp_path, "door", 1, '{"x": 1}')))[2:] == [
        "  state        closed from the beginning; move 1 takes it to open",
        "  moves        move 1, from closed to open: yes",
        "  matches      0, of selection 0, at 2024-01-01T00:00:01Z: event#1",
    ]
    last = answered(tmp_path, "door", 2, '{"x": 1}')
    assert last.fold == FoldStep("open", "2024-01-01T00:00:01Z", "closed", 3)
    assert list(lines_of(last))[3:5] == [
        "  moves        move 2, from open to ajar: no, x > prev(x, 1) does not hold: x = 1, prev(x, 1) = 1",
        "               move 3, from open or ajar to closed: yes",
    ]
    nothing = list(lines_of(answered(tmp_path, "door", 0, '{"x": 1}')))
    assert nothing[2:] == [
        "  state        closed from the beginning; no move fits",
        "  moves        move 1, from closed to open: no, type = 'o' does not hold: type = 'c'",
        "  matches      none",
    ]


def test_why_calls_no_function(tmp_path: Path) -> None:
    answer = answered(tmp_path, "of_python", 1, None)
    assert (answer.seq, answer.fold, answer.matches) == (1, FoldStep(), ())
    assert list(lines_of(answer))[2:] == ["  not told     what the function makes of an event"]


OVER_RULES = """
events: {schema: "time TIMESTAMP, type STRING, x BIGINT", event_time: time}
rules:
  - name: low
    fold: m:f
    emit: {total: BIGINT}
  - name: door
    fold: {initial: shut, moves: [{from: any, when: x = 1, to: open}]}
    emit: {x: x}
  - name: over_door
    from: door
    fold: {initial: calm, moves: [{from: calm, when: x = prev(x), to: alarmed}]}
  - {name: over_low, from: low, fold: {initial: calm, moves: [{from: calm, when: total = 1, to: alarmed}]}}
  - {name: of_python, from: door, fold: "m:f"}
"""


def test_why_goes_down_from_folds_over_folds_and_calls_no_function_on_the_way(tmp_path: Path) -> None:
    (tmp_path / "events.json").write_text(EVENTS)
    rules, events = load_rules(OVER_RULES), tmp_path / "events.json"
    answer = why(rules, events, rule="over_door", at="door:1")
    assert answer.fold == FoldStep("calm", None, "alarmed", 1)
    assert len(answer.matches) == 1
    must = "must neither have nor stand above a Python operator or fold, for none is called here"
    for name, other in {"over_low": "low", "of_python": "of_python"}.items():
        message = f"--rule — {must}; got {name}, with that of {other}. Ask about a rule below."
        with pytest.raises(ConfigError, match=re.escape(message)):
            why(rules, events, rule=name, at="events.json:1")
