"""The core gives the oracle's matches in explicit spans, with a pattern or a Python operator inside."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_pace.core.plan.rule import Context
from tests.support.checks import NARROW, check
from tests.support.drawn_rules import rules
from tests.support.loaded_rules import CONTEXTS
from tests.support.streams import sparse_or_dense, streams


@pytest.mark.parametrize("span", ["opened span", "grid span", "count span", "session span"])
@given(data=st.data())
def test_a_python_operator_gets_the_oracles_spans(span: str, data: st.DataObject) -> None:
    check(data.draw(rules(f"operator, {span}")), data.draw(streams()))


@pytest.mark.parametrize("context", CONTEXTS, ids=str)
@given(data=st.data())
def test_a_pattern_in_a_span_gives_the_oracles_matches(context: Context, data: st.DataObject) -> None:
    check(data.draw(rules("plain, span", (context,))), data.draw(streams()))


@pytest.mark.parametrize("context", CONTEXTS, ids=str)
@given(data=st.data())
def test_a_pattern_in_sessions_gives_the_oracles_matches(context: Context, data: st.DataObject) -> None:
    check(data.draw(rules("plain, session span", (context,))), data.draw(streams()))


@pytest.mark.parametrize("context", CONTEXTS, ids=str)
@NARROW
@given(data=st.data())
def test_a_pattern_with_groups_or_negations_in_a_span_gives_the_oracles_matches(
    context: Context, data: st.DataObject
) -> None:
    check(data.draw(rules("grouped, span", (context,))), data.draw(sparse_or_dense()))
