"""Reads the key ``span``, where selections open and close, and the keys of rules that aggregate spans."""

from __future__ import annotations

from spark_pace.core.expr import Aggregate, Expr, conjunction, walk
from spark_pace.core.expr.canonical_text import canonical_text
from spark_pace.core.plan.conditions import mentions_open
from spark_pace.core.plan.plan import holistic
from spark_pace.core.plan.rule import (
    CountSpan,
    EventSchema,
    GridSpan,
    PredicateSpan,
    Rule,
    SessionSpan,
    Span,
    Within,
)
from spark_pace.rules.document import Mapping, Section, describe, quote
from spark_pace.rules.expressions.compile import compile_parts, read_condition
from spark_pace.rules.expressions.parsing import as_expression
from spark_pace.rules.expressions.scopes import event_scope, span_scope
from spark_pace.rules.lengths import read_duration, read_length
from spark_pace.rules.rule_kinds import kind_of

MOST_WINDOWS = 10_000  # windows that an event may be in
MOST_WINDOWS_OF_PANES = 100_000  # the same bound if panes are carried, not events
_PREDICATE_KEYS = ("open", "close", "within")
_GRID_KEYS = ("every", "size")
_SPAN_KEYS = (*_PREDICATE_KEYS, *_GRID_KEYS, "gap")
_FORMS = (_PREDICATE_KEYS, _GRID_KEYS, ("gap", "within"))
_NO_KEYS = {"window": "size", "length": "size", "slide": "every", "hop": "every"}
_EXAMPLE = "{open: x = 1, close: x = 2, within: 10 min}, {every: 10 s, size: 60 s} or {gap: 30 min}"


def read_span(rule: Section, schema: EventSchema) -> Span | None:
    """Read the key ``span``; None if it is missing or wrong."""
    mapping = rule.mapping("span", _EXAMPLE)
    if mapping is None:
        return None
    fields = Section(mapping, rule.report, _SPAN_KEYS, _NO_KEYS)
    there = {key for key in _SPAN_KEYS if fields.has(key)}
    if not there or not any(there <= {*form} for form in _FORMS):
        got = ", ".join(key for key in _SPAN_KEYS if key in there) or "none of them"
        must = "must have either open, close and within, or every and size, or gap and perhaps within"
        rule.report.add(fields.place, must, got, f"Write {_EXAMPLE}.")
        return None
    if "gap" in there:
        return _read_session(fields)
    on_grid = any(key in there for key in _GRID_KEYS)
    return _read_grid(fields) if on_grid else _read_predicates(fields, schema)


def opens_span(rule: Section) -> bool:
    """True if an event opens the rule's span, so that ``open.x`` has a meaning."""
    node = rule.node("span")
    return isinstance(node, Mapping) and "open" in node.entries


def _read_predicates(fields: Section, schema: EventSchema) -> PredicateSpan | None:
    report, nodes = fields.report, {key: fields.node(key, need) for key, need in _PREDICATE_EXAMPLES.items()}
    length = read_duration(nodes["within"], report)
    opens = read_condition(nodes["open"], event_scope(schema), report)
    close = as_expression(nodes["close"], report)
    scope = event_scope(schema, opened=True, closes=True)
    closes = [] if close is None else [expr for _, expr in compile_parts(close, scope, report)]
    if opens is None or not closes or length is None:
        return None
    alone = [expr for expr in closes if not mentions_open(expr)]
    return PredicateSpan(
        opens, conjunction(alone), tuple(expr for expr in closes if mentions_open(expr)), length
    )


_PREDICATE_EXAMPLES = {
    "open": "open: and a condition on the opening event",
    "close": 'close: and a condition on the closing event; close: "false" lets the time alone end the span',
    "within": "within: and a duration, for a span that never closes would be kept for ever",
}


def _read_grid(fields: Section) -> GridSpan | CountSpan | None:
    every, size = (
        read_length(fields.node(key, f"{key}: 10 s"), fields.report, least=1) for key in _GRID_KEYS
    )
    if every is None or size is None:
        return None
    if (every.events is None) != (size.events is None):
        must, got = "must give every and size in the same kind of unit", "a duration and a count"
        fields.report.add(fields.place, must, got, "Use durations or counts for both.")
        return None
    if every.events is not None and size.events is not None:
        return CountSpan(every.events, size.events)
    return GridSpan(_amount(every), _amount(size))


def _read_session(fields: Section) -> SessionSpan | None:
    gap, within = (read_duration(fields.node(key), fields.report) for key in ("gap", "within"))
    return None if gap is None else SessionSpan(gap, within)


def _amount(length: Within) -> int:
    return int(length.events if length.events is not None else length.time_us or 0)


def check_windows(fields: Section, rule: Rule) -> None:
    """Refuse too many windows for each event; there may be more where panes are carried, and no events."""
    span, aggregates = rule.span, kind_of(fields) == "aggregates"
    if not isinstance(span, GridSpan | CountSpan):
        return
    needing = holistic(rule) if aggregates else []
    in_panes = isinstance(span, GridSpan) and aggregates and not needing
    most = MOST_WINDOWS_OF_PANES if in_panes else MOST_WINDOWS
    every, size = (span.every_us, span.size_us) if isinstance(span, GridSpan) else (span.every, span.size)
    if size > most * every:
        because = f", with {quote(canonical_text(needing[0]))}" if needing else ""
        got, do = f"{-(-size // every)}{because}", "Make every longer or size shorter."
        fields.report.add(fields.key_place("span"), f"must put an event into at most {most} windows", got, do)


def read_having(rule: Section, schema: EventSchema, shared: tuple[str, ...]) -> Expr | None:
    """Read the key ``where`` of a rule that aggregates; None if it is missing or wrong.

    `shared` are the attributes of the rule's key.
    """
    node = rule.node("where")
    expr = read_condition(node, span_scope(schema, shared, opened=opens_span(rule)), rule.report)
    if node is not None and expr is not None and not any(isinstance(one, Aggregate) for one in walk(expr)):
        do = "Write for example count(*) >= 10; conditions on single events belong into filter."
        rule.report.add(node.place, "must be about aggregates", describe(node), do)
        return None
    return expr
