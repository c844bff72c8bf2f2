"""What `explain` says of groups that read what they have so far, and of optional ones at an end."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_pace.rules import explain, explain_as_json, load_rules


def test_a_group_is_told_with_where_it_begins_and_what_it_asks(tmp_path: Path) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text(
        """
events: {schema: "time TIMESTAMP, type STRING, x BIGINT", event_time: time}
rules:
  - name: r
    pattern:
      sequence:
        - {name: a, when: "type = 'a' and x > last(a.x)", times: 0+}
        - {name: n, when: type = 'n', not: true}
        - {name: b, when: type = 'b', follows: relaxed}
    within: 5 s
""",
        encoding="utf-8",
    )
    (rule,) = load_rules(path)
    lines = explain(rule)
    assert [*lines[1:6]] == [
        "  sequence     a 0+: type = 'a'  [intake, on whole columns]",
        "               not n: type = 'n'  [intake, on whole columns]",
        "               b: type = 'b'  [intake, on whole columns]",
        "  group        a: every event that matches it from the initiator on, before b, unless that is the "
        "initiator, those behind the first only with a.x > last(a.x) of the events so far; 0 or more",
        "  forbids      n: an event that matches it between the last a (if there is one) and b",
    ]
    components = explain_as_json(rule)["pattern"]["components"]
    assert [one["further"] for one in components] == ["a.x > last(a.x)", None, None]


CHAIN = """
events: {schema: "time TIMESTAMP, type STRING", event_time: time}
rules:
  - name: r
    pattern:
      sequence:
        - {name: a, when: type = 'a', times: 2+}
        - {name: b, when: type = 'b', times: 0..1}
        - {name: d, when: type = 'd', times: 0..2}
        - c: type = 'c'
    within: 5 s
"""


def groups_told(text: str) -> list[str]:
    (rule,) = load_rules(text)
    return [line.split("group ")[-1].strip() for line in explain(rule) if "group " in line]


def test_an_optional_group_behind_another_is_told_with_where_it_begins() -> None:
    assert groups_told(CHAIN) == [
        "a: every event that matches it from the initiator on, before the first b (else the first d, else c)"
        "; 2 or more",
        "b: every event that matches it between the last a and the first d (or c, where there is none), "
        "beginning with the first one once there are 2 a; 0 to 1",
        "d: every event that matches it between the last b (or the last a, where there is none) and c, "
        "beginning with the first one once there are 2 a; 0 to 2",
    ]


def test_of_a_walk_is_told_to_which_of_several_groups_an_event_goes() -> None:
    assert groups_told(CHAIN + "    context: next, zero") == [
        "a: the first events that match it from the initiator on, before the first b (else the first d, else "
        "c); 2 or more; once there are 2, an event that can go to b, d or c goes to the last of them that it "
        "can",
        "b: the first events that match it between the last a and the first d (or c, where there is none); "
        "0 to 1; an event that can go to d or c goes to the last of them that it can",
        "d: the first events that match it between the last b (or the last a, where there is none) and c; "
        "0 to 2; an event that can go to c goes there",
    ]


OPTIONAL_LAST = """
events: {schema: "time TIMESTAMP, type STRING, x BIGINT", event_time: time}
rules:
  - name: r
    pattern: {sequence: [a: type = 'a', {name: b, when: type = 'b', times: 0..2, follows: strict}]}
    within: 5 s
  - name: ends_of_windows
    pattern: {sequence: [a: type = 'a', {name: b, when: type = 'b', times: 0..2}]}
    within: 5 s
    context: latest, zero
    merge: detection
  - name: inside
    pattern: {sequence: [a: type = 'a', {name: b, when: type = 'b', times: 0+}]}
    span: {every: 1 min, size: 1 min}
"""


def test_an_optional_component_in_last_place_is_told_with_how_long_a_match_waits() -> None:
    told = {rule.name: explain(rule) for rule in load_rules(OPTIONAL_LAST)}
    assert [*told["r"][3:6]] == [
        "  group        b: the first events that match it after a, to the end of the window that starts at "
        "the first event, as long as no other event stands between; 0 to 2",
        "  follows      b: right behind a, and its events right behind each other; every event counts",
        "               a match is decided there: by the frontier alone, so no event has to come; sooner at "
        "the event after which it takes no more",
    ]
    assert [*told["inside"][3:5]] == [
        "  group        b: the first events that match it after a, to the end of the span; 0 or more",
        "               a match is decided there: by the frontier alone, so no event has to come",
    ]
    orders = {name: next(line[15:] for line in lines if "  order " in line) for name, lines in told.items()}
    resolved = "by selection; a match waits until every earlier selection is resolved"
    assert orders == {
        "r": f"{resolved} and its window has ended, or it takes no more b",
        "ends_of_windows": "by the position at which a match is decided; a match waits until its window has "
        "ended",
        "inside": f"{resolved} and its span has ended",
    }


TAKING = """
events: {schema: "time TIMESTAMP, type STRING, x BIGINT", event_time: time}
rules:
  - name: of_its_ends
    pattern: {sequence: [a: type = 'a', b: type = 'b', {name: c, when: type = 'c', times: 0..1}]}
    where: b.x > a.x and first(c.x) = a.x and last(c.x) > b.x
    within: 5 s
  - name: of_others
    pattern:
      sequence: [a: type = 'a', b: type = 'b', d: type = 'd', {name: c, when: type = 'c', times: 0..1}]
    where: first(c.x) = b.x
    within: 5 s
"""


def test_conditions_that_say_which_event_it_takes_are_told() -> None:
    told = {rule.name: rule for rule in load_rules(TAKING)}
    pattern = explain_as_json(told["of_its_ends"])["pattern"]
    assert pattern["where"] == [
        {"condition": "b.x > a.x", "decided": "candidates"},
        {"condition": "first(c.x) = a.x", "decided": "events behind a match"},
        {"condition": "last(c.x) > b.x", "decided": "events behind a match"},
    ]
    assert pattern["components"][2]["takes"] == (
        "the first events that match it after b, to the end of the window that starts at the first event, "
        "only with first(c.x) = a.x and last(c.x) > b.x; 0 to 1"
    )
    alone = "by the frontier alone, so no event has to come"
    sooner = f"{alone}; sooner at the event after which it takes no more"
    decided = [explain_as_json(one)["pattern"]["components"][-1]["decided_by"] for one in told.values()]
    assert decided == [sooner, alone]
    waits = [next(line for line in explain(one) if "  order " in line) for one in told.values()]
    assert [one.endswith("its window has ended, or it takes no more c") for one in waits] == [True, False]
    grows = [explain_as_json(one)["cost"]["growth"] for one in told.values()]
    assert grows[0].endswith(
        "; for each match events of c in its window with c.x = a.x, at most: until one fits"
    )
    assert grows[1].endswith("; a binary search for c for each match")


@pytest.mark.parametrize(
    ("context", "told"),
    [
        (
            "each, zero",
            "terminator; 3 or more, as few as will do: the first event that completes a match ends it",
        ),
        ("latest, zero", "terminator; 3 or more"),
    ],
)
def test_a_group_in_last_place_is_told_to_have_as_few_events_as_will_do(context: str, told: str) -> None:
    rules = {
        "events": {"schema": "time TIMESTAMP, x BIGINT", "event_time": "time"},
        "rules": [
            {
                "name": "many",
                "pattern": {"sequence": [{"name": "a", "when": "x > 0", "times": "3+"}]},
                "within": "1 min",
                "context": context,
            }
        ],
    }
    (line,) = (line for line in explain(*load_rules(rules)) if line.startswith("  group "))
    assert line.endswith(told)
