"""The forms of rules that came late, by name, and which of them the core has."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hypothesis import strategies as st

from spark_pace.core.plan.rule import Context, Rule
from tests.support.aggregate_strategies import aggregate_rules
from tests.support.form_strategies import IN_CONJUNCTION, conjunctive_rules, open_rules, previous_rules
from tests.support.strategies import CONTEXTS, predicate_spans, spans

# the property tests draw rules of these forms; one line each
LANDED: tuple[str, ...] = ("prev", "prev_in_span")

Form = Callable[[Sequence[Context]], st.SearchStrategy[Rule]]


def conjunctions(contexts: Sequence[Context]) -> st.SearchStrategy[Rule]:
    """Some with ``close: window``, where the context has it."""
    plain = conjunctive_rules(contexts)
    if CONTEXTS[0] not in contexts:
        return plain
    return st.one_of(plain, plain, plain, plain, conjunctive_rules(CONTEXTS[:1], close_window=True))


FORMS: dict[str, Form] = {
    "conjunction": conjunctions,
    "conjunction_in_span": lambda contexts: conjunctive_rules(contexts, spans()),
    "prev": previous_rules,
    "prev_in_span": lambda contexts: previous_rules(contexts, spans()),
    "prev_in_conjunction": lambda contexts: previous_rules(contexts, conjunction=True),
    "open": lambda contexts: open_rules(predicate_spans(), contexts),
    "open_in_conjunction": lambda contexts: open_rules(predicate_spans(), contexts, conjunction=True),
    "aggregates": lambda contexts: aggregate_rules(),
    "all_in_one": lambda contexts: open_rules(predicate_spans(), contexts, conjunction=True, earlier=True),
}


def form(name: str, contexts: Sequence[Context] = CONTEXTS) -> st.SearchStrategy[Rule]:
    """Rules of one form, in one of the contexts, as far as the form has them and the rules have a context."""
    if name in ("conjunction", "conjunction_in_span"):
        contexts = [context for context in contexts if context in IN_CONJUNCTION]
    return FORMS[name](contexts)
