"""Reads the key ``match_recognize``: a row pattern, in the words of SQL, over the rule's stream.

Over a stream it must be in the order of event times, bounded, and have a way on behind each match.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import pyarrow as pa

from spark_pace.core.expr import ARROW_TYPES
from spark_pace.core.expr.canonical_text import canonical_duration
from spark_pace.core.match.row_patterns.program import may_be_empty
from spark_pace.core.match.row_patterns.rows import expression_type
from spark_pace.core.plan.row_pattern import (
    Alternatives,
    End,
    Excluded,
    Node,
    Repetition,
    RowPattern,
    Sequence,
    Variable,
)
from spark_pace.core.plan.rule import EmitField, EventSchema, Rule
from spark_pace.errors import ConfigError
from spark_pace.rules.columns import check_name, checked_keys, read_forgetting
from spark_pace.rules.document import Section, quote
from spark_pace.rules.expressions.types import UNKNOWN_EVENTS
from spark_pace.rules.row_patterns.clause import Clause, read_clause
from spark_pace.rules.row_patterns.meaning import plan_of
from spark_pace.rules.row_patterns.words import Query, Reader, read_part

_EXAMPLE = '"ORDER BY time MEASURES LAST(b.x) AS x PATTERN (a b) DEFINE b AS x > 5"'
_BOUND = "Add WITHIN INTERVAL '1' HOUR behind PATTERN, write {1,9} in place of + and *, or add %s."


def read_row_rule(rule: Section, base: Rule) -> Rule:
    """Read the key ``match_recognize``, which the rule has, and ``forget_key_after``; add them to the rule.

    What is wrong is reported, and the rule then stays as it is. Of events that are not known the clause is
    checked as far as that needs no attributes.
    """
    text = rule.text("match_recognize", _EXAMPLE)
    if text is None:
        read_forgetting(rule, None, None, keyed=True)
        return base
    before = rule.report.count
    try:
        query = read_part(text)
        clause = read_clause(Reader(query, 0, len(query.words) - 1), query.words[0])
        after_us = read_forgetting(rule, None, None, keyed=bool(clause.partition))
        unknown = base.schema is UNKNOWN_EVENTS
        found = base if unknown else _row_rule(rule, (query, clause), base, after_us)
    except ConfigError as error:
        rule.report.add_all(text.place, error.problems)
        return base
    return base if rule.report.count > before else found


def _row_rule(rule: Section, read: tuple[Query, Clause], base: Rule, after_us: int | None) -> Rule:
    (query, clause), schema = read, base.schema
    plan = _plan(query, clause, schema)
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
    types = {field.name: field.type for field in schema.fields}
    kinds = [expression_type(one.type) if one.stored is None else types[one.stored] for one in plan.measures]
    fields = (EmitField(one.name, kind or "", None) for one, kind in zip(plan.measures, kinds, strict=True))
    return replace(base, partition_by=keys, emit=(*fields,), forget_key_after_us=after_us, rows=plan)


def _plan(query: Query, clause: Clause, schema: EventSchema) -> RowPattern:
    """The row pattern of a clause over a stream of events, without STRUCTs and what they hold."""
    names = {field.name for field in schema.fields if len(schema.path_of(field.name)) == 1} - {
        *schema.structs
    }
    columns = [(field.name, ARROW_TYPES[field.type]) for field in schema.fields if field.name in names]
    plan = plan_of(query, clause, pa.schema(columns), event_time=schema.event_time)
    require_streaming(query, clause, plan, schema)
    return plan


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
    stream = [(name, False) for name in (schema.event_time, *schema.tie_break)]
    order = [(key.column, key.descending) for key in plan.order]
    if order == stream[:1] or (order == stream and all(key.nulls_first for key in plan.order[1:])):
        return
    at = clause.order[0].name if clause.order else clause.opening
    must = "must be ordered as the stream is: by the event time, and perhaps then by tie_break, nulls first"
    got = ", ".join(f"{quote(column)}{' DESC' * descending}" for column, descending in order) or "none"
    ties = "".join(f", {name} NULLS FIRST" for name in schema.tie_break)
    either = f", or ORDER BY {schema.event_time}{ties}" if ties else ""
    query.fail(at, must, got, f"Write ORDER BY {schema.event_time}{either}.")


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
    lengths = [longest(part) for part in _parts(node)]
    known = [one for one in lengths if one is not None]
    if len(known) < len(lengths):
        return None
    if isinstance(node, Repetition):
        return 0 if known == [0] else None if node.most is None else node.most * known[0]
    most = max(known, default=0) if isinstance(node, Alternatives) else sum(known)
    return most + isinstance(node, Variable)


def _parts(node: Node) -> tuple[Node, ...]:
    if isinstance(node, Repetition | Excluded):
        return (node.part,)
    return node.parts if isinstance(node, Sequence) else getattr(node, "choices", ())


def _has_end(node: Node) -> bool:
    """Tell whether ``$`` stands in a part."""
    return isinstance(node, End) or any(map(_has_end, _parts(node)))


def _always_has(node: Node, variables: Collection[int]) -> bool:
    """Tell whether every match of a part has a row of some variables."""
    if isinstance(node, Variable):
        return node.number in variables
    if isinstance(node, Repetition) and not node.least:
        return False
    of_all = all if isinstance(node, Alternatives) else any
    return of_all(_always_has(part, variables) for part in _parts(node))


def _may_begin_with(node: Node, variables: Collection[int]) -> bool:
    """Tell whether the first row of a part may be one of some variables."""
    for part in _parts(node):
        if _may_begin_with(part, variables):
            return True
        if isinstance(node, Sequence) and not may_be_empty(part):
            return False
    return isinstance(node, Variable) and node.number in variables
