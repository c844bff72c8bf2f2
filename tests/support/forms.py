"""The forms of rules that came late, by name: the property tests draw rules of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hypothesis import strategies as st

from spark_pace.core.plan.rule import Context, Rule
from tests.support.absence_strategies import absent_rules
from tests.support.aggregate_strategies import aggregate_rules
from tests.support.alternative_strategies import alternative_rules
from tests.support.disjunction_strategies import disjunctive_rules
from tests.support.draws import built_once
from tests.support.ending_strategies import ending_rules
from tests.support.fold_strategies import fold_rules
from tests.support.form_strategies import conjunctive_rules, open_rules, previous_rules
from tests.support.further_strategies import further_rules
from tests.support.neighbour_strategies import neighbouring_rules
from tests.support.optional_strategies import optional_first_rules, optional_last_rules
from tests.support.previous_strategies import filtered_back, previous_values_rules
from tests.support.strategies import CONTEXTS, predicate_spans, spans

Form = Callable[[Sequence[Context]], st.SearchStrategy[Rule]]


def _inside(rules: Callable[..., st.SearchStrategy[Rule]]) -> Form:
    """Rules of a form in spans of all kinds, some of which look at the event that opened the span."""
    return lambda contexts: st.one_of(
        rules(contexts, spans()), rules(contexts, predicate_spans(), opened=True)
    )


FORMS: dict[str, Form] = {
    "conjunction": conjunctive_rules,
    "conjunction_in_span": lambda contexts: conjunctive_rules(contexts, spans()),
    "prev": previous_rules,
    "prev_in_span": lambda contexts: previous_rules(contexts, spans()),
    "prev_in_conjunction": lambda contexts: previous_rules(contexts, conjunction=True),
    "open": lambda contexts: open_rules(predicate_spans(), contexts),
    "open_in_conjunction": lambda contexts: open_rules(predicate_spans(), contexts, conjunction=True),
    "aggregates": lambda contexts: aggregate_rules(),
    "fold": lambda contexts: fold_rules(),
    "disjunction": disjunctive_rules,
    "disjunction_in_span": _inside(disjunctive_rules),
    "previous_values": previous_values_rules,
    "previous_values_in_span": lambda contexts: previous_values_rules(contexts, spans()),
    "filtered_back": lambda contexts: st.one_of(
        form("conjunction", contexts), form("prev_in_span", contexts), aggregate_rules(), fold_rules()
    ).flatmap(filtered_back),
    "negated_first": absent_rules,
    "negated_first_in_span": lambda contexts: absent_rules(contexts, spans()),
    "until": ending_rules,
    "until_in_span": _inside(ending_rules),
    "further": further_rules,
    "further_in_span": _inside(further_rules),
    "optional_first": optional_first_rules,
    "optional_first_in_span": lambda contexts: optional_first_rules(contexts, spans()),
    "neighbouring": neighbouring_rules,
    "neighbouring_in_span": _inside(neighbouring_rules),
    "optional_last": optional_last_rules,
    "optional_last_in_span": _inside(optional_last_rules),
    "alternatives": alternative_rules,
    "alternatives_in_span": _inside(alternative_rules),
    "all_in_one": lambda contexts: open_rules(predicate_spans(), contexts, conjunction=True, earlier=True),
}


@built_once
def form(name: str, contexts: Sequence[Context] = CONTEXTS) -> st.SearchStrategy[Rule]:
    """Rules of one form in one of the contexts that it has, if it has any."""
    return FORMS[name](contexts)
