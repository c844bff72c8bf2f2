"""Repeated, optional and negated components and strict contiguity: what rule files make of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_pace.core.expr.canonical_text import canonical_text
from spark_pace.core.order import OrderSpec
from spark_pace.core.plan.meaning import rule_parts, used_attributes
from spark_pace.core.plan.plan import build_plan
from spark_pace.core.plan.rule import Component, Pattern, Rule, Times, Within
from spark_pace.errors import RuleError
from spark_pace.rules import load_rules

EVENTS = 'events: {schema: "time TIMESTAMP, kind STRING, id INT, x FLOAT, y FLOAT", event_time: time}\n'
GROUP = "{name: g, when: kind = 'g', times: 1+}"
NEVER = "{name: n, when: kind = 'n', not: true}"
ALL = f"pattern: {{sequence: [a: kind = 'a', {GROUP}, {NEVER}, b: kind = 'b']}}, within: 1 min"


def load(tmp_path: Path, *rules: str) -> tuple[Rule, ...]:
    path = tmp_path / "rules.yaml"
    path.write_text(f"{EVENTS}rules:\n" + "".join(f"  - {{{rule}}}\n" for rule in rules), encoding="utf-8")
    return load_rules(path)


def load_pattern(tmp_path: Path, rule: str) -> Pattern:
    (loaded,) = load(tmp_path, f"name: r, {rule}")
    assert loaded.pattern is not None
    return loaded.pattern


def conditions(pattern: Pattern) -> list[tuple[str, tuple[int, ...]]]:
    return [(canonical_text(conjunct.expr), conjunct.components) for conjunct in pattern.where]


def predicates(pattern: Pattern) -> dict[str, str]:
    return {component.name: canonical_text(component.predicate) for component in pattern.components}


@pytest.mark.parametrize(
    ("written", "times"),
    [
        ("3", Times(3, 3)),
        ("'3'", Times(3, 3)),
        ("2..5", Times(2, 5)),
        ("2..2", Times(2, 2)),
        ("1+", Times(1, None)),
        ("0..1", Times(0, 1)),
        ("0+", Times(0, None)),
        ("1..1000000000", Times(1, 1_000_000_000)),
        ("1", None),
        ("1..1", None),
    ],
)
def test_times_are_read_in_all_forms(tmp_path: Path, written: str, times: Times | None) -> None:
    group = f"{{name: g, when: x = 2, times: {written}}}"
    pattern = load_pattern(tmp_path, f"pattern: {{sequence: [a: x = 1, {group}, b: x = 3]}}, within: 1 s")
    assert [component.times for component in pattern.components] == [None, times, None]


@pytest.mark.parametrize(
    ("times", "text"), [(Times(3, 3), "3"), (Times(2, 5), "2..5"), (Times(0, None), "0+")]
)
def test_times_are_shown_as_they_are_written(times: Times, text: str) -> None:
    assert str(times) == text


def test_a_negated_component_keeps_its_place(tmp_path: Path) -> None:
    pattern = load_pattern(tmp_path, ALL)
    assert [(component.name, component.negated) for component in pattern.components] == [
        ("a", False),
        ("g", False),
        ("n", True),
        ("b", False),
    ]
    one = load_pattern(
        tmp_path, "pattern: {sequence: [a: x = 1, {name: n, when: x = 2, not: false}]}, within: 1 s"
    )
    assert one.components[1] == Component("n", one.components[1].predicate)


def test_conditions_go_to_a_component_that_stands_for_one_event_and_to_a_negated_one(tmp_path: Path) -> None:
    pattern = load_pattern(tmp_path, f"{ALL}, where: n.x > 1 and a.x > 2 and (b.x > 3 and n.id = 4)")
    assert pattern.where == ()
    assert predicates(pattern) == {
        "a": "kind = 'a' and x > 2.0",
        "g": "kind = 'g'",
        "n": "kind = 'n' and x > 1.0 and id = 4",
        "b": "kind = 'b' and x > 3.0",
    }


def test_checkpoints_compare_the_order_of_a_sequence_in_a_conjunction(tmp_path: Path) -> None:
    a, b, c = "a: kind = 'a'", "b: kind = 'b'", "c: kind = 'c'"
    written = [f"{a}, {b}, {c}", f"{{sequence: [{a}, {b}]}}, {c}", f"{{sequence: [{a}, {b}, {c}]}}"]
    rules = [f"name: r{n}, pattern: {{conjunction: [{one}]}}, within: 1 s" for n, one in enumerate(written)]
    parts = [rule_parts(rule) for rule in load(tmp_path, *rules)]
    assert [one["order"] for one in parts] == [
        "conjunction",
        "conjunction; a, then b",
        "conjunction; a, then b, then c",
    ]
    assert not any("where" in one for one in parts)


def test_checkpoints_compare_the_alternatives_of_a_disjunction(tmp_path: Path) -> None:
    a, b, c = "a: kind = 'a'", "b: kind = 'b'", "c: kind = 'c'"
    written = [
        f"{{sequence: [{a}, {b}]}}, {c}",
        f"{a}, {{sequence: [{b}, {c}]}}",
        f"{{sequence: [{a}, {b}, {c}]}}",
    ]
    rules = [f"name: r{n}, pattern: {{disjunction: [{one}]}}, within: 1 s" for n, one in enumerate(written)]
    assert [rule_parts(rule)["order"] for rule in load(tmp_path, *rules)] == [
        "disjunction; a, then b",
        "disjunction; b, then c",
        "disjunction; a, then b, then c",
    ]


def test_a_condition_over_a_group_alone_is_one_on_the_candidate(tmp_path: Path) -> None:
    pattern = load_pattern(tmp_path, f"{ALL}, where: count(g) > 2 and avg(g.x) > 1.5 and last(g.kind) <> 'z'")
    assert conditions(pattern) == [
        ("count(g) > 2", (1,)),
        ("avg(g.x) > 1.5", (1,)),
        ("last(g.kind) <> 'z'", (1,)),
    ]
    assert predicates(pattern)["g"] == "kind = 'g'"


def test_a_condition_has_all_components_that_it_names(tmp_path: Path) -> None:
    pattern = load_pattern(
        tmp_path, f"{ALL}, where: b.x > max(g.x) and n.id = a.id and sum(g.id) + n.id > b.id + a.id"
    )
    assert conditions(pattern) == [
        ("b.x > max(g.x)", (1, 3)),
        ("n.id = a.id", (0, 2)),
        ("(sum(g.id) + n.id) > (b.id + a.id)", (0, 1, 2, 3)),
    ]


def test_emit_reads_groups_through_aggregates_and_others_by_columns(tmp_path: Path) -> None:
    (rule,) = load(
        tmp_path, f"name: r, {ALL}, emit: {{much: count(g), rise: b.x - first(g.x), mean: avg(g.id)}}"
    )
    assert [(field.name, field.type) for field in rule.emit] == [
        ("much", "BIGINT"),
        ("rise", "DOUBLE"),
        ("mean", "DOUBLE"),
    ]


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ("pattern: {sequence: [{name: g, when: x > 1, times: 2}]}, within: 1 s", "first(g.id)"),
        ("pattern: {sequence: [a: x > 1, {name: g, when: x > 1, times: 2}]}, within: 1 s", "a.id"),
    ],
)
def test_an_attribute_of_the_key_is_that_of_the_first_component(tmp_path: Path, rule: str, text: str) -> None:
    (loaded,) = load(tmp_path, f"name: r, {rule}, partition_by: [id], emit: {{who: id}}")
    assert loaded.emit[0].expr is not None
    assert canonical_text(loaded.emit[0].expr) == text


def test_all_selected_reads_all_through_aggregates_in_emit_and_by_their_kind_in_where(tmp_path: Path) -> None:
    (rule,) = load(
        tmp_path,
        f'name: r, {ALL}, context: "all, selected", where: a.x < b.x and count(g) > 1 and n.x > a.x, '
        "emit: {firsts: count(a), last: last(b.x), mean: avg(g.x)}",
    )
    assert rule.pattern is not None
    assert conditions(rule.pattern) == [
        ("a.x < b.x", (0, 3)),
        ("count(g) > 1", (1,)),
        ("n.x > a.x", (0, 2)),
    ]
    assert len(rule.emit) == 3


@pytest.mark.parametrize(
    ("sequence", "within"),
    [
        ("[a: x = 1, b: x = 2, c: x = 3]", 3),
        ("[{name: g, when: x = 1, times: 2..5}, b: x = 2]", 6),
        ("[a: x = 1, {name: g, when: x = 1, times: 0..4}, b: x = 2, {name: h, when: x = 3, times: 2}]", 8),
    ],
)
def test_strict_with_an_upper_bound_implies_a_window(tmp_path: Path, sequence: str, within: int) -> None:
    pattern = load_pattern(tmp_path, f"pattern: {{sequence: {sequence}}}, contiguity: strict")
    assert pattern.contiguity == "strict"
    assert pattern.within == Within(events=within)


@pytest.mark.parametrize("needing", ["context: 'earliest, zero'", "close: window", "where: a.x < b.x"])
def test_the_window_that_strict_implies_is_enough(tmp_path: Path, needing: str) -> None:
    pattern = load_pattern(
        tmp_path, f"pattern: {{sequence: [a: x = 1, b: x = 2]}}, contiguity: strict, {needing}"
    )
    assert pattern.within == Within(events=2)


def test_a_window_that_is_given_is_kept(tmp_path: Path) -> None:
    strict = "pattern: {sequence: [a: x = 1, {name: g, when: x = 2, times: 1+}]}, contiguity: strict"
    assert load_pattern(tmp_path, f"{strict}, within: 5 s").within == Within(time_us=5_000_000)
    assert load_pattern(tmp_path, f"{strict}, span: {{every: 10 s, size: 60 s}}").within is None


@pytest.mark.parametrize("more", ["{name: g, when: x = 2, times: 1+}", "{name: n, when: x = 2, not: true}"])
def test_no_form_needs_a_window_inside_a_span(tmp_path: Path, more: str) -> None:
    inside = f"pattern: {{sequence: [a: x = 1, {more}]}}, span: {{every: 10 s, size: 60 s}}"
    assert load_pattern(tmp_path, inside).within is None
    with pytest.raises(RuleError, match='must have the key "within"'):
        load(tmp_path, f"name: r, pattern: {{sequence: [a: x = 1, {more}]}}")


def test_a_window_may_close_with_negation(tmp_path: Path) -> None:
    pattern = load_pattern(
        tmp_path, f"pattern: {{sequence: [a: x = 1, {NEVER}, b: x = 2]}}, within: 1 s, close: window"
    )
    assert pattern.close == "window"


def test_the_meaning_says_times_not_and_contiguity(tmp_path: Path) -> None:
    (rule,) = load(tmp_path, f"name: r, {ALL}, where: count(g) > 2")
    assert rule_parts(rule)["pattern"] == "a: kind = 'a'; g 1+: kind = 'g'; not n: kind = 'n'; b: kind = 'b'"
    assert rule_parts(rule)["where"] == "count(g) > 2"
    assert "contiguity" not in rule_parts(rule)
    (strict,) = load(
        tmp_path,
        "name: r, pattern: {sequence: [{name: g, when: x = 1, times: 2..5}, {name: h, when: x = 2}, "
        "{name: i, when: x = 3, times: 3}]}, contiguity: strict",
    )
    assert rule_parts(strict)["pattern"] == "g 2..5: x = 1.0; h: x = 2.0; i 3: x = 3.0"
    assert (rule_parts(strict)["contiguity"], rule_parts(strict)["within"]) == ("strict", "9 events")


@pytest.mark.parametrize("change", [("1+", "2+"), ("not: true", "not: false")])
def test_rules_that_differ_in_a_form_differ_in_their_meaning(tmp_path: Path, change: tuple[str, str]) -> None:
    one, other = load(tmp_path, f"name: r, {ALL}", f"name: s, {ALL.replace(*change)}")
    assert rule_parts(one)["pattern"] != rule_parts(other)["pattern"]


def test_a_plan_has_a_bit_for_every_component_and_the_columns_of_aggregates(tmp_path: Path) -> None:
    (rule,) = load(tmp_path, f"name: r, {ALL}, where: max(g.y) > 1 and n.id = a.id, emit: {{s: sum(g.x)}}")
    (planned,) = build_plan([rule], order=OrderSpec()).rules
    assert [bit for bit, _ in planned.bits] == [0, 1, 2, 3]
    assert planned.columns == ("id", "x", "y")
    assert not planned.takes_all
    assert used_attributes(rule) == {"time", "kind", "id", "x", "y"}


def test_a_strict_rule_takes_every_event(tmp_path: Path) -> None:
    (rule,) = load(
        tmp_path, "name: r, pattern: {sequence: [a: x = 1, b: x = 2]}, contiguity: strict, within: 1 s"
    )
    assert build_plan([rule], order=OrderSpec()).rules[0].takes_all


@pytest.mark.parametrize("word", ["call", "comment", "desc", "kill", "load", "set", "show"])
def test_the_beginning_of_a_command_is_a_name_like_any_other(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, word: str
) -> None:
    named = f"pattern: {{sequence: [{word}: kind = 'a', b: kind = 'b']}}, where: {word}.x < b.x, within: 9 s"
    pattern = load_pattern(tmp_path, named)
    assert [component.name for component in pattern.components] == [word, "b"]
    assert conditions(pattern) == [(f"{word}.x < b.x", (0, 1))]
    text = EVENTS.replace("x FLOAT", f"{word} FLOAT")
    (loaded,) = load_rules(f"{text}rules:\n  - {{name: r, pattern: {{sequence: [a: {word} > 1]}}}}\n")
    assert loaded.pattern is not None
    assert predicates(loaded.pattern) == {"a": f"{word} > 1.0"}
    assert not caplog.records


@pytest.mark.parametrize("word", ["alter", "create", "grant", "select"])
def test_a_word_that_cannot_be_a_name_is_refused_in_one_message(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, word: str
) -> None:
    with pytest.raises(RuleError) as refused:
        load(tmp_path, f"name: r, pattern: {{sequence: [{word}: kind = 'a']}}")
    (line,) = str(refused.value).splitlines()
    assert line.endswith(
        f'must not be a word of the expression language; got "{word}". Rename the component.'
    )
    assert not caplog.records
