"""What `explain` says of where a rule is decided, what is parallel, what is carried, and what bounds that."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_pace.job_file import rules_in
from spark_pace.rules import explain, explain_as_json, load_rules

RULES = """
events: {{schema: "time TIMESTAMP, type STRING, x BIGINT", event_time: time}}
rules:
  - name: r
    pattern:
      sequence: [{{name: a, when: type = 'a'}}, {{name: b, when: type = 'b'}}, {{name: c, when: type = 'c'}}]
    {rest}
"""


def explained(directory: Path, rest: str) -> dict[str, str]:
    path = directory / "rules.yaml"
    path.write_text(RULES.format(rest=rest), encoding="utf-8")
    (rule,) = load_rules(path)
    return {line[2:14].strip(): line[15:] for line in explain(rule)[1:]}


@pytest.mark.parametrize(
    ("rest", "splitter", "parallel"),
    [
        (
            "context: each, zero",
            "opens a selection at every initiator",
            "operators match, on lanes of selections",
        ),
        (
            "context: latest, zero\n    partition_by: [x]",
            "opens a selection at every initiator",
            "operators match, on lanes of keys; keys are spread over buckets",
        ),
        (
            "context: each, selected",
            "decides where each selection opens and closes",
            "operators enumerate, on lanes of closed selections",
        ),
        (
            "context: each, selected\n    where: a.x < b.x\n    within: 1 s",
            "which takes the matching kernel",
            "operators enumerate",
        ),
        ("context: earliest, selected", "finds the matches", "operators compute fields"),
        ("context: next, selected", "finds the matches", "operators compute fields"),
    ],
)
def test_it_says_who_decides_and_what_runs_in_parallel(
    tmp_path: Path, rest: str, splitter: str, parallel: str
) -> None:
    plan = explained(tmp_path, rest)
    assert splitter in plan["splitter"]
    assert parallel in plan["parallel"]


def test_it_says_what_reads_json(tmp_path: Path) -> None:
    assert explained(tmp_path, "context: each, zero")["json"].startswith("read by compiled code")
    path = tmp_path / "rules.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace("x BIGINT", "x DECIMAL(5, 2)"), encoding="utf-8")
    (rule,) = load_rules(path)
    assert "  json         read by pyarrow: compiled code does not know x DECIMAL(5,2)" in explain(rule)


@pytest.mark.parametrize(
    ("rest", "carried", "bound"),
    [
        ("context: latest, zero", "the latest partial candidate of each length", "3 events"),
        (
            "context: earliest, selected",
            "the partial candidates that wait",
            "nothing: an initiator that no terminator follows",
        ),
        ("context: latest, zero\n    within: 5 s", "and a window before it", "the events of twice 5 s"),
        (
            "context: latest, zero\n    within: 5 s\n    merge: detection",
            "since the oldest selection that is open",
            "the events of 5 s",
        ),
        (
            "context: each, zero\n    within: 10 events",
            "since the oldest selection that is open",
            "10 events",
        ),
        (
            "partition_by: [x]",
            "is open; the numbers of each key there ever was",
            "nothing: an initiator that no terminator follows",
        ),
        (
            "partition_by: [x]\n    forget_key_after: 90 min",
            "is open; the numbers of each key that is not forgotten",
            "the events of a key with gaps of at most 90 min",
        ),
    ],
)
def test_it_says_what_is_carried_and_what_bounds_that(
    tmp_path: Path, rest: str, carried: str, bound: str
) -> None:
    plan = explained(tmp_path, rest)
    assert carried in plan["carried"]
    assert plan["bounded by"].startswith(bound)


@pytest.mark.parametrize(
    ("rest", "key"),
    [
        ("partition_by: [x]", "x"),
        ("partition_by: [x]\n    forget_key_after: 2 d", "x, each forgotten 2 d after its last event"),
        ("within: 5 s\n    where: a.x = b.x", "none: one stream"),
        (
            "within: 5 s\n    where: a.x = b.x and b.x = c.x",
            "none: one stream; of what is carried, a batch looks at values of x",
        ),
    ],
)
def test_it_says_what_a_batch_looks_at(tmp_path: Path, rest: str, key: str) -> None:
    assert explained(tmp_path, rest)["key"] == key


def test_it_says_whether_a_match_waits(tmp_path: Path) -> None:
    assert explained(tmp_path, "context: each, zero")["order"].endswith("a match waits for nothing")
    waiting = explained(tmp_path, "within: 5 s")["order"]
    assert waiting.endswith("a match waits until every earlier selection is resolved")


def explained_pattern(directory: Path, sequence: str, rest: str) -> tuple[str, ...]:
    path = directory / "rules.yaml"
    path.write_text(
        'events: {schema: "time TIMESTAMP, type STRING, x BIGINT", event_time: time}\n'
        f"rules: [{{name: r, pattern: {{sequence: [{sequence}]}}, {rest}}}]\n",
        encoding="utf-8",
    )
    (rule,) = load_rules(path)
    return explain(rule)


def test_it_says_where_the_conditions_of_every_form_are_decided() -> None:
    (rule,) = load_rules(
        """
events: {schema: "time TIMESTAMP, type STRING, x BIGINT", event_time: time}
rules:
  - name: r
    filter: x <> prev(x)
    pattern:
      sequence:
        - {name: m, when: type = 'm', not: true, within: 1 h}
        - {name: a, when: type = 'a'}
        - {name: g, when: x > last(g.x) and type = 'g', times: 1+, until: x = 0}
        - {name: n, when: type = 'n', not: true}
        - disjunction: [b: type = 'b' and x > prev(x), c: type = 'c']
        - {name: d, when: type = 'd', times: 0..1}
    where: m.x = a.x and b.x = a.x and c.x > a.x and n.x > a.x and first(d.x) = a.x
    within: 5 s
"""
    )
    assert [tuple(one.values()) for one in explain_as_json(rule)["conditions"]] == [
        ("filter", "x <> prev(x, 1)", "splitter, in stream order"),
        ("not m", "type = 'm'", "intake"),
        ("a", "type = 'a'", "intake"),
        ("g", "type = 'g'", "intake"),
        ("g until", "x = 0", "intake"),
        ("g", "g.x > last(g.x)", "candidates"),
        ("not n", "type = 'n'", "intake"),
        ("b or c: b", "type = 'b'", "intake"),
        ("b or c: b", "x > prev(x, 1)", "splitter, in stream order"),
        ("b or c: c", "type = 'c'", "intake"),
        ("d", "type = 'd'", "intake"),
        ("where", "m.x = a.x", "splitter, in stream order"),
        ("where", "b.x = a.x", "candidates"),
        ("where", "c.x > a.x", "candidates"),
        ("where", "n.x > a.x", "candidates and what may forbid them"),
        ("where", "first(d.x) = a.x", "events behind a match"),
    ]


NEVER = "{name: n, when: x = 4, not: true}"


@pytest.mark.parametrize(
    ("rest", "bound"),
    [
        ("within: 5 s", "the events of 5 s"),
        ("within: 5 s, context: 'each, selected'", "the events of twice 5 s"),
        ("within: 5 s, context: 'next, selected'", "the events of 5 s"),
        ("within: 9 events, context: 'earliest, selected'", "twice 9 events"),
        ("within: {time: 30 s, events: 3}", "the events of 30 s and 3 events"),
        ("span: {every: 10 s, size: 60 s}", "the events of 1 min"),
        ("within: 5 s, span: {every: 1 event, size: 9 events}", "9 events"),
    ],
)
def test_it_says_what_waits_and_is_carried_for_a_negated_component_in_last_place(
    tmp_path: Path, rest: str, bound: str
) -> None:
    lines = explained_pattern(tmp_path, f"a: x = 1, b: x = 2, {NEVER}", rest)
    assert f"  bounded by   {bound}" in lines
    order = next(told for told in lines if told.startswith("  order "))
    assert order.endswith("its window has ended") == ("span" not in rest)
    carried = next(told for told in lines if told.startswith("  carried "))
    assert ("those that may forbid among them" in carried) == ("span" not in rest)


@pytest.mark.parametrize(
    ("rest", "kept"),
    [
        (
            "where: n.type = a.type and n.x + 1 = a.x",
            "the time of the last event of 30 d with each value of type, x + 1",
        ),
        ("where: n.x < a.x", "the events of 30 d; each that could be a is compared with them"),
        (
            "where: n.x < a.x and n.type = a.type",
            "the events of 30 d; each that could be a is compared with them, if the values of both are equal",
        ),
        (
            "partition_by: [type], forget_key_after: 40 d",
            "the time of the last event of 30 d for each key",
        ),
        ("span: {every: 10 s, size: 10 s}, where: n.type = a.type", None),
    ],
)
def test_it_says_what_is_kept_for_a_negated_component_in_first_place(
    tmp_path: Path, rest: str, kept: str | None
) -> None:
    never = "{name: n, when: x = 4, not: true, within: 30 d}"
    lines = explained_pattern(tmp_path, f"{never}, a: x = 1", rest)
    assert [line[26:] for line in lines if "for not n: " in line] == ([] if kept is None else [kept])


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


def test_it_says_how_long_a_match_waits_for_an_optional_component_in_last_place() -> None:
    told = {rule.name: explain_as_json(rule) for rule in load_rules(OPTIONAL_LAST)}
    resolved = "every earlier selection is resolved"
    assert {name: one["order"]["waits_until"] for name, one in told.items()} == {
        "r": [resolved, "its window has ended, or it takes no more b"],
        "ends_of_windows": ["its window has ended"],
        "inside": [resolved, "its span has ended"],
        "of_its_ends": [resolved, "its window has ended, or it takes no more c"],
        "of_others": [resolved, "its window has ended"],
    }
    assert told["of_its_ends"]["cost"]["growth"].endswith(
        "; for each match events of c in its window with c.x = a.x, at most: until one fits"
    )
    assert told["of_others"]["cost"]["growth"].endswith("; a binary search for c for each match")


def test_a_job_file_is_explained_by_its_rules() -> None:
    assert [rule.name for rule, _ in rules_in(["conf/jobs/flights.yaml"])] == [
        rule.name for rule in load_rules("conf/rules/flights.yaml")
    ]


def test_a_job_without_json_is_told_of_no_reader_of_json(tmp_path: Path) -> None:
    job = Path("conf/jobs/flights.yaml").read_text(encoding="utf-8")
    for source_format in ("json", "csv", "parquet"):
        path = tmp_path / f"{source_format}.yaml"
        text = job.replace("format: json", f"format: {source_format}")
        path.write_text(text.replace("../rules", f"{Path('conf/rules').resolve()}"), encoding="utf-8")
        for one in rules_in([path]):
            told = any(line.startswith("  json ") for line in explain(*one))
            assert told == (source_format == "json")


def test_it_says_where_the_opening_event_is_compared(tmp_path: Path) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text(
        RULES.format(
            rest="span: {open: type = 'o', close: x = open.x, within: 1 h}\n    where: b.x > open.x"
        ),
        encoding="utf-8",
    )
    (rule,) = load_rules(path)
    lines = [line[15:] for line in explain(rule)]
    assert lines[1:3] == ["open: type = 'o'  [intake]", "close: true  [intake]"]
    assert "b: x > open.x  [operators, in each span]" in lines


def test_it_says_what_is_aggregated(tmp_path: Path) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text(
        """
events: {schema: "time TIMESTAMP, type STRING, x BIGINT", event_time: time}
rules:
  - name: r
    filter: x > 0
    span: {every: 10 s, size: 60 s}
    where: count(*) > 1
    emit: {n: count(*)}
""",
        encoding="utf-8",
    )
    (rule,) = load_rules(path)
    lines = explain(rule)
    assert "               where: count(*) > 1  [spans]" in lines
    assert "  carried      a row for each pane of 10 s, in spans that are not closed" in lines
    assert "  bounded by   about 6 rows, however many events come" in lines


def test_it_says_where_events_before_are_compared_and_what_is_kept_for_it(tmp_path: Path) -> None:
    path = tmp_path / "rules.yaml"
    when = "\"type = 'b' and x > prev(x, 2)\""
    text = RULES.replace("type = 'b'}}", f"{when}}}}}").replace("when: type = 'c'", "when: x < prev(x)")
    path.write_text(text.format(rest="within: 1 h\n    partition_by: [x]"), encoding="utf-8")
    (rule,) = load_rules(path)
    plan = explain(rule)
    assert "               b: x > prev(x, 2)  [splitter, in stream order]" in plan
    assert "               c: x < prev(x, 1)  [splitter, in stream order]" in plan
    assert any(line.endswith("; for prev: x of the last 2 events for each key") for line in plan)


def test_it_says_which_values_of_events_before_are_kept() -> None:
    (rule,) = load_rules(
        """
events: {schema: "time TIMESTAMP, type STRING, x BIGINT, k STRING", event_time: time}
rules:
  - name: r
    filter: x <> prev(x)
    pattern: {sequence: [a: type = 'a', b: type = 'b']}
    where: prev(b.x, 2) = a.x and b.x > prev(b.x)
    within: 5 s
    emit: {before: prev(a.k)}
"""
    )
    told = explain_as_json(rule)
    assert told["carried"]["last_values"] == [
        "x of the last event before the filter",
        "x of the last 2 events",
        "k of the last event",
    ]
    assert told["cost"]["search"]["steps"][0]["equality"] == "prev(b.x, 2) = a.x"


def test_it_tells_of_events_before_in_a_search_from_the_last_one() -> None:
    (rule,) = load_rules(
        """
events: {schema: "time TIMESTAMP, type STRING, x BIGINT", event_time: time}
rules:
  - name: r
    pattern: {sequence: [a: type = 'a', b: type = 'b', c: type = 'c']}
    where: prev(c.x) = a.x
    context: latest, zero
    within: 5 s
"""
    )
    steps = explain_as_json(rule)["cost"]["search"]["steps"]
    assert [one["equality"] for one in steps] == [None, "prev(c.x, 1) = a.x"]


def test_a_comparison_of_each_component_of_a_disjunction_with_the_same_is_looked_up() -> None:
    different, same = load_rules(
        """
events: {schema: "time TIMESTAMP, type STRING, x BIGINT, y BIGINT", event_time: time}
rules:
  - name: r
    pattern: {sequence: [a: type = 'a', disjunction: [b: type = 'b', c: type = 'c']]}
    where: b.x = a.x and a.x = c.y and b.y >= a.y and c.y > a.y
    within: 5 s
  - name: s
    pattern: {sequence: [a: type = 'a', disjunction: [b: type = 'b', c: type = 'c']]}
    where: b.x = a.x and a.x = c.x
    within: 5 s
"""
    )
    (step,) = explain_as_json(different)["cost"]["search"]["steps"]
    assert step["equality"] == "b.x = a.x and a.x = c.y"
    assert step["evaluated"] == ["b.y >= a.y", "c.y > a.y"]
    assert explain_as_json(same)["key"]["join"] == "x"


def test_the_cost_of_each_alternative_of_a_disjunction_of_sequences_is_told() -> None:
    (rule,) = load_rules(
        """
events: {schema: "time TIMESTAMP, type STRING, x BIGINT", event_time: time}
rules:
  - name: r
    pattern: {disjunction: [{sequence: [a: type = 'a', b: type = 'b']}, c: type = 'c']}
    where: a.x + b.x > 3
    within: 5 s
"""
    )
    lines = explain(rule)
    assert "               each initiator: each alternative by itself, as a sequence is" in lines
    assert lines[-1] == (
        "               grows with the tests: a, then b: initiators × (events of b in its window), at most: "
        "until one fits; c: their number; each that matches is a match"
    )


AT_ONCE = "the events of spans that are not closed, for %s needs all values at once"
PANES = "a row for each pane of %s and key%s, in spans that are not closed"


@pytest.mark.parametrize(
    ("span", "field", "carried"),
    [
        ("4 s, size: 6 s", "count(distinct x)", AT_ONCE % "count(distinct x)"),
        ("4 s, size: 6 s", "median(x) + avg(x)", AT_ONCE % "median(x)"),
        ("4 s, size: 6 s", "approx_count_distinct(x)", PANES % ("2 s", ", with 1 sketch of 512 bytes")),
        ("4 s, size: 6 s", "sum(x * 2)", PANES % ("2 s", "")),
        ("1 s, size: 1 d", "avg(x)", PANES % ("1 s", "")),
        ("4 events, size: 6 events", "avg(x)", "the events of spans that are not closed"),
    ],
)
def test_it_says_whether_panes_or_events_are_carried(span: str, field: str, carried: str) -> None:
    (rule,) = load_rules(
        f"""
events: {{schema: "time TIMESTAMP, type STRING, x BIGINT", event_time: time}}
rules:
  - {{name: r, partition_by: [type], span: {{every: {span}}}, emit: {{value: {field}}}}}
"""
    )
    told = explain_as_json(rule)
    assert told["carried"]["events"] == carried
    assert ("whose values are sorted for each span" in told["cost"]["growth"]) == ("at once" in carried)


OVER_RULES = """
events: {schema: "time TIMESTAMP, type STRING, x BIGINT", event_time: time}
rules:
  - name: low
    pattern: {sequence: [a: type = 'a', b: type = 'b']}
    where: a.x = b.x
    within: 20 s
    emit: {x: a.x}
  - {name: mid, from: low, partition_by: [x], pattern: {sequence: [a: x > 1]}, emit: {y: a.x}}
  - name: top
    from: [mid, events]
    pattern: {sequence: [m: rule = 'mid', e: rule <> 'mid' and type = 'c']}
    within: 5 s
"""


def test_it_says_what_a_rule_over_rules_reads_and_for_how_long_matches_wait(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(OVER_RULES, encoding="utf-8")
    low, mid, top = load_rules(tmp_path / "rules.yaml")
    assert explain(mid)[:3] == (
        "rule mid",
        "  from         matches of low; one that waits does so for 20 s at most",
        "  level        1 above the rules over events; what it reads waits while a match below that waits may"
        " come before it, 20 s at most",
    )
    assert explain(top)[1:4] == (
        "  from         matches of mid",
        "               events of the input with type = 'c'",
        "  level        2 above the rules over events; what it reads waits while a match below that waits may"
        " come before it, 20 s at most",
    )
    assert "  parallel     nothing: rules over rules run in the merger, on one core of the driver" in explain(
        mid
    )
    assert explain_as_json(low)["levels"] is None
    told = explain_as_json(top)
    assert told["levels"] == {
        "level": 2,
        "reads": [
            {"rule": "mid", "condition": None, "waits": None},
            {"rule": "events", "condition": "type = 'c'", "waits": None},
        ],
        "waits": "20 s",
        "warning": None,
    }
    assert told["json"] is None
    assert not explain_as_json(mid)["parallel"]["buckets"]


ALL_EVENTS = """
events: {schema: "time TIMESTAMP, type STRING, x BIGINT", event_time: time}
rules:
  - {name: low, pattern: {sequence: [a: type = 'a']}, emit: {x: a.x}}
  - name: state
    from: [low, events]
    fold: {initial: "off", moves: [{from: "off", when: x > 1, to: "on"}, {from: "on", to: "off"}]}
  - {name: sums, from: [low, events], span: {every: 1 h, size: 1 h}, emit: {n: count(*)}}
  - {name: some, from: [low, events], filter: x > 5, span: {every: 1 h, size: 1 h}, emit: {n: count(*)}}
"""


def test_it_counts_the_conditions_of_the_rule_alone(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(OVER_RULES, encoding="utf-8")
    costs = [explain_as_json(rule)["cost"] for rule in load_rules(tmp_path / "rules.yaml")]
    assert [cost["conditions_per_event"] for cost in costs] == [2, 1, 2]


def test_it_warns_where_all_events_go_to_the_driver(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(ALL_EVENTS, encoding="utf-8")
    _, state, sums, some = load_rules(tmp_path / "rules.yaml")
    warning = (
        "all events of the input go to one core of the driver; "
        "read a rule of one component instead, which picks those that are needed"
    )
    for rule in (state, sums):
        assert f"  warning      {warning}" in explain(rule)
        assert explain_as_json(rule)["levels"]["warning"] == warning
    assert explain_as_json(some)["levels"]["warning"] is None
    assert not any("warning" in line for line in explain(some))
