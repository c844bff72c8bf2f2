"""What a right rule file becomes, and that the documentation's own files are right."""

import re
from pathlib import Path

import pytest

from spark_pace.core.expr import Column
from spark_pace.core.expr.canonical_text import canonical_duration, canonical_text
from spark_pace.core.plan.rule import (
    Context,
    CountSpan,
    EventSchema,
    Field,
    GridSpan,
    PredicateSpan,
    Rule,
    Within,
)
from spark_pace.errors import RuleError
from spark_pace.job_file import read_job
from spark_pace.rules import explain, load_rules
from spark_pace.rules.expressions.functions import FUNCTIONS
from tests.support.documents import RULE_PAGES

GUIDE = "\n".join(page.read_text(encoding="utf-8") for page in RULE_PAGES)
EVENTS = 'events: {schema: "time TIMESTAMP, kind STRING, id INT, x FLOAT", event_time: time}\n'
SCHEMA = EventSchema(
    (Field("time", "TIMESTAMP"), Field("kind", "STRING"), Field("id", "BIGINT"), Field("x", "DOUBLE")), "time"
)
AB = "pattern: {sequence: [a: kind = 'a', b: kind = 'b']}"
INCIDENTS = """
rules:
  - name: twice
    within: 1 h
    pattern: {sequence: [a: rule = 'up', b: rule = 'up']}
    where: b.ratio > a.ratio
"""


def load(tmp_path: Path, *rules: str, events: str = EVENTS) -> tuple[Rule, ...]:
    path = tmp_path / "rules.yaml"
    path.write_text(f"{events}rules:\n" + "".join(f"  - {{{rule}}}\n" for rule in rules), encoding="utf-8")
    return load_rules(path)


def test_the_shortest_rule_has_the_defaults(tmp_path: Path) -> None:
    (rule,) = load(tmp_path, f"name: r, {AB}")
    assert rule.schema == SCHEMA
    assert rule.pattern is not None
    assert (rule.merge, rule.partition_by, rule.emit) == ("selection", (), ())
    assert (rule.span, rule.operator, rule.filter) == (None, None, None)
    assert rule.pattern.context == Context("each", "zero")
    assert (rule.pattern.close, rule.pattern.within) == ("completion", None)


@pytest.mark.parametrize(
    ("name", "context"),
    [
        ("recent", "latest, zero"),
        ("continuous", "each, selected"),
        ("chronicle", "earliest, selected"),
        ("cumulative", "all, selected"),
    ],
)
def test_snoop_names_are_contexts(tmp_path: Path, name: str, context: str) -> None:
    (rule,) = load(tmp_path, f"name: r, {AB}, within: 1 min, context: {name}")
    assert rule.pattern is not None
    assert str(rule.pattern.context) == context


@pytest.mark.parametrize(
    ("written", "within"),
    [
        ("30 min", Within(time_us=1_800_000_000)),
        ("500 ms", Within(time_us=500_000)),
        ("7us", Within(time_us=7)),
        ("0 s", Within(time_us=0)),
        ("1 d", Within(time_us=86_400_000_000)),
        ("1000 events", Within(events=1000)),
        ("1 event", Within(events=1)),
    ],
)
def test_lengths_are_read_in_all_units(tmp_path: Path, written: str, within: Within) -> None:
    (rule,) = load(tmp_path, f"name: r, {AB}, within: {written}")
    assert rule.pattern is not None
    assert rule.pattern.within == within


@pytest.mark.parametrize(
    "context",
    [
        "each, zero",
        "latest, zero",
        "next, zero",
        "each, selected",
        "latest, selected",
        "next, selected",
        "earliest, selected",
    ],
)
def test_a_plain_sequence_needs_no_window_in_these_contexts(tmp_path: Path, context: str) -> None:
    assert load(tmp_path, f'name: r, {AB}, context: "{context}", where: a.x > 1 and b.x > 2')


@pytest.mark.parametrize("context", ["earliest, zero", "all, selected"])
def test_other_contexts_need_a_window_unless_a_span_bounds_them(tmp_path: Path, context: str) -> None:
    with pytest.raises(RuleError, match='must have the key "within"'):
        load(tmp_path, f'name: r, {AB}, context: "{context}"')
    assert load(tmp_path, f'name: r, {AB}, context: "{context}", span: {{every: 10 s, size: 60 s}}')


def test_a_condition_over_one_component_joins_its_predicate(tmp_path: Path) -> None:
    (rule,) = load(tmp_path, f"name: r, {AB}, within: 5 s, where: b.x > 1 and a.id = b.id and b.x < 9")
    assert rule.pattern is not None
    assert [canonical_text(component.predicate) for component in rule.pattern.components] == [
        "kind = 'a'",
        "kind = 'b' and x > 1.0 and x < 9.0",
    ]
    assert [(canonical_text(conjunct.expr), conjunct.components) for conjunct in rule.pattern.where] == [
        ("a.id = b.id", (0, 1))
    ]


def test_a_span_is_split_by_what_mentions_the_opening_event(tmp_path: Path) -> None:
    (rule,) = load(
        tmp_path,
        "name: r, span: {open: kind = 'a', close: \"kind = 'b' and id = open.id\", within: 5 s}, "
        "operator: m.n:f, emit: {total: int}",
    )
    assert isinstance(rule.span, PredicateSpan)
    assert [canonical_text(expr) for expr in (rule.span.open, rule.span.close, *rule.span.close_where)] == [
        "kind = 'a'",
        "kind = 'b'",
        "id = open.id",
    ]
    assert (rule.operator, rule.emit[0].type, rule.emit[0].expr) == ("m.n:f", "BIGINT", None)


def test_spans_on_a_grid_are_of_time_or_of_counts(tmp_path: Path) -> None:
    time, count = load(
        tmp_path,
        f"name: r, span: {{every: 10 s, size: 1 min}}, {AB}",
        f"name: s, span: {{every: 5 events, size: 10 events}}, {AB}",
    )
    assert (time.span, count.span) == (GridSpan(10_000_000, 60_000_000), CountSpan(5, 10))


def test_an_attribute_of_the_key_may_be_emitted_without_a_component(tmp_path: Path) -> None:
    (rule,) = load(tmp_path, f"name: r, {AB}, partition_by: [id], emit: {{double: id * 2}}")
    assert rule.emit[0].expr is not None
    assert Column("a", "id", "BIGINT") in getattr(rule.emit[0].expr, "arguments", ())


def test_events_may_come_from_the_caller(tmp_path: Path) -> None:
    with pytest.raises(RuleError, match="must say what an event looks like"):
        load(tmp_path, f"name: r, {AB}", events="")
    assert load_rules([tmp_path / "rules.yaml"], events=SCHEMA)[0].schema == SCHEMA


def test_names_must_differ_across_files(tmp_path: Path) -> None:
    load(tmp_path, f"name: r, {AB}")
    (tmp_path / "more.yaml").write_text(f"rules: [{{name: r, {AB}}}]", encoding="utf-8")
    with pytest.raises(RuleError, match="must be a name of its own"):
        load_rules([tmp_path / "rules.yaml", tmp_path / "more.yaml"])


def test_yes_and_on_are_text_and_names_may_be_quoted(tmp_path: Path) -> None:
    (rule,) = load(tmp_path, f'name: "on", {AB}, description: yes')
    assert (rule.name, rule.description) == ("on", "yes")


def test_a_duration_is_shown_in_its_largest_whole_unit() -> None:
    assert [canonical_duration(time_us) for time_us in (0, 90_000_000, 3_600_000_000, 1_500)] == [
        "0 d",
        "90 s",
        "1 h",
        "1500 us",
    ]


def complete_files(first_key: str) -> list[str]:
    return [
        block
        for block in re.findall(r"```yaml\n(.*?)```", GUIDE, re.DOTALL)
        if re.match(rf"(#.*\n)*{first_key}:", block) and "\nrules:" in block
    ]


@pytest.mark.parametrize("text", complete_files("events"))
def test_the_rule_files_of_the_guide_are_right_and_explained(tmp_path: Path, text: str) -> None:
    (tmp_path / "rules.yaml").write_text(text, encoding="utf-8")
    for rule in load_rules(tmp_path / "rules.yaml"):
        lines = explain(rule)
        assert lines[0] == f"rule {rule.name}"
        assert all(
            any(line.startswith(f"  {label}") for line in lines)
            for label in ("splitter", "parallel", "carried", "bounded by", "order")
        )


def test_the_guide_has_rule_files_and_job_files(tmp_path: Path) -> None:
    files, table = complete_files("name")
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "rules.yaml").write_text(complete_files("events")[0], encoding="utf-8")
    (tmp_path / "conf" / "incidents.yaml").write_text(INCIDENTS, encoding="utf-8")
    for job in (files, table):
        (tmp_path / "conf" / "job.yaml").write_text(job, encoding="utf-8")
        assert read_job(tmp_path / "conf" / "job.yaml").rules
    assert len(complete_files("events")) >= 2


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_the_guide_names_every_function(name: str) -> None:
    assert f"`{name}(" in GUIDE


def test_the_guide_shows_the_message_of_a_wrong_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RuleError) as caught:
        load(Path("."), f"name: r, {AB}, within: 10 parsecs")
    assert re.sub(r":\d+:\d+", "", str(caught.value)) in re.sub(r":\d+:\d+", "", GUIDE)
