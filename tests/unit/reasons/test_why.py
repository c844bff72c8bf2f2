"""What `why` says of records that are no events, and of what it is asked wrongly.

`test_golden_answers.py` has what it says of events.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spark_pace.errors import ConfigError
from spark_pace.job_file import read_job
from spark_pace.reasons import Why, why
from spark_pace.rules import load_rules
from tests.support.commands import spark_pace

RULES = """
events: {{schema: "time TIMESTAMP, type STRING, x BIGINT, k STRING", event_time: time}}
rules:
  - name: r
    {rest}
"""


def written(directory: Path, events: str, rest: str) -> tuple[Path, Path]:
    """Files of a rule, and of events such as ``a=1``, one every second, of the key ``u``."""
    rules, lines = directory / "rules.yaml", []
    rules.write_text(RULES.format(rest=rest))
    for second, told in enumerate(events.split()):
        kind, _, x = told.partition("=")
        time = f"2024-01-01T00:00:{second:02}Z"
        lines.append(json.dumps({"time": time, "type": kind, "x": int(x or 0), "k": "u"}))
    (directory / "events.json").write_text("\n".join(lines) + "\n")
    return rules, directory / "events.json"


def told(directory: Path, events: str, rest: str, at: str | int, key: str | None = None) -> Why:
    rules, file = written(directory, events, rest)
    return why(load_rules(rules), file, rule="r", at=at, key=key)


AB = "pattern: {sequence: [a: type = 'a', b: type = 'b']}"


def test_it_says_why_a_record_is_no_event(tmp_path: Path) -> None:
    rules, file = written(tmp_path, "a b", AB)
    with file.open("a") as more:
        more.write("{nonsense\n")
    reason = why(load_rules(rules), file, rule="r", at="events.json:2").not_in_stream
    assert reason is not None and reason.startswith("it is a bad record: ")


def test_a_heartbeat_and_a_repeat_are_named(tmp_path: Path) -> None:
    _, file = written(tmp_path, "a a d", "pattern: {sequence: [a: type = 'a', b: type = 'b']}")
    (tmp_path / "job.yaml").write_text(
        "{name: j, source: {kind: files, format: json, path: in}, rules: [rules.yaml], sink: {kind: delta, "
        "path: out}, checkpoint: out/c, events: {heartbeat: type = 'd', deduplicate_on: [x], delay: 9 s}}",
    )
    job = read_job(tmp_path / "job.yaml")
    shown = [
        why(
            job.rules,
            file,
            rule="r",
            at=f"events.json:{at}",
            order=job.events.order,
            heartbeat=job.events.heartbeat,
        ).not_in_stream
        for at in (1, 2)
    ]
    assert shown == [
        "it is a repeat: an event not long before is equal in x",
        "it is a heartbeat: type = 'd'",
    ]


def test_an_operator_is_not_called_and_not_explained(tmp_path: Path) -> None:
    answer = told(tmp_path, "a b", "operator: nowhere:f\n    span: {every: 1 s, size: 2 s}", 1)
    assert answer.untold == ("what the operator makes of a span",)
    assert [one.there for one in answer.selections] == [True, True]


KEYED = AB + "\n    partition_by: [k]"


@pytest.mark.parametrize(
    ("rest", "asked", "message"),
    [
        (
            AB,
            {"rule": "q", "at": "0"},
            "--rule — must name a rule of the file; got q. Choose from r.",
        ),
        (
            AB,
            {"at": "7"},
            "--at — must be a seq of the rule's stream; got 7. The rule's stream has seq 0 to 1.",
        ),
        (
            AB,
            {"at": "events.json:7"},
            "--at — must be the position of a record; got events.json:7. "
            "There are 2 records in events.json.",
        ),
        (
            AB,
            {"at": "soon"},
            "--at — must be a seq such as 12, or a source and offset such as events.json:12; got soon. "
            "Take them from the events of a match.",
        ),
        (
            AB,
            {"at": "0", "key": "{}"},
            "--key — must be left out: rule r has one stream; got {}. Leave --key out.",
        ),
        (
            KEYED,
            {"at": "0"},
            "--key — must say of which key the seq is: rule r is partitioned by k; got nothing. "
            "Give it as JSON, such as '{\"k\":\"A\"}', or give source:offset.",
        ),
        (
            KEYED,
            {"at": "0", "key": '{"x": 1}'},
            "--key — must say of which key the seq is: rule r is partitioned by k; got {\"x\": 1}. "
            "Give it as JSON, such as '{\"k\":\"A\"}', or give source:offset.",
        ),
        (
            KEYED,
            {"at": "0", "key": '{"k": "v"}'},
            "--key — must be a key of the rule's stream; got {\"k\": \"v\"}. "
            "Take it from a match, or give source:offset.",
        ),
        (
            KEYED,
            {"at": "events.json:0", "key": '{"k": "u"}'},
            "--key — must stand beside a seq only; got events.json:0. "
            "Leave --key out: the position says which event it is.",
        ),
        (
            "pattern: {sequence: [a: type = 'z']}",
            {"at": "0"},
            "--at — must be in the rule's stream; got 0, and no event is. "
            "Give source:offset to see what it lacks.",
        ),
    ],
)  # fmt: skip
def test_what_is_asked_wrongly_is_one_line(
    tmp_path: Path, rest: str, asked: dict[str, str], message: str
) -> None:
    rules, file = written(tmp_path, "a b", rest)
    with pytest.raises(ConfigError) as error:
        why(load_rules(rules), file, **{"rule": "r", **asked})  # type: ignore[arg-type]
    assert str(error.value) == message


def test_a_seq_of_a_key_that_was_forgotten_may_be_several_events(tmp_path: Path) -> None:
    rest = KEYED + "\n    forget_key_after: 1 s"
    with pytest.raises(ConfigError, match="which 2 events have, for the key was forgotten"):
        told(tmp_path, "a b d d a", rest, 0, '{"k": "u"}')


def test_the_command_writes_one_object(tmp_path: Path) -> None:
    written(tmp_path, "a b", KEYED)
    files = ("rules.yaml", "events.json", "--rule", "r", "--at", "1", "--key", '{"k": "u"}', "--json")
    answer = spark_pace("why", *files, cwd=tmp_path)
    found = json.loads(answer.stdout)
    assert (found["seq"], found["key"], found["offset"]) == (1, '{"k":"u"}', 1)
    assert [member["component"] for member in found["matches"][0]["events"]] == ["a", "b"]
