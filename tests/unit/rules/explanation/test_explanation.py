"""What `explain` says of where a rule is decided, what is carried, and what bounds that."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_pace.job_file import rules_in
from spark_pace.rules import explain, load_rules

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
            "operators match lanes of neighbouring selections",
        ),
        (
            "context: latest, zero\n    partition_by: [x]",
            "opens a selection at every initiator",
            "operators match lanes of whole keys",
        ),
        (
            "context: each, selected",
            "decides where each selection opens and closes",
            "enumerate the matches inside closed selections",
        ),
        (
            "context: each, selected\n    where: a.x < b.x\n    within: 1 s",
            "which takes the matching kernel",
            "enumerate the matches",
        ),
        ("context: earliest, selected", "finds the matches", "operators compute the fields"),
        ("context: next, selected", "finds the matches", "operators compute the fields"),
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
        ("within: 5 s\n    where: a.x = b.x", "none: one stream, split into selections"),
        (
            "within: 5 s\n    where: a.x = b.x and b.x = c.x",
            "none: one stream, split into selections; of what is carried, a batch looks at values of x",
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


ONE = "a: x = 1"
TWO = "b: x = 2"
NEVER = "{name: n, when: x = 4, not: true}"


@pytest.mark.parametrize(
    ("sequence", "context", "line"),
    [
        (
            f"{{name: g, when: x = 3, times: 2..5}}, {TWO}",
            "each, zero",
            "g: every event that matches it from the initiator on, before b; 2 to 5",
        ),
        (
            f"{ONE}, {{name: g, when: x = 3, times: 0+}}, {NEVER}, {TWO}",
            "latest, zero",
            "g: every event that matches it between a and b; 0 or more",
        ),
        (
            f"{ONE}, {{name: g, when: x = 3, times: 3}}",
            "each, selected",
            "g: every event that matches it after a, up to the terminator; 3",
        ),
        (
            "{name: g, when: x = 3, times: 3+}",
            "earliest, selected",
            "g: every event that matches it from the initiator to the terminator; 3 or more",
        ),
        (
            f"{ONE}, {{name: g, when: x = 3, times: 2+}}, {TWO}",
            "next, zero",
            "g: the first events that match it between a and b; 2 or more; "
            "once there are 2, an event that can go to b goes there",
        ),
        (
            f"{ONE}, {{name: g, when: x = 3, times: 0..1}}, {TWO}",
            "next, selected",
            "g: the first events that match it between a and b; 0 to 1; an event that can go to b goes there",
        ),
        (
            f"{ONE}, {{name: g, when: x = 3, times: 2..5}}",
            "next, zero",
            "g: the first events that match it after a, up to the terminator; 2 to 5, as few as will do",
        ),
    ],
)
def test_it_says_what_a_group_takes(tmp_path: Path, sequence: str, context: str, line: str) -> None:
    lines = explained_pattern(tmp_path, sequence, f"within: 5 s, context: '{context}'")
    assert [told[15:] for told in lines if told.startswith("  group ")] == [line]


@pytest.mark.parametrize(
    ("sequence", "gap"),
    [
        (f"{ONE}, {NEVER}, {TWO}", "between a and b"),
        (f"{{name: g, when: x = 3, times: 2}}, {NEVER}, {TWO}", "between the last g and b"),
        (f"{ONE}, {NEVER}, {{name: g, when: x = 3, times: 2}}", "between a and the first g"),
        (
            f"{ONE}, {{name: g, when: x = 3, times: 0..2}}, {NEVER}, {TWO}",
            "between the last g (or a, where there is none) and b",
        ),
        (
            f"{ONE}, {NEVER}, {{name: g, when: x = 3, times: 0..2}}, {TWO}",
            "between a and the first g (or b, where there is none)",
        ),
    ],
)
def test_it_says_what_forbids_in_a_gap(tmp_path: Path, sequence: str, gap: str) -> None:
    lines = explained_pattern(
        tmp_path, sequence, "within: 5 s, where: n.x > b.x" if TWO in sequence else "within: 5 s"
    )
    assert [told[15:] for told in lines if told.startswith("  forbids ")] == [
        f"n: an event that matches it {gap}"
    ]
    carried = next(told for told in lines if told.startswith("  carried "))
    assert carried.endswith("since the oldest selection that is open, those that may forbid among them")
    where = [told for told in lines if told.startswith("  where ")]
    assert all(told.endswith("[on candidates and what may forbid them]") for told in where)


@pytest.mark.parametrize(
    ("rest", "end", "decided", "bound"),
    [
        (
            "within: 5 s",
            "the window that starts at the first event",
            "by the frontier alone",
            "the events of 5 s",
        ),
        (
            "within: 5 s, context: 'each, selected'",
            "the window that starts at the first event",
            "by the frontier alone",
            "the events of twice 5 s",
        ),
        (
            "within: 5 s, context: 'next, selected'",
            "the window that starts at the first event",
            "by the frontier alone",
            "the events of 5 s",
        ),
        (
            "within: 9 events, context: 'earliest, selected'",
            "the window that starts at the first event",
            "when so many events have come",
            "twice 9 events",
        ),
        ("span: {every: 10 s, size: 60 s}", "the span", "by the frontier alone", "the events of 1 min"),
        (
            "within: 5 s, span: {every: 1 event, size: 9 events}",
            "the window that starts at the first event or of the span",
            "when so many events have come",
            "9 events",
        ),
    ],
)
def test_it_says_when_the_last_negated_component_is_decided(
    tmp_path: Path, rest: str, end: str, decided: str, bound: str
) -> None:
    lines = explained_pattern(tmp_path, f"{ONE}, {TWO}, {NEVER}", rest)
    place = next(place for place, told in enumerate(lines) if told.startswith("  forbids "))
    assert lines[place][15:] == f"n: an event that matches it after b, to the end of {end};"
    assert f"a match is decided there: {decided}" in lines[place + 1]
    assert f"  bounded by   {bound}" in lines
    order = next(told for told in lines if told.startswith("  order "))
    assert order.endswith("its window has ended") == ("span" not in rest)


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
    assert "               b: type = 'b'  [intake]; x > open.x  [operators, in each span]" in explain(rule)


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
    assert "  where        count(*) > 1  [on spans]" in lines
    assert "  aggregates   of every event that passes the filter in each span, when it is closed" in lines
    assert "  carried      a row for each pane of 10 s, in spans that are not closed" in lines
    assert "  bounded by   about 6 rows, however many events come" in lines


def test_it_says_where_events_before_are_compared_and_what_is_kept_for_it(tmp_path: Path) -> None:
    path = tmp_path / "rules.yaml"
    when = "\"type = 'b' and x > prev(x, 2)\""
    text = RULES.replace("type = 'b'}}", f"{when}}}}}").replace("when: type = 'c'", "when: x < prev(x)")
    path.write_text(text.format(rest="within: 1 h\n    partition_by: [x]"), encoding="utf-8")
    (rule,) = load_rules(path)
    plan = explain(rule)
    assert "               b: type = 'b'  [intake]; x > prev(x, 2)  [splitter, in stream order]" in plan
    assert "               c: x < prev(x, 1)  [splitter, in stream order]" in plan
    assert any(line.endswith("; for prev: x of the last 2 events for each key") for line in plan)
