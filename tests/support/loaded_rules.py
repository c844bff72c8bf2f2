"""Rules over the events of the tests, from the texts of their keys."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from spark_pace import load_rules
from spark_pace.core.expr import Expr
from spark_pace.core.match.contexts import CONTEXTS as NAMED
from spark_pace.core.match.contexts.contexts import takes_optional_last
from spark_pace.core.plan.rule import Context, EventSchema, Field, Merge, Rule

ATTRIBUTES: dict[str, Any] = {
    "time": "TIMESTAMP",
    "id": "STRING",
    "type": "STRING",
    "x": "BIGINT",
    "y": "BIGINT",
    "k": "STRING",
    "z": "DOUBLE",
}
FIELDS = tuple(Field(name, kind) for name, kind in ATTRIBUTES.items())
CONTEXTS = (
    *(Context(selection, "zero") for selection in ("each", "latest", "next", "earliest")),
    *(Context(selection, "selected") for selection in ("each", "latest", "next", "all", "earliest")),
)
TIES: tuple[tuple[str, ...], ...] = ((), (), ("y",), ("type", "x"))
MERGES: tuple[Merge, ...] = ("selection", "detection")
WITH_OPTIONAL_LAST = [one for one in CONTEXTS if takes_optional_last(NAMED[str(one)].way)]


@lru_cache(maxsize=10_000)
def loaded(text: str, tie_break: tuple[str, ...] = ()) -> Rule:
    """The rule of a text with the keys of a rule, over the events of the tests."""
    entry = "\n".join(f"    {line.strip()}" for line in text.splitlines())
    events = EventSchema(FIELDS, "time", tie_break)
    (rule,) = load_rules(f"rules:\n  - name: rule\n{entry}\n", events=events)
    return rule


def condition_of(told: str) -> Expr:
    """A condition on an event."""
    found = loaded(f"filter: {told}\npattern: {{sequence: [p: 'true']}}").filter
    assert found is not None
    return found


def aggregating(emit: str, where: str = "count(*) > 0") -> Rule:
    """A rule with these fields, and a condition, over aggregates of a span."""
    return loaded(f"span: {{every: 1 s, size: 1 s}}\nemit: {{{emit}}}\nwhere: {where}")
