"""The core gives the oracle's matches in explicit spans, with a pattern or a Python operator inside."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_pace.core.plan.rule import Context, Span
from tests.support.checks import NARROW, check
from tests.support.grouped_strategies import grouped_rules
from tests.support.strategies import (
    CONTEXTS,
    count_spans,
    grid_spans,
    predicate_spans,
    session_spans,
    span_rules,
    spans,
)
from tests.support.streams import sparse_or_dense, streams


@pytest.mark.parametrize(
    "kinds",
    [predicate_spans(), grid_spans(), count_spans(), session_spans()],
    ids=["predicates", "grid", "count", "sessions"],
)
@given(data=st.data())
def test_a_python_operator_gets_the_oracles_spans(
    kinds: st.SearchStrategy[Span], data: st.DataObject
) -> None:
    check(data.draw(span_rules(kinds, operator=True)), data.draw(streams()))


@pytest.mark.parametrize("context", CONTEXTS, ids=str)
@given(data=st.data())
def test_a_pattern_in_a_span_gives_the_oracles_matches(context: Context, data: st.DataObject) -> None:
    check(data.draw(span_rules(spans(), operator=False, context=context)), data.draw(streams()))


@pytest.mark.parametrize("context", CONTEXTS, ids=str)
@given(data=st.data())
def test_a_pattern_in_sessions_gives_the_oracles_matches(context: Context, data: st.DataObject) -> None:
    check(data.draw(span_rules(session_spans(), operator=False, context=context)), data.draw(streams()))


@pytest.mark.parametrize("context", CONTEXTS, ids=str)
@NARROW
@given(data=st.data())
def test_a_pattern_with_groups_or_negations_in_a_span_gives_the_oracles_matches(
    context: Context, data: st.DataObject
) -> None:
    check(data.draw(grouped_rules(context, spans=spans())), data.draw(sparse_or_dense()))
