"""Explains, for a rule that aggregates, why the spans that hold an event have a match or none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from spark_pace.core.columns import Ints
from spark_pace.core.contents import ContentsOfEvents
from spark_pace.core.expr import evaluate_mask
from spark_pace.core.expr.canonical_text import canonical_text
from spark_pace.core.operate.aggregates import SpanAggregates
from spark_pace.core.plan.rule import CountSpan, Rule
from spark_pace.reasons.answer import Why
from spark_pace.reasons.answer_parts import Candidate
from spark_pace.reasons.condition_tests import parts
from spark_pace.reasons.question import Source
from spark_pace.reasons.rule_stream import MOST_MATCHES, OfKey, match_told, matches_of_key
from spark_pace.reasons.selections import MOST_SPANS, Opened
from spark_pace.reasons.stretch import in_values


def aggregated(source: Source, own: OfKey, spans: Opened, why: Why) -> Why:
    """Add to the answer the matches of the spans that hold the event, and why its other spans have none."""
    here = spans.at(own.row)
    matches = matches_of_key(source.plan, source.on_time, own)
    opened_us: Ints = matches["opened_at"].cast(pa.int64()).to_numpy()
    ids: Ints = matches["selection_id"].to_numpy()
    mine = np.flatnonzero(np.isin(ids, spans.ids[here]) & np.isin(opened_us, spans.opened_us[here]))
    told = matches.take(pa.array(mine[:MOST_MATCHES])).to_pylist()
    failed = [index for index in here[::-1].tolist() if spans.ids[index] not in ids[mine]]
    found = tuple(_failed(source.rule, own, spans, index) for index in failed[:MOST_SPANS])
    return replace(
        why,
        matches=tuple(map(match_told, told)),
        more_matches=max(0, len(mine) - MOST_MATCHES),
        candidates=found,
        more_candidates=len(failed[MOST_SPANS:]),
    )


def _failed(rule: Rule, own: OfKey, spans: Opened, index: int) -> Candidate:
    """Explain why a span has no match: it was not full, or its condition is false."""
    number = int(spans.ids[index])
    if isinstance(rule.span, CountSpan) and spans.waits(index):
        text = "waits for the end of its span"
        return Candidate(number, (), None, "unfinished", "missing", None, {}, (), text)
    ends = spans.openings[index : index + 1], spans.last_row()[index : index + 1] + 1
    columns = SpanAggregates(ContentsOfEvents(own.stream), *ends)
    conditions = [] if rule.having is None else parts(rule.having)
    part = next(one for one in conditions if not evaluate_mask(one, columns)[0])
    text, values = in_values(columns, part, part)
    return Candidate(number, (), None, "failed", "where", canonical_text(part), values, (), text)
