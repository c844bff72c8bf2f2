"""Explains a rule: where it is evaluated, what runs in parallel, what is carried, what it costs."""

from __future__ import annotations

from typing import Any

from spark_pace.core.plan.rule import Rule
from spark_pace.rules.explanation import work
from spark_pace.rules.explanation.cost import cost_of
from spark_pace.rules.explanation.declared_facts import (
    aggregate_facts,
    filter_facts,
    fold_facts,
    key_facts,
    lookup_facts,
    pattern_facts,
    span_facts,
)
from spark_pace.rules.explanation.facts import EmitFacts, Explanation
from spark_pace.rules.explanation.facts_as_text import json_value, lines_of
from spark_pace.rules.explanation.level_facts import level_facts
from spark_pace.rules.explanation.row_pattern_facts import row_pattern_facts

__all__ = ["explain", "explain_as_json"]


def explain(rule: Rule, source_format: str | None = None) -> tuple[str, ...]:
    """Explain a rule in lines of text; `source_format` is that of its job's source, if it is known."""
    return tuple(lines_of(_explanation(rule, source_format)))


def explain_as_json(rule: Rule, source_format: str | None = None) -> dict[str, Any]:
    """Explain a rule in values that JSON has; `spark_pace.rules.explanation.facts` says what they mean."""
    return json_value(_explanation(rule, source_format))


def _explanation(rule: Rule, source_format: str | None) -> Explanation:
    return Explanation(
        rule=rule.name,
        levels=level_facts(rule),
        filter=filter_facts(rule),
        pattern=None if rule.pattern is None else pattern_facts(rule, rule.pattern),
        operator=rule.operator,
        fold=None if rule.fold is None else fold_facts(rule.fold),
        match_recognize=None if rule.rows is None else row_pattern_facts(rule.rows),
        aggregates=aggregate_facts(rule),
        span=None if rule.span is None else span_facts(rule.span),
        key=key_facts(rule),
        lookup=lookup_facts(rule),
        json=work.json_reader(rule, source_format),
        splitter=work.splitter(rule),
        parallel=work.parallel(rule),
        carried=work.carried(rule),
        order=work.order(rule),
        emits=tuple(EmitFacts(field.name, field.type) for field in rule.emit),
        cost=cost_of(rule),
    )
