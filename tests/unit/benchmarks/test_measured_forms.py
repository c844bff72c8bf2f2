"""The benchmark of the forms of rules measures all of them."""

from __future__ import annotations

import pytest

from benchmarks.forms import CONTEXT, FORMS, OTHER_CONTEXTS, WAITING, WHERE, WITHOUT_WHERE, plan


@pytest.mark.parametrize("form", FORMS)
def test_each_form_has_a_rule_in_each_context_in_which_it_is_measured(form: str) -> None:
    conditions = [""] if form in WITHOUT_WHERE else ["", WHERE]
    plans = [plan(form, condition, OTHER_CONTEXTS.get(form, CONTEXT)) for condition in conditions]
    assert all(len(one.rules) == 1 for one in [*plans, plan(form, "", WAITING)])
