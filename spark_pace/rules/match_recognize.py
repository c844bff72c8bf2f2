"""Reads the key ``match_recognize``: a row pattern, in the words of SQL, over the rule's stream."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa

from spark_pace.core.expr import ARROW_TYPES
from spark_pace.core.expr.canonical_text import canonical_duration
from spark_pace.core.match.row_patterns.rows import expression_type
from spark_pace.core.plan.row_pattern import Measure, RowPattern
from spark_pace.core.plan.rule import EmitField, EventSchema, Rule
from spark_pace.errors import ConfigError, Problem
from spark_pace.rules.document.section import Section
from spark_pace.rules.emit import check_name
from spark_pace.rules.forget_key_after import read_forgetting
from spark_pace.rules.partition_by import checked_keys
from spark_pace.rules.row_patterns.clause import Clause, read_clause
from spark_pace.rules.row_patterns.expression_text import ELSEWHERE
from spark_pace.rules.row_patterns.meaning import plan_of
from spark_pace.rules.row_patterns.reader import Reader
from spark_pace.rules.row_patterns.streams import require_bound, require_streaming
from spark_pace.rules.row_patterns.words import Query, read_part

_EXAMPLE = '"ORDER BY time MEASURES LAST(b.x) AS x PATTERN (a b) DEFINE b AS x > 5"'


@dataclass(frozen=True)
class RowRule:
    """What the key says of a rule.

    Attributes:
        pattern: the row pattern.
        partition_by: the attributes of ``PARTITION BY``.
        emit: its measures.
        forget_key_after_us: as in `spark_pace.core.plan.rule.Rule`.
    """

    pattern: RowPattern
    partition_by: tuple[str, ...]
    emit: tuple[EmitField, ...]
    forget_key_after_us: int | None


def read_row_rule(rule: Section, schema: EventSchema | None) -> RowRule | None:
    """Read the key ``match_recognize``, which the rule has, and ``forget_key_after``; None if it is wrong.

    Without a schema the clause is checked as far as that needs no attributes.
    """
    text = rule.text("match_recognize", _EXAMPLE)
    if text is None:
        read_forgetting(rule, None, None, keyed=True)
        return None
    before = rule.report.count
    try:
        query = read_part(text)
        clause = read_clause(Reader(query, 0, len(query.words) - 1), query.words[0])
        after_us = read_forgetting(rule, None, None, keyed=bool(clause.partition))
        found = None if schema is None else _row_rule(rule, (query, clause), schema, after_us)
    except ConfigError as error:
        rule.report.add_all(text.place, map(_within_a_rule, error.problems))
        return None
    return None if rule.report.count > before else found


def with_rows(rule: Rule, found: RowRule | None) -> Rule:
    """The rule with what the key says; None: the rule itself, because what is wrong was reported."""
    if found is None:
        return rule
    return replace(
        rule,
        partition_by=found.partition_by,
        emit=found.emit,
        forget_key_after_us=found.forget_key_after_us,
        rows=found.pattern,
    )


def _within_a_rule(problem: Problem) -> Problem:
    """The problem without the advice to compute something in the query around, which a rule has not."""
    return replace(problem, do=problem.do.removesuffix(f" {ELSEWHERE}"))


def _row_rule(
    rule: Section, read: tuple[Query, Clause], schema: EventSchema, after_us: int | None
) -> RowRule:
    query, clause = read
    plan = row_pattern_of(query, clause, schema)
    if not rule.has("forget_key_after"):
        require_bound(query, clause, plan, "forget_key_after to the rule")
    if after_us is not None and clause.within is not None and (plan.within_us or 0) > after_us:
        must, got = f"must be at most forget_key_after, {canonical_duration(after_us)}", "a longer time"
        query.fail(clause.within.word, must, got, "Shorten it, or lengthen forget_key_after.")
    opening = query.place(clause.opening.start)
    places = [query.place(word.start) for word in clause.partition]
    keys = checked_keys(list(zip(plan.partition, places, strict=True)), opening, schema, rule.report)
    names: list[str] = []
    for one in clause.measures:
        if check_name(one.name.text, query.place(one.name.start), names, keys, rule.report):
            names.append(one.name.text)
    return RowRule(plan, keys, emitted(plan, schema), after_us)


def row_pattern_of(query: Query, clause: Clause, schema: EventSchema) -> RowPattern:
    """The row pattern of a clause over a stream of events.

    Raises:
        ConfigError: the clause is wrong, or asks for what a stream cannot answer.
    """
    fields = [field for field in schema.fields if _is_column(field.name, schema)]
    columns = pa.schema([(field.name, ARROW_TYPES[field.type]) for field in fields])
    plan = plan_of(query, clause, columns, event_time=schema.event_time)
    require_streaming(query, clause, plan, schema)
    return plan


def _is_column(name: str, schema: EventSchema) -> bool:
    """Tell whether an attribute is no STRUCT, nor a part of one."""
    return name not in schema.structs and len(schema.path_of(name)) == 1


def emitted(plan: RowPattern, schema: EventSchema) -> tuple[EmitField, ...]:
    """The measures as fields."""
    types = {field.name: field.type for field in schema.fields}
    return tuple(EmitField(one.name, _type_of(one, types), None) for one in plan.measures)


def _type_of(one: Measure, types: dict[str, str]) -> str:
    if one.stored is not None:
        return types[one.stored]
    kind = expression_type(one.type)
    assert kind is not None, one.type
    return kind
