"""Reads golden cases with `times`, `not` and `contiguity`, which the reader of rule files does not know."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from spark_pace.core.expr import Aggregate, Column, Expr, conjunction, walk
from spark_pace.core.plan.rule import Component, Conjunct, EmitField, Pattern, Rule, Times, Within
from spark_pace.rules.document.document import Scalar
from spark_pace.rules.document.report import Place, Report
from spark_pace.rules.expressions.compile import compile_conjuncts, compile_value
from spark_pace.rules.expressions.scopes import GatheredScope, MatchScope
from spark_pace.rules.expressions.types import Wrong
from spark_pace.rules.pattern import _without_component
from tests.support.golden_cases import DIRECTORY, GoldenCase, golden_cases

FORMS = DIRECTORY / "forms"


@dataclass(frozen=True)
class MixedScope:
    """Columns of components that stand for one event, aggregates of groups."""

    single: MatchScope
    gathered: GatheredScope

    def column(self, prefix: str | None, attribute: str) -> Column | Wrong:
        return self.single.column(prefix, attribute)

    def aggregate(self, function: str, prefix: str | None, attribute: str) -> Aggregate | Wrong:
        return self.gathered.aggregate(function, prefix, attribute)


def times_of(text: str | None) -> Times | None:
    if text is None:
        return None
    if text.endswith("+"):
        return Times(int(text[:-1]), None)
    least, _, most = text.partition("..")
    return Times(int(least), int(most or least))


def load_grouped(case: GoldenCase, directory: Path) -> Rule:
    """The rule of a case: its parts that are known read as ever, the others put in."""
    entries = [
        entry if "name" in entry else {"name": name, "when": test}
        for entry in case.rule["pattern"]["sequence"]
        for name, test in entry.items()
        if "name" not in entry or name == "name"
    ]
    known = [{"name": entry["name"], "when": entry["when"]} for entry in entries]
    left_out = ("contiguity", "where", "emit")
    stripped = {key: value for key, value in case.rule.items() if key not in left_out}
    stripped |= {"pattern": {"sequence": known}, "within": case.rule.get("within", "1 h")}
    rule = replace(case, rule=stripped).load_rule(directory)
    assert rule.pattern is not None
    within = rule.pattern.within if "within" in case.rule else None
    components = [
        replace(
            component,
            times=times_of(None if "times" not in entry else str(entry["times"])),
            negated=entry.get("not", False),
        )
        for component, entry in zip(rule.pattern.components, entries, strict=True)
    ]
    scope = MixedScope(
        MatchScope(rule.schema, tuple(one.name for one in components if one.times is None)),
        GatheredScope(rule.schema, tuple(one.name for one in components if one.times is not None)),
    )
    pattern = replace(
        with_conditions(rule.pattern, components, scope, case.rule.get("where")),
        within=within,
        contiguity=case.rule.get("contiguity", "relaxed"),
    )
    return replace(
        rule,
        pattern=replace(pattern, within=within or implied_window(rule, pattern)),
        emit=emit_of(rule, components, scope, case.rule.get("emit", {})),
    )


def with_conditions(
    pattern: Pattern, components: list[Component], scope: MixedScope, text: str | None
) -> Pattern:
    report = Report()
    found = compile_conjuncts(scalar("where", text), scope, report) if text else []
    assert report.clean, report.problems
    where = []
    for expr in found:
        named = {node.component for node in walk(expr) if isinstance(node, (Column, Aggregate))}
        indices = tuple(index for index, component in enumerate(components) if component.name in named)
        one = components[indices[0]]
        if len(indices) == 1 and one.times is None:
            predicate = conjunction([one.predicate, _without_component(expr)])
            components[indices[0]] = replace(one, predicate=predicate)
        else:
            where.append(Conjunct(expr, indices))
    return replace(pattern, components=tuple(components), where=tuple(where))


def implied_window(rule: Rule, pattern: Pattern) -> Within | None:
    """The most events of a strict match, where there is a most."""
    most = [1 if component.times is None else component.times.most for component in pattern.components]
    if pattern.contiguity == "relaxed" or rule.span is not None or None in most:
        return None
    return Within(events=sum(count or 0 for count in most))


def emit_of(
    rule: Rule, components: list[Component], scope: MixedScope, entries: dict[str, Any]
) -> tuple[EmitField, ...]:
    report = Report()
    exprs: dict[str, Expr | None] = {
        name: compile_value(scalar(name, text), scope, report) for name, text in entries.items()
    }
    assert report.clean, report.problems
    fields = []
    for name, expr in exprs.items():
        assert expr is not None and expr.type != "NULL"
        fields.append(EmitField(name, expr.type, expr))
    return tuple(fields)


def scalar(place: str, text: str) -> Scalar:
    return Scalar(Place(place), text, text, None)


def grouped_cases() -> list[GoldenCase]:
    """Every case of the new forms."""
    return golden_cases(FORMS)
