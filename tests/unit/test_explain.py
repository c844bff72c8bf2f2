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


def test_a_job_file_is_explained_by_its_rules() -> None:
    assert [rule.name for rule in rules_in(["conf/jobs/flights.yaml"])] == [
        rule.name for rule in load_rules("conf/rules/flights.yaml")
    ]
