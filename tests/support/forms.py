"""The forms of rules that came late, by name, and which of them the core has."""

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

# the property tests draw rules of these forms; one line each
LANDED: tuple[str, ...] = (
    "conjunction",
    "conjunction_in_span",
    "prev",
    "prev_in_span",
    "open",
    "aggregates",
    "fold",
    "disjunction",
    "disjunction_in_span",
    "alternatives",
    "alternatives_in_span",
    "previous_values",
    "previous_values_in_span",
    "filtered_back",
    "negated_first",
    "negated_first_in_span",
    "until",
    "until_in_span",
    "further",
    "further_in_span",
    "optional_first",
    "optional_first_in_span",
    "optional_last",
    "optional_last_in_span",
    "neighbouring",
    "neighbouring_in_span",
)

Form = Callable[[Sequence[Context]], st.SearchStrategy[Rule]]


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
    "disjunction_in_span": lambda contexts: disjunctive_rules(contexts, spans()),
    "previous_values": previous_values_rules,
    "previous_values_in_span": lambda contexts: previous_values_rules(contexts, spans()),
    "filtered_back": lambda contexts: st.one_of(
        form("conjunction", contexts), form("prev_in_span", contexts), aggregate_rules(), fold_rules()
    ).flatmap(filtered_back),
    "negated_first": absent_rules,
    "negated_first_in_span": lambda contexts: absent_rules(contexts, spans()),
    "until": ending_rules,
    "until_in_span": lambda contexts: ending_rules(contexts, spans()),
    "further": further_rules,
    "further_in_span": lambda contexts: further_rules(contexts, spans()),
    "optional_first": optional_first_rules,
    "optional_first_in_span": lambda contexts: optional_first_rules(contexts, spans()),
    "neighbouring": neighbouring_rules,
    "neighbouring_in_span": lambda contexts: neighbouring_rules(contexts, spans()),
    "optional_last": optional_last_rules,
    "optional_last_in_span": lambda contexts: st.one_of(
        optional_last_rules(contexts, spans()), optional_last_rules(contexts, predicate_spans(), opened=True)
    ),
    "alternatives": alternative_rules,
    "alternatives_in_span": lambda contexts: st.one_of(
        alternative_rules(contexts, spans()), alternative_rules(contexts, predicate_spans(), opened=True)
    ),
    "all_in_one": lambda contexts: open_rules(predicate_spans(), contexts, conjunction=True, earlier=True),
}


@built_once
def form(name: str, contexts: Sequence[Context] = CONTEXTS) -> st.SearchStrategy[Rule]:
    """Rules of one form in one of the contexts that it has, if it has any."""
    return FORMS[name](contexts)
