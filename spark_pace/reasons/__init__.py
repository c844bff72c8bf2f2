"""Why the event at one position is part of a rule's matches, or of none.

To find out, the engine runs over all events. The rule's stream, selections and matches are taken as it has
them; then a search in plain steps around the event finds what stopped the candidates that could have had it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from spark_pace.core.expr import Expr
from spark_pace.core.order.order import OrderSpec
from spark_pace.core.plan.rule import Rule
from spark_pace.reasons.answer import Why
from spark_pace.reasons.explanation import explained
from spark_pace.reasons.question import Asked, Settings, Source, asked

__all__ = ["Why", "why"]


def why(
    rules: Sequence[Rule],
    events: Path | pa.Table,
    *,
    rule: str,
    at: int | str,
    key: str | None = None,
    order: OrderSpec | None = None,
    source_column: str | None = None,
    heartbeat: Expr | None = None,
) -> Why:
    """Why the event at a position is part of the matches of a rule, or of none.

    Args:
        rules: over one schema.
        events: a file of events, all files of a directory, or a table with the schema's attributes, whose
            rows have the source ``table``. Without the order of a job no event is late.
        rule: the name of one of the rules.
        at: the `seq` of an event of the rule's stream, or ``source:offset``, as matches have them.
        key: the JSON object of the event's key; needed beside a `seq` where the rule has `partition_by`.
        order: of a job: which events are late, and which are repeats.
        source_column: of a job: the attribute that names an event's source.
        heartbeat: what holds for records that are no events.

    Raises:
        ConfigError: there is no such rule, position or key, or a key is needed.
        EventError: a table has a column of another type than the rules declare.
    """
    settings = Settings(order or OrderSpec(), source_column, heartbeat)
    source = Source.of(rules, events, rule, settings)
    return explained(source, asked(source, Asked(at, key)))
