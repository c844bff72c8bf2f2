"""Reads the key ``match_recognize``: a row pattern, in the words of SQL, over the rule's stream.

Over a stream it must be in the order of event times, bounded, and have a way on behind each match.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

import pyarrow as pa

from spark_pace.core.expr import ARROW_TYPES
from spark_pace.core.expr.canonical_text import canonical_duration
from spark_pace.core.match.row_patterns.program import may_be_empty
from spark_pace.core.match.row_patterns.rows import expression_type
from spark_pace.core.plan.row_pattern import (
    Alternatives,
    End,
    Excluded,
    Measure,
    Node,
    Repetition,
    RowPattern,
    Sequence,
    Variable,
)
from spark_pace.core.plan.rule import EmitField, EventSchema, Rule
from spark_pace.errors import ConfigError, Problem
from spark_pace.rules.document.document import Section
from spark_pace.rules.document.report import quote
from spark_pace.rules.emit import check_name
from spark_pace.rules.partition_by import checked_keys, read_forgetting
from spark_pace.rules.row_patterns.clause import Clause, read_clause
from spark_pace.rules.row_patterns.columns import ELSEWHERE
from spark_pace.rules.row_patterns.meaning import plan_of
from spark_pace.rules.row_patterns.words import Query, Reader, read_part

_EXAMPLE = '"ORDER BY time MEASURES LAST(b.x) AS x PATTERN (a b) DEFINE b AS x > 5"'
_BOUND = "Add WITHIN INTERVAL '1' HOUR behind PATTERN, write {1,9} in place of + and *, or add %s."


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


def require_streaming(query: Query, clause: Clause, plan: RowPattern, schema: EventSchema) -> None:
    """Refuse what a stream cannot answer, but for `require_bound`.

    Raises:
        ConfigError: the clause asks for it.
    """
    if clause.rows != "one":
        must, do = "must be ONE ROW PER MATCH over a stream", "Leave it out: events of a match are its rows."
        query.fail(clause.rows_word, must, "ALL ROWS PER MATCH", do)
    _require_order(query, clause, plan, schema)
    if _has_end(plan.pattern):
        behind = (word for word in query.words if word.start > clause.opening.start)
        end = next(word for word in behind if word.is_sign("$"))
        must, do = "must not be part of a pattern over a stream", "A stream has no last row: leave it out."
        query.fail(end, must, '"$"', do)
    _require_way_on(query, clause, plan)


def _require_order(query: Query, clause: Clause, plan: RowPattern, schema: EventSchema) -> None:
    time, ties = schema.event_time, schema.tie_break
    order = [key.column for key in plan.order]
    if order[:1] != [time] or plan.order[0].descending:
        at = clause.order[0].name if clause.order else clause.opening
        got = "none" if not order else " ".join([quote(order[0]), *["DESC"] * plan.order[0].descending])
        query.fail(at, "must be ordered by the event time first, ascending", got, f"Write ORDER BY {time}.")
    rest = [key.column for key in plan.order[1:] if not key.descending and key.nulls_first]
    if len(order) > 1 and (len(rest) < len(order) - 1 or tuple(rest) != ties):
        must = "must be ordered as the stream is: by the event time, then by tie_break of events, nulls first"
        written = [time, *(f"{tie} NULLS FIRST" for tie in ties)]
        do = f"Write ORDER BY {', '.join(written)}, or name another tie_break in events."
        query.fail(clause.order[1].name, must, ", ".join(map(quote, order[1:])), do)


def _require_way_on(query: Query, clause: Clause, plan: RowPattern) -> None:
    """Refuse ``SKIP TO`` if a match may have no such row, or begin with it: a stream must not end there."""
    variables = plan.skip_variables
    if clause.skip_to is None:
        return
    missing = not _always_has(plan.pattern, variables)
    if missing or _may_begin_with(plan.pattern, variables):
        must = f"must be behind the first row of every match, for a stream cannot end there: {plan.skip_name}"
        got = "a pattern that can match without it" if missing else "a pattern that can begin with it"
        do = "Write AFTER MATCH SKIP PAST LAST ROW or SKIP TO NEXT ROW, or name another variable."
        query.fail(clause.skip_to, must, got, do)


def require_bound(query: Query, clause: Clause, plan: RowPattern, forgetting: str) -> None:
    """Refuse a pattern that may hold any number of rows for any time; `forgetting` would bound it, too.

    Raises:
        ConfigError: it may.
    """
    if plan.within_us is None and longest(plan.pattern) is None:
        must, got = "must be bounded over a stream", "a pattern of any number of rows"
        query.fail(clause.opening, must, got, _BOUND % forgetting)


def longest(node: Node) -> int | None:
    """The greatest number of rows that a part can match; None: there is no bound."""
    if isinstance(node, Sequence | Alternatives):
        parts = node.parts if isinstance(node, Sequence) else node.choices
        lengths = [longest(part) for part in parts]
        known = [one for one in lengths if one is not None]
        if len(known) < len(lengths):
            return None
        return sum(known) if isinstance(node, Sequence) else max(known, default=0)
    if isinstance(node, Repetition):
        length = longest(node.part)
        if length == 0:
            return 0
        return None if node.most is None or length is None else node.most * length
    if isinstance(node, Excluded):
        return longest(node.part)
    return int(isinstance(node, Variable))


def _has_end(node: Node) -> bool:
    """Tell whether ``$`` stands in a part."""
    if isinstance(node, Sequence | Alternatives):
        return any(map(_has_end, node.parts if isinstance(node, Sequence) else node.choices))
    return _has_end(node.part) if isinstance(node, Repetition | Excluded) else isinstance(node, End)


def _always_has(node: Node, variables: Collection[int]) -> bool:
    """Tell whether every match of a part has a row of some variables."""
    if isinstance(node, Sequence):
        return any(_always_has(part, variables) for part in node.parts)
    if isinstance(node, Alternatives):
        return all(_always_has(part, variables) for part in node.choices)
    if isinstance(node, Repetition):
        return node.least > 0 and _always_has(node.part, variables)
    if isinstance(node, Excluded):
        return _always_has(node.part, variables)
    return isinstance(node, Variable) and node.number in variables


def _may_begin_with(node: Node, variables: Collection[int]) -> bool:
    """Tell whether the first row of a part may be one of some variables."""
    if isinstance(node, Sequence):
        for part in node.parts:
            if _may_begin_with(part, variables):
                return True
            if not may_be_empty(part):
                return False
        return False
    if isinstance(node, Alternatives):
        return any(_may_begin_with(part, variables) for part in node.choices)
    if isinstance(node, Repetition | Excluded):
        return _may_begin_with(node.part, variables)
    return isinstance(node, Variable) and node.number in variables
