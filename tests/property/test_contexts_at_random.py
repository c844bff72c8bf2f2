"""The core gives the oracle's matches in every context, with and without conditions over components."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_pace.core.plan.rule import Context, Rule
from tests.oracle.contexts import Event
from tests.support.checks import NARROW, check
from tests.support.drawn_rules import FORMS, rules
from tests.support.loaded_rules import CONTEXTS
from tests.support.streams import sparse_or_dense, streams


@pytest.mark.parametrize("where", [False, True], ids=["plain", "where"])
@pytest.mark.parametrize("context", CONTEXTS, ids=str)
@given(data=st.data())
def test_a_pattern_gives_the_oracles_matches(context: Context, where: bool, data: st.DataObject) -> None:
    check(data.draw(rules("plain, where" if where else "plain, no where", (context,))), data.draw(streams()))


@pytest.mark.parametrize("context", CONTEXTS, ids=str)
@NARROW
@given(data=st.data())
def test_a_pattern_with_groups_or_negations_gives_the_oracles_matches(
    context: Context, data: st.DataObject
) -> None:
    check(data.draw(rules("grouped", (context,))), data.draw(sparse_or_dense()))


@given(rules("plain, close window | grouped, close window"), streams())
def test_a_selection_open_to_the_end_of_its_window_gives_the_oracles_matches(
    rule: Rule, events: list[Event]
) -> None:
    check(rule, events)


@pytest.mark.parametrize("name", FORMS)
@NARROW
@given(data=st.data())
def test_a_form_of_rules_gives_the_oracles_matches(name: str, data: st.DataObject) -> None:
    check(data.draw(rules(FORMS[name])), data.draw(sparse_or_dense()))
