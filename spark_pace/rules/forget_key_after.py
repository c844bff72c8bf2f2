"""Reads the key ``forget_key_after``: how long after its last event a key is forgotten."""

from __future__ import annotations

from spark_pace.core.expr.canonical_text import canonical_duration
from spark_pace.core.plan.rule import GridSpan, Pattern, PredicateSpan, SessionSpan, Span
from spark_pace.rules.document.document import Mapping, Node, describe
from spark_pace.rules.document.report import quote
from spark_pace.rules.document.section import Section
from spark_pace.rules.lengths import read_duration


def read_forgetting(
    rule: Section, pattern: Pattern | None, span: Span | None, *, keyed: bool = False
) -> int | None:
    """Read the length of time, as microseconds; None if the key is missing or wrong.

    Args:
        rule: the keys of the rule.
        pattern: its pattern; None if it has none or a wrong one.
        span: its span; None if it has none or a wrong one.
        keyed: whether the rule has keys, though not by `partition_by`.
    """
    node = rule.node("forget_key_after")
    if node is None:
        return None
    report, place = rule.report, rule.key_place("forget_key_after")
    if not keyed and not rule.has("partition_by"):
        do = "Add for example partition_by: [id], or leave it out."
        if rule.has("match_recognize"):
            do = "Write PARTITION BY in the clause, or leave it out."
        report.add(place, 'must stand beside "partition_by", whose keys it forgets', "it alone", do)
    after_us = read_duration(node, report)
    window = _longest_window(rule, pattern, span)
    if after_us is not None and window is not None and window[1] > after_us:
        must = f"must be at most forget_key_after, {canonical_duration(after_us)}"
        report.add(window[0].place, must, describe(window[0]), "Shorten it, or lengthen forget_key_after.")
    for absence in () if pattern is None or rule.has("span") else pattern.absences:
        if after_us is not None and (absence.within_us or 0) > after_us:
            must = f"must not be shorter than the within of {quote(absence.component.name)}"
            report.add(node.place, must, describe(node), "Shorten that window, or lengthen it.")
    return after_us


def _longest_window(rule: Section, pattern: Pattern | None, span: Span | None) -> tuple[Node, int] | None:
    """The node that limits how long a selection stays open, and its microseconds; None if no time does."""
    at_span = rule.node("span")
    if isinstance(at_span, Mapping) and isinstance(span, PredicateSpan):
        return _at(at_span, "within", span.within_us)
    if isinstance(at_span, Mapping) and isinstance(span, GridSpan):
        return _at(at_span, "size", span.size_us)
    if isinstance(at_span, Mapping) and isinstance(span, SessionSpan):
        return _at(at_span, "gap", span.gap_us)
    node = rule.node("within")
    if node is None or rule.has("span") or pattern is None or pattern.within is None:
        return None
    if pattern.within.time_us is None:
        return None
    return (
        _at(node, "time", pattern.within.time_us)
        if isinstance(node, Mapping)
        else (node, pattern.within.time_us)
    )


def _at(mapping: Mapping, key: str, length_us: int) -> tuple[Node, int] | None:
    """The node of a key, with the length; None if the key is misspelt, which was reported before."""
    entry = mapping.entries.get(key)
    return None if entry is None else (entry[1], length_us)
