"""The parameter contexts, and the table of them (`docs/semantics.md`, section 4).

A new context is an object, in a file or beside those that are like it, and a line in the table.
"""

from __future__ import annotations

from collections.abc import Sequence

from spark_pace.core.match.contexts.contexts import (
    ALL_SELECTED,
    EACH_SELECTED,
    EACH_ZERO,
    EARLIEST_ZERO,
    LATEST_SELECTED,
    LATEST_ZERO,
    NEXT_SELECTED,
    NEXT_ZERO,
    ParameterContext,
)
from spark_pace.core.match.contexts.earliest_selected import EARLIEST_SELECTED
from spark_pace.core.plan.rule import Pattern


def by_name(contexts: Sequence[ParameterContext]) -> dict[str, ParameterContext]:
    """The contexts by all their names: first the names of their policies, then those of Snoop.

    Raises:
        ValueError: two contexts have the same name.
    """
    named = [(str(context.value), context) for context in contexts]
    named += [(context.snoop_name, context) for context in contexts if context.snoop_name is not None]
    table = dict(named)
    if len(table) < len(named):
        raise ValueError(
            f"parameter contexts — must have names of their own; got {[name for name, _ in named]}"
        )
    return table


CONTEXTS = by_name([
    EACH_ZERO,
    LATEST_ZERO,
    NEXT_ZERO,
    EARLIEST_ZERO,
    EACH_SELECTED,
    LATEST_SELECTED,
    NEXT_SELECTED,
    EARLIEST_SELECTED,
    ALL_SELECTED,
])  # fmt: skip

# names that people try, and what there is instead
MISNAMED = {
    "all, zero": f'"{EACH_ZERO.value}" with "close: window" gives every candidate; '
    f'"{ALL_SELECTED.value}" gathers all events in one match.'
}


def context_of(pattern: Pattern) -> ParameterContext:
    """The parameter context of a pattern."""
    return CONTEXTS[str(pattern.context)]
