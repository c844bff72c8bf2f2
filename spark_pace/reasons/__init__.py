"""Explains why one event is part of a rule's matches, or of none.

The engine runs over all events and gives the rule's stream, selections and matches. Around the event it then
searches without one constraint of the pattern at a time: what matches so is what the constraint has stopped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from spark_pace.core.expr import Expr
from spark_pace.core.order import OrderSpec
from spark_pace.core.plan.rule import Rule
from spark_pace.reasons.answer import Why
from spark_pace.reasons.explanation import explained
from spark_pace.reasons.question import Source, asked

__all__ = ["Why", "why"]


def why(
    rules: Sequence[Rule],
    events: Path | str | pa.Table,
    *,
    rule: str,
    at: int | str,
    key: str | None = None,
    order: OrderSpec | None = None,
    source_column: str | None = None,
    heartbeat: Expr | None = None,
    spark: Mapping[str, str] | None = None,
) -> Why:
    """Explain why the event at a position is part of the matches of a rule, or of none.

    Args:
        rules: all over one schema.
        events: the path of a file or directory, an address in a store, or a table with the schema's
            attributes, whose rows get the source ``table``.
        rule: the name of one of the rules.
        at: the `seq` of an event of the rule's stream, or ``source:offset``, as matches have them.
        key: the JSON object of the event's key; needed beside a `seq` where the rule has `partition_by`.
        order: of a job, which says which events are late or repeats; None: none is.
        source_column: of a job: the attribute that names an event's source.
        heartbeat: of a job: the condition for records that are no events.
        spark: settings of Spark by which stores are reached, before the variables of the environment.

    Returns:
        The answer; its fields say what is known of the event.

    Raises:
        ConfigError: there is no such rule, position or key, or a key is needed.
        EventError: a table has a column of another type than the rules declare.
        SetupError: a store cannot be read.
    """
    settings = {"order": order or OrderSpec(), "source_column": source_column, "heartbeat": heartbeat}
    source = Source.of(rules, events, rule, settings, spark or {})
    return explained(source, asked(source, at, key))
