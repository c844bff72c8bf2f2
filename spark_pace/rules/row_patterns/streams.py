"""What a row pattern over a stream must be: in the order of event times, bounded, and with a way on."""

from __future__ import annotations

from collections.abc import Collection

from spark_pace.core.match.row_patterns.program import may_be_empty
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
from spark_pace.core.plan.rule import EventSchema
from spark_pace.rules.document.report import quote
from spark_pace.rules.row_patterns.clause import Clause
from spark_pace.rules.row_patterns.words import Query

_BOUND = "Add WITHIN INTERVAL '1' HOUR behind PATTERN, write {1,9} in place of + and *, or add %s."


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
