"""Hypothesis strategies: rules of any form."""

from __future__ import annotations

from hypothesis import strategies as st

from spark_pace.core.plan.rule import Rule
from tests.support.draws import built_once
from tests.support.forms import FORMS, form
from tests.support.grouped_strategies import grouped_rules
from tests.support.strategies import CONTEXTS, forgetful, joined_rules, rules, span_rules, spans


@built_once
def any_rule() -> st.SearchStrategy[Rule]:
    """A rule of any form."""
    return st.one_of(any_lasting_rule(), any_lasting_rule(), any_lasting_rule(), any_forgetful_rule())


@built_once
def any_forgetful_rule() -> st.SearchStrategy[Rule]:
    """A rule of any form with keys that are forgotten."""
    return any_lasting_rule().flatmap(forgetful)


@built_once
def any_lasting_rule() -> st.SearchStrategy[Rule]:
    """A rule of any form with keys, if any, that live for ever."""
    plain = st.sampled_from(CONTEXTS).flatmap(lambda context: rules(context))
    grouped = st.sampled_from(CONTEXTS).flatmap(lambda context: grouped_rules(context))
    return st.one_of(
        plain,
        plain,
        grouped,
        grouped,
        st.sampled_from(CONTEXTS).flatmap(lambda context: joined_rules(context)),
        rules(CONTEXTS[0], close_window=True),
        grouped_rules(CONTEXTS[0], close_window=True),
        span_rules(spans(), operator=False),
        st.sampled_from(CONTEXTS).flatmap(lambda context: grouped_rules(context, spans=spans())),
        span_rules(spans(), operator=True),
        *map(form, FORMS),
    )
