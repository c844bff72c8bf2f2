"""Says of a rule where it is evaluated, what runs in parallel, what is carried between batches, and what bounds that."""

from __future__ import annotations

from spark_pace.core.rule import CountSpan, GridSpan, Pattern, PredicateSpan, Rule, Span, Within
from spark_pace.rules.durations import show_duration
from spark_pace.rules.render import to_text


def explain(rule: Rule) -> tuple[str, ...]:
    """The plan of a rule in lines of text."""
    what = _operator_lines(rule) if rule.pattern is None else _pattern_lines(rule.pattern)
    lines = [f"rule {rule.name}"]
    if rule.filter is not None:
        lines.append(f"  filter       {to_text(rule.filter)}  [intake, on whole columns]")
    lines += what
    lines += _span_lines(rule.span) if rule.span else []
    lines.append(f"  key          {_keys(rule)}")
    lines.append(f"  splitter     {_splitter(rule)}")
    lines.append(f"  parallel     {_parallel(rule)}")
    lines.append(f"  carried      {_carried(rule)}")
    lines.append(f"  bounded by   {_bound(rule)}")
    lines.append(f"  order        {_order(rule)}")
    lines.append(f"  emits        {', '.join(f'{field.name} {field.type}' for field in rule.emit) or 'the fixed columns only'}")
    return tuple(lines)


def _pattern_lines(pattern: Pattern) -> list[str]:
    label = "sequence"
    lines = []
    for component in pattern.components:
        lines.append(f"  {label:<12} {component.name}: {to_text(component.predicate)}  [intake, on whole columns]")
        label = ""
    for conjunct in pattern.where:
        lines.append(f"  where        {to_text(conjunct.expr)}  [on candidates]")
    window = f", within {show_length(pattern.within)}" if pattern.within else ""
    close = ", close: window" if pattern.close == "window" else ""
    lines.append(f"  context      {pattern.context}{window}{close}")
    return lines


def _operator_lines(rule: Rule) -> list[str]:
    return [f"  operator     {rule.operator}, called once for each span"]


def _span_lines(span: Span) -> list[str]:
    if isinstance(span, GridSpan):
        return [f"  span         {show_duration(span.size_us)} long, one every {show_duration(span.every_us)}"]
    if isinstance(span, CountSpan):
        return [f"  span         {span.size} events long, one every {span.every} events"]
    closes = " and ".join(to_text(expr) for expr in (span.close, *span.close_where))
    return [
        f"  span         opens at {to_text(span.open)}",
        f"               closes at {closes}, or {show_duration(span.within_us)} after it opened",
    ]


def _keys(rule: Rule) -> str:
    return ", ".join(rule.partition_by) or "none: one stream, split into selections"


def _splitter(rule: Rule) -> str:
    if rule.span is not None:
        return "puts the events in order, opens and closes the spans"
    if rule.pattern is not None and rule.pattern.context.consumption == "zero":
        return "puts the events in order, opens a selection at every initiator"
    return "puts the events in order and decides which events each selection uses up"


def _parallel(rule: Rule) -> str:
    keys = "; keys are spread over buckets" if rule.partition_by else ""
    if rule.span is not None:
        return f"operators on lanes of whole spans{keys}"
    if rule.pattern is not None and rule.pattern.context.consumption == "zero":
        return f"operators match lanes of neighbouring selections{keys}"
    used = "what is used up depends on the match before, so the splitter matches; operators compute the fields"
    return f"{used}{keys}"


def _carried(rule: Rule) -> str:
    if isinstance(rule.span, GridSpan | CountSpan):
        return "the events of spans that are not closed"
    if isinstance(rule.span, PredicateSpan):
        return "the events since the oldest span that is open"
    return "the events since the oldest selection that is open"


def _bound(rule: Rule) -> str:
    span = rule.span
    if isinstance(span, GridSpan):
        return f"the events of {show_duration(span.size_us)}"
    if isinstance(span, CountSpan):
        return f"{span.size} events{_per_key(rule)}"
    if isinstance(span, PredicateSpan):
        return f"the events of {show_duration(span.within_us)}"
    within = rule.pattern.within if rule.pattern else None
    if within is not None:
        return f"{'' if within.events else 'the events of '}{show_length(within)}{_per_key(rule)}"
    return "nothing: initiators that no terminator follows are kept for ever; add within to bound them"


def _per_key(rule: Rule) -> str:
    return " for each key" if rule.partition_by else ""


def _order(rule: Rule) -> str:
    if rule.merge == "detection":
        return "by the position at which a match is decided; a match waits for nothing else"
    return "by selection; a match waits until every earlier selection is resolved"


def show_length(within: Within) -> str:
    """A window's length as a rule file writes it."""
    return f"{within.events} events" if within.events is not None else show_duration(within.time_us or 0)
