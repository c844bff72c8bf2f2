"""What a right rule file becomes, and that the documentation's own files are right."""

import re
from pathlib import Path

import pytest

from spark_pace.core.plan.meaning import rule_parts
from spark_pace.core.plan.rule import EventSchema, Field, Rule
from spark_pace.errors import RuleError
from spark_pace.job_file import read_job
from spark_pace.rules import explain, load_rules
from spark_pace.rules.expressions.functions import FUNCTIONS
from tests.support.documents import RULE_PAGES
from tests.support.golden_cases import DIRECTORY, GoldenCase, golden_cases

GUIDE = "\n".join(page.read_text() for page in RULE_PAGES)
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


def load(rule: str) -> tuple[Rule, ...]:
    return load_rules(f"{EVENTS}rules:\n  - {{{rule}}}\n")


@pytest.mark.parametrize("case", golden_cases(DIRECTORY / "meaning"), ids=lambda case: case.name)
def test_a_rule_means_what_the_golden_case_says(case: GoldenCase) -> None:
    parts, means = rule_parts(case.load_rule()), case.told["means"]
    assert {name: parts.get(name) for name in means} == means


def test_events_may_come_from_the_caller() -> None:
    rule = f"rules:\n  - {{name: r, {AB}}}\n"
    with pytest.raises(RuleError, match="must say what an event looks like"):
        load_rules(rule)
    assert load_rules(rule, events=SCHEMA)[0].schema == SCHEMA


def test_names_must_differ_across_files() -> None:
    with pytest.raises(RuleError, match="must be a name of its own"):
        load_rules([f"{EVENTS}rules: [{{name: r, {AB}}}]", f"rules:\n  - {{name: r, {AB}}}"])


@pytest.mark.parametrize("word", ["call", "comment", "desc", "kill", "load", "set", "show"])
def test_the_beginning_of_a_command_is_a_name_like_any_other(
    caplog: pytest.LogCaptureFixture, word: str
) -> None:
    sequence = f"sequence: [{word}: kind = 'a', b: {word} > 1]"
    (rule,) = load_rules(
        EVENTS.replace("x FLOAT", f"{word} FLOAT")
        + f"rules: [{{name: r, pattern: {{{sequence}}}, where: {word}.id < b.id, within: 9 s}}]"
    )
    parts = rule_parts(rule)
    assert (parts["pattern"], parts["where"]) == (f"{word}: kind = 'a'; b: {word} > 1.0", f"{word}.id < b.id")
    assert not caplog.records


@pytest.mark.parametrize("word", ["alter", "create", "grant", "select"])
def test_a_word_that_cannot_be_a_name_is_refused_in_one_message(
    caplog: pytest.LogCaptureFixture, word: str
) -> None:
    with pytest.raises(RuleError) as refused:
        load(f"name: r, pattern: {{sequence: [{word}: kind = 'a']}}")
    (line,) = str(refused.value).splitlines()
    assert line.endswith(
        f'must not be a word of the expression language; got "{word}". Rename the component.'
    )
    assert not caplog.records


def test_yes_and_on_are_text_and_names_may_be_quoted() -> None:
    (rule,) = load(f'name: "on", {AB}, description: yes')
    assert (rule.name, rule.description) == ("on", "yes")


def complete_files(first_key: str) -> list[str]:
    return [
        block
        for block in re.findall(r"```yaml\n(.*?)```", GUIDE, re.DOTALL)
        if re.match(rf"(#.*\n)*{first_key}:", block) and "\nrules:" in block
    ]


@pytest.mark.parametrize("text", complete_files("events"))
def test_the_rule_files_of_the_guide_are_right_and_explained(text: str) -> None:
    for rule in load_rules(text):
        lines = explain(rule)
        assert lines[0] == f"rule {rule.name}"
        assert all(
            any(line.startswith(f"  {label}") for line in lines)
            for label in ("splitter", "parallel", "carried", "order")
        )


def test_the_guide_has_rule_files_and_job_files(tmp_path: Path) -> None:
    files, table = complete_files("name")
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "rules.yaml").write_text(complete_files("events")[0])
    (tmp_path / "conf" / "incidents.yaml").write_text(INCIDENTS)
    for job in (files, table):
        (tmp_path / "conf" / "job.yaml").write_text(job)
        assert read_job(tmp_path / "conf" / "job.yaml").rules
    assert len(complete_files("events")) >= 2


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_the_guide_names_every_function(name: str) -> None:
    assert f"`{name}(" in GUIDE


def test_the_guide_shows_the_message_of_a_wrong_file() -> None:
    with pytest.raises(RuleError) as caught:
        load(f"name: r, {AB}, within: 10 parsecs")
    assert re.sub(r"^rules:\d+:\d+", "rules.yaml", str(caught.value)) in re.sub(r":\d+:\d+", "", GUIDE)
