"""What `why` says of rules over rules: of a match as an event, and of an event, level by level."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spark_pace.core.order import OrderSpec
from spark_pace.errors import ConfigError
from spark_pace.reasons import Why, why
from spark_pace.reasons.answer import lines_of
from spark_pace.rules import load_rules

RULES = """
events: {schema: "time TIMESTAMP, type STRING, x BIGINT", event_time: time}
rules:
  - name: low
    pattern: {sequence: [a: type = 'a', b: type = 'b']}
    where: a.x = b.x
    within: 5 s
    emit: {x: a.x}
  - name: mid
    from: low
    filter: x < 9
    pattern: {sequence: [p: x > 0, q: x > 0]}
    within: 5 s
    emit: {y: q.x}
  - {name: top, from: [mid, events], pattern: {sequence: [m: rule = 'mid', c: type = 'c']}, within: 5 s}
  - {name: other, from: low, pattern: {sequence: [p: x = 7]}}
  - {name: sums, span: {every: 5 s, size: 5 s}, operator: "m:f", emit: {n: BIGINT}}
  - {name: over_sums, from: sums, pattern: {sequence: [p: n = 7]}}
"""
STREAM = "a=1 b=1 a=2 b=2 c a=9 b=9 d"


def told(directory: Path, rule: str, at: str, order: OrderSpec | None = None, stream: str = STREAM) -> Why:
    lines = []
    for number, one in enumerate(stream.split()):
        kind, _, x = one.partition("=")
        second = int(kind[1:] or number)
        lines.append(
            json.dumps({"time": f"2024-01-01T00:00:{second:02}Z", "type": kind[0], "x": int(x or 0)})
        )
    (directory / "e.json").write_text("\n".join(lines) + "\n")
    return why(load_rules(RULES), directory / "e.json", rule=rule, at=at, order=order)


def test_a_match_of_a_lower_rule_is_told_as_an_event_with_what_it_is_made_of(tmp_path: Path) -> None:
    answer = told(tmp_path, "top", "mid:0")
    assert answer.attributes | {"rule": "mid", "y": 2} == answer.attributes
    assert answer.attributes.keys() == {"rule", "opened_at", "matched_at", "y", "time", "type", "x"}
    lines = list(lines_of(answer))
    assert "  matches      0, of selection 0, at 2024-01-01T00:00:04Z: m#0 c#1" in lines
    assert lines[-3:] == [
        "  made of      mid:0, at 2024-01-01T00:00:03Z: p low:0 q low:1",
        "               low:0, at 2024-01-01T00:00:01Z: a e.json:0 b e.json:1",
        "               low:1, at 2024-01-01T00:00:03Z: a e.json:2 b e.json:3",
    ]


def test_of_an_event_of_the_input_it_goes_down_the_levels_and_up_again_with_its_matches(
    tmp_path: Path,
) -> None:
    answer = told(tmp_path, "mid", "e.json:2")
    assert answer.not_in_stream == "its events are matches of low"
    assert [one.rule for one in answer.lower] == ["low"]
    assert [match.out_seq for match in answer.lower[0].matches] == [1]
    assert [(one.rule, one.source, one.offset) for one in answer.upper] == [("mid", "low", 1)]
    assert [match.out_seq for match in answer.upper[0].matches] == [0]
    assert "  rule low, e.json:2 at 2024-01-01T00:00:02Z, #2 of its stream" in lines_of(answer)


def test_a_match_that_does_not_pass_the_filter_is_told_with_what_it_is_made_of(tmp_path: Path) -> None:
    (upper,) = told(tmp_path, "mid", "e.json:6").upper
    assert upper.not_in_stream == "the filter does not hold: x < 9"
    assert [(one.rule, one.match.out_seq) for one in upper.made_of] == [("low", 2)]


def test_an_event_that_a_rule_reads_beside_matches_is_told_as_any_other(tmp_path: Path) -> None:
    taken, left = told(tmp_path, "top", "e.json:4"), told(tmp_path, "top", "e.json:7")
    assert [match.out_seq for match in taken.matches] == [0]
    assert (taken.attributes["rule"], taken.attributes["type"]) == ("events", "c")
    assert left.not_in_stream == "it matches no component"


def test_of_an_event_that_a_rule_reads_beside_matches_it_goes_down_the_levels_too(tmp_path: Path) -> None:
    answer = told(tmp_path, "top", "e.json:2")
    assert answer.not_in_stream == "it matches no component"
    (mid,) = answer.lower
    assert [one.rule for one in mid.lower] == ["low"]
    assert [(one.source, one.offset) for one in answer.upper] == [("mid", 0)]
    assert [match.out_seq for match in answer.upper[0].matches] == [0]
    lines = list(lines_of(told(tmp_path, "top", "e.json:4")))  # an event of the rule's stream
    assert "  matches      0, of selection 0, at 2024-01-01T00:00:04Z: m#0 c#1" in lines
    assert "    rule low, e.json:4 at 2024-01-01T00:00:04Z" in lines


def test_a_rule_below_which_nothing_was_found_says_so_of_every_event(tmp_path: Path) -> None:
    answer = told(tmp_path, "other", "e.json:0", stream="a=1 c c")
    assert answer.not_in_stream == "its events are matches of low"
    assert (answer.lower[0].matches, answer.upper) == ((), ())


def test_late_events_and_bad_records_are_told_by_the_rules_below(tmp_path: Path) -> None:
    (late,) = told(
        tmp_path, "mid", "e.json:2", OrderSpec(by_source=True, before="records"), "a1=1 b9=1 b2=1"
    ).lower
    assert (late.not_in_stream or "").startswith("it is late: ")
    (tmp_path / "e.json").write_text('{"time": 1\n')
    bad = why(load_rules(RULES), tmp_path / "e.json", rule="mid", at="e.json:0")
    assert (bad.not_in_stream or "").startswith("it is a bad record: ")


def test_what_it_cannot_tell_is_refused_in_a_line(tmp_path: Path) -> None:
    message = "for none is called here; got over_sums, with that of sums. Ask about a rule below.$"
    with pytest.raises(ConfigError, match=message):
        told(tmp_path, "over_sums", "e.json:0")


@pytest.mark.parametrize(
    ("rule", "at", "message"),
    [
        ("mid", "low:3", " A match of a lower rule is its name and out_seq: low:0."),
        ("top", "low:0", " A match of a lower rule is its name and out_seq: mid:0."),
        ("mid", "mid:0", " A match of a lower rule is its name and out_seq: low:0."),
        ("low", "low:0", ""),
        ("mid", "f.json:7", " A match of a lower rule is its name and out_seq: low:0."),
    ],
)
def test_a_position_that_is_no_event_of_the_rule_is_refused_with_what_it_is(
    tmp_path: Path, rule: str, at: str, message: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        told(tmp_path, rule, at)
    must = f"--at — must be the position of a record; got {at}. There are 8 records in e.json."
    assert str(caught.value) == f"{must}{message}"
