"""Reads the key ``context``, and says which patterns need a window."""

from __future__ import annotations

from collections.abc import Sequence

from spark_pace.core.match.contexts import CONTEXTS, MISNAMED
from spark_pace.core.match.contexts.context import ParameterContext
from spark_pace.core.match.contexts.each_zero import EACH_ZERO
from spark_pace.core.match.contexts.next_selected import NEXT_SELECTED
from spark_pace.core.plan.component import Component
from spark_pace.core.plan.rule import Order
from spark_pace.rules.document.document import Scalar, describe
from spark_pace.rules.document.report import meant_by, nearest
from spark_pace.rules.document.section import Section


def read_context(fields: Section) -> ParameterContext:
    """Read the key ``context``; for a wrong one, the context that was probably meant, else *each, zero*."""
    node = fields.node("context")
    if node is None:
        return EACH_ZERO
    parts = [part.strip() for part in node.text.split(",")] if isinstance(node, Scalar) else []
    name, swapped = ", ".join(parts), ", ".join(reversed(parts))
    if name in CONTEXTS:
        return CONTEXTS[name]
    if swapped in CONTEXTS:
        name = swapped
    fields.report.add(node.place, "must be a parameter context", describe(node), _advice(name))
    return CONTEXTS.get(meant_by(name, tuple(CONTEXTS)) or "", EACH_ZERO)


def _advice(name: str) -> str:
    """What to write instead of a wrong context."""
    near = [known for known in CONTEXTS if known.startswith(name.partition(",")[0] + ", ")]
    advice = MISNAMED.get(name) or nearest(name, near or CONTEXTS)
    if near or meant_by(name, tuple(CONTEXTS)) is not None:
        return advice
    return f'{advice} One alarm per incident: "{NEXT_SELECTED.value}".'


def why_within(
    context: ParameterContext,
    components: Sequence[Component],
    close: str,
    *,
    order: Order,
    over_several: bool,
) -> str | None:
    """The reason why a pattern outside a span needs ``within``; None if it needs none.

    Args:
        context: the parameter context.
        components: the components of the pattern.
        close: the value of the key ``close``.
        order: sequence, conjunction or disjunction.
        over_several: True if the pattern has a condition over several components.
    """
    if close == "window":
        return 'With "close: window" a selection stays open to the end of its window'
    if order == "conjunction":
        return "In a conjunction every event of a component opens a selection, which could stay open for ever"
    if order == "disjunction":
        return "In a disjunction of sequences what one alternative waits for could keep others open for ever"
    if components[-1].negated:
        return (
            "With a negated component in last place there must be an end until which none of its events comes"
        )
    if context.why_within is not None:
        return f'In the context "{context.value}" {context.why_within}'
    forms = {
        "a repeated or optional component": any(component.times is not None for component in components),
        "a negated component": any(component.negated for component in components),
        "follows: strict": any(component.follows == "strict" for component in components),
        "a condition over several components": over_several,
    }
    found = next((form for form, there in forms.items() if there), None)
    return None if found is None else f"With {found} a selection could stay open, and grow, for ever"
