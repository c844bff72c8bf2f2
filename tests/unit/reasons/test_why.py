"""What `why` says, kind by kind, and of what it is asked wrongly."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spark_pace.errors import ConfigError
from spark_pace.job_file import read_job
from spark_pace.reasons import Why, why
from spark_pace.reasons.answer import lines_of
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
    rules.write_text(RULES.format(rest=rest), encoding="utf-8")
    for second, told in enumerate(events.split()):
        kind, _, x = told.partition("=")
        time = f"2024-01-01T00:00:{second:02}Z"
        lines.append(json.dumps({"time": time, "type": kind, "x": int(x or 0), "k": "u"}))
    (directory / "events.json").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return rules, directory / "events.json"


def told(directory: Path, events: str, rest: str, at: str | int, key: str | None = None) -> Why:
    rules, file = written(directory, events, rest)
    return why(load_rules(rules), file, rule="r", at=at, key=key)


AB = "pattern: {sequence: [a: type = 'a', b: type = 'b']}"
ABC = "pattern: {sequence: [a: type = 'a', b: type = 'b', c: type = 'c']}"


@pytest.mark.parametrize(
    ("events", "rest", "at", "shown"),
    [
        (
            "a=1 b=2",
            AB + "\n    where: a.x = b.x\n    within: 5 s",
            1,
            "selection 0, a#0 b#1: a.x = b.x: 1 = 2 is false",
        ),
        (
            "a=1 c=2 c=3 b",
            ABC + "\n    within: 5 s\n    where: b.x <> c.x",
            1,
            "selection 0, a#0 c#1: no b came between a#0 and c#1; the nearest is b#3",
        ),
        (
            "a b=1 a b=2",
            AB + "\n    where: a.x + b.x > 9 or b.x = 8\n    within: 2 s",
            3,
            "selection 1, a#2 b#3: (a.x + b.x) > 9 or b.x = 8 is false with a.x = 0, b.x = 2",
        ),
        (
            "a c b",
            AB + "\n    contiguity: strict",
            2,
            "selection 0, a#0 b#2: contiguity strict: #1 stands between",
        ),
        (
            "a c b",
            AB + "\n    contiguity: strict\n    within: 1 h",
            2,
            "selection 0, a#0 b#2: contiguity strict: #1 stands between",
        ),
        (
            "a c b",
            AB + "\n    contiguity: strict\n    within: 1 h",
            1,
            "selection 0, a#0 b#2: contiguity strict: #1 stands between",
        ),
        (
            "a n b",
            "pattern: {sequence: [a: type = 'a', {name: n, when: type = 'n', not: true}, b: type = 'b']}"
            "\n    within: 9 s",
            1,
            "selection 0, a#0 b#2: not n: n#1 forbids it",
        ),
        (
            "a b n",
            "pattern: {sequence: [a: type = 'a', b: type = 'b', {name: n, when: type = 'n', not: true}]}"
            "\n    within: 9 s",
            1,
            "selection 0, a#0 b#1: not n: n#2 forbids it",
        ),
        (
            "a x x x b",
            "pattern: {sequence: [a: type = 'a', {name: g, when: type = 'x', times: 1..2}, b: type = 'b']}"
            "\n    within: 9 s",
            2,
            "selection 0, a#0 g#1 g#2 g#3 b#4: g 1..2: 3 events",
        ),
        (
            "a a b c",
            "pattern: {sequence: [a: type = 'a', b: type = 'b', c: type = 'c' or type = 'b']}"
            "\n    context: earliest, selected",
            0,
            None,
        ),
        (
            "a a b",
            AB + "\n    context: earliest, selected",
            1,
            "selection 1, a#1 b#2: #2 was used up by the match #0 #2",
        ),
        (
            "a a b",
            AB + "\n    context: latest, zero",
            0,
            "selection 0, a#0 b#2: latest: the match #1 #2 was taken there",
        ),
        (
            "a c b",
            ABC + "\n    context: next, selected",
            1,
            "selection 0, a#0 c#1: no b came between a#0 and c#1; the nearest is b#2",
        ),
        ("a b", ABC + "\n    within: 9 s", 1, "selection 0, a#0 b#1: waits for c"),
        ("a b d d d", ABC + "\n    within: 3 s", 1, "selection 0, a#0 b#1: no c came after b#1"),
    ],
)  # fmt: skip
def test_it_says_what_stopped_a_candidate(
    tmp_path: Path, events: str, rest: str, at: int, shown: str | None
) -> None:
    lines = list(lines_of(told(tmp_path, events, rest, f"events.json:{at}")))
    begins = next(
        (place for place, line in enumerate(lines) if line[2:12].strip() in ("stopped", "unfinished")), None
    )
    assert (None if begins is None else lines[begins][15:]) == shown


def test_it_says_why_an_event_is_not_in_the_stream(tmp_path: Path) -> None:
    rest = AB + "\n    filter: x < 5"
    reasons = [told(tmp_path, "a=1 b=7 d=1", rest, f"events.json:{at}").not_in_stream for at in range(3)]
    assert reasons == [None, "the filter does not hold: x < 5", "it matches no component"]


def test_it_says_why_a_record_is_no_event(tmp_path: Path) -> None:
    rules, file = written(tmp_path, "a b", AB)
    with file.open("a", encoding="utf-8") as more:
        more.write("{nonsense\n")
    reason = why(load_rules(rules), file, rule="r", at="events.json:2").not_in_stream
    assert reason is not None and reason.startswith("it is a bad record: ")


def test_a_heartbeat_and_a_repeat_are_named(tmp_path: Path) -> None:
    _, file = written(tmp_path, "a a d", "pattern: {sequence: [a: type = 'a', b: type = 'b']}")
    (tmp_path / "job.yaml").write_text(
        "{name: j, source: {kind: files, format: json, path: in}, rules: [rules.yaml], sink: {kind: delta, "
        "path: out}, checkpoint: out/c, events: {heartbeat: type = 'd', deduplicate_on: [x], delay: 9 s}}",
        encoding="utf-8",
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


def test_spans_and_what_stopped_inside_of_them_are_told(tmp_path: Path) -> None:
    rest = AB + "\n    span: {every: 2 s, size: 4 s}\n    where: a.x = b.x"
    answer = told(tmp_path, "a=1 b=2 d b=1", rest, "events.json:1")
    assert [(one.selection_id, one.state) for one in answer.selections] == [(1, "open"), (0, "ended")]
    assert [str(candidate) for candidate in answer.candidates] == [
        "selection 1, a#0 b#1: a.x = b.x: 1 = 2 is false",
        "selection 0, a#0 b#1: a.x = b.x: 1 = 2 is false",
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


OPENED = AB + "\n    span: {open: type = 'a', close: type = 'c' and x > open.x, within: 9 s}"
ANY = "pattern: {conjunction: [a: type = 'a', b: type = 'b']}\n    within: 5 s"
IN_ORDER = (
    "pattern: {conjunction: [{sequence: [a: type = 'a', b: type = 'b']}, c: type = 'c']}\n    within: 5 s"
)
EQUAL = ANY + "\n    where: a.x = b.x"
MORE = OPENED + "\n    where: a.x - b.x > open.x"


@pytest.mark.parametrize(
    ("events", "rest", "at", "shown"),
    [
        ("b=1 a=2 b=2", EQUAL, 0, "selection 0, b#0 a#1: a.x = b.x: 2 = 1 is false"),
        ("b b d d d d d d a", ANY, 1, "selection 1, b#1 a#2: within 5 s: 7 s"),
        ("b b d", ANY, 1, "selection 1, b#1: waits for a"),
        ("c b d a", IN_ORDER, 1, "selection 0, c#0 b#1 a#2: a, then b: b#1 came before a#2"),
        ("c a d", IN_ORDER, 1, "selection 0, c#0 a#1: waits for b"),
        ("b a a", ANY + "\n    context: earliest, selected", 2,
         "selection 0, b#0 a#2: #0 was used up by the match #0 #1"),
        ("b b a", ANY + "\n    context: latest, zero", 0,
         "selection 0, b#0 a#2: latest: the match #1 #2 was taken there"),
        ("a=2 b=1 c", MORE, 1, "selection 0, a#0 b#1: (a.x - b.x) > open.x: 1 > 2 is false"),
        ("a b b c=1", OPENED, 2,
         "selection 0, a#0 b#2: #1 closed the selection that #0 opened in the span"),
        ("a c=1", OPENED, 0, "selection 0, a#0: no b came after a#0 in the span"),
    ],
)  # fmt: skip
def test_it_tells_candidates_of_conjunctions_and_in_spans(
    tmp_path: Path, events: str, rest: str, at: int, shown: str
) -> None:
    lines = list(lines_of(told(tmp_path, events, rest, f"events.json:{at}")))
    found = [line[15:] for line in lines if line[2:12].strip() in ("stopped", "unfinished")]
    assert found[0] == shown


def test_conditions_on_other_events_are_told_beside_these(tmp_path: Path) -> None:
    before = "pattern: {sequence: [a: type = 'a', b: type = 'b' and x > prev(x)]}\n    within: 9 s"
    answer = told(tmp_path, "a=1 d=3 b=2", before, 2)
    assert [component.holds for component in answer.components] == [False, False]
    assert answer.components[1].conditions[1].values == {"x": 2, "prev(x, 1)": 3}
    lines = list(lines_of(told(tmp_path, "a=2 b=1 c=1", OPENED, "events.json:2")))
    assert "               span closes: x > open.x depends on other events: x = 1" in lines
    assert "                 in it span closes: no, x > open.x does not hold: x = 1, open.x = 2" in lines


def test_an_event_of_no_component_counts_where_conditions_look_back(tmp_path: Path) -> None:
    before = "pattern: {sequence: [a: type = 'a', b: type = 'b' and x > prev(x)]}\n    within: 9 s"
    answer = told(tmp_path, "d=1 a=1 d=1 b=2", before, 2)
    assert (answer.seq, answer.not_in_stream, len(answer.selections)) == (2, None, 1)
    assert [match.out_seq for match in told(tmp_path, "d=1 a=1 d=1 b=2", before, 3).matches] == [0]


def test_spans_that_are_aggregated_are_told(tmp_path: Path) -> None:
    rest = "span: {every: 1 s, size: 2 s}\n    where: count(*) >= 2 and sum(x) > 3\n    emit: {n: count(*)}"
    answer = told(tmp_path, "a=1 b=2 c=2", rest, 1)
    assert ([match.selection_id for match in answer.matches], answer.untold) == ([2], ())
    assert [str(one) for one in answer.candidates] == ["selection 1: sum(x) > 3: 3 > 3 is false"]
    lines = list(lines_of(answer))
    assert "  matches      0, of selection 2, at 2024-01-01T00:00:03Z" in lines
    assert "  stopped      selection 1: sum(x) > 3: 3 > 3 is false" in lines
