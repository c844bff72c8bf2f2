"""The parameter contexts by their names, and the forms of a pattern that need a window."""

from __future__ import annotations

from typing import get_args

from spark_pace.core.plan.rule import Consumption, Context, Selection
from spark_pace.rules.document.document import Scalar, describe
from spark_pace.rules.document.report import meant_by, nearest
from spark_pace.rules.document.section import Fields

_SNOOP = {
    "recent": Context("latest", "zero"),
    "continuous": Context("each", "selected"),
    "chronicle": Context("earliest", "selected"),
    "cumulative": Context("all", "selected"),
}


def _all_contexts() -> dict[str, Context]:
    contexts: dict[str, Context] = {}
    for consumption in get_args(Consumption):
        for selection in get_args(Selection):
            if (selection, consumption) != ("all", "zero"):
                context = Context(selection, consumption)
                contexts[str(context)] = context
    return contexts | _SNOOP


CONTEXTS = _all_contexts()
DEFAULT = Context("each", "zero")


def read_context(fields: Fields) -> Context:
    """The value of ``context``; where it is reported as wrong the one that is meant, else the default."""
    node = fields.node("context")
    if node is None:
        return DEFAULT
    name = ", ".join(part.strip() for part in node.text.split(",")) if isinstance(node, Scalar) else ""
    if name not in CONTEXTS:
        advice = nearest(name, CONTEXTS)
        fields.report.add(node.place, "must be a parameter context", describe(node), advice)
        return CONTEXTS.get(meant_by(name, tuple(CONTEXTS)) or "", DEFAULT)
    return CONTEXTS[name]


def why_within(context: Context, plain: bool, close: str) -> str | None:
    """Why a pattern outside a span needs ``within``; None where it needs none.

    `plain`: no condition over several components.
    """
    if close == "window":
        return 'With "close: window" a selection stays open to the end of its window'
    if context == Context("earliest", "zero"):
        return 'In the context "earliest, zero" every initiator would be kept for ever'
    if context.selection == "all":
        return 'In the context "all, selected" a selection could gather events for ever'
    if not plain:
        return "With a condition over several components a selection could stay open, and grow, for ever"
    return None
