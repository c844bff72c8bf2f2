"""Folds, one event after the other: the state of a key, and which events give matches."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

from spark_pace.core.plan.rule import Rule, StateMachine
from tests.oracle.expressions import Bindings, holds, value_of
from tests.oracle.stream import Placed, Stream


def fold_rows(rule: Rule, stream: Stream) -> Iterator[tuple[Placed, dict[str, Any]]]:
    """The events of a key's stream that give a match, each with its fields."""
    machine = rule.fold
    if not isinstance(machine, StateMachine):
        yield from python_rows(rule, stream)
        return
    state, since = machine.states[0], None
    for placed in stream:
        here = Bindings(event=placed.row, before=placed.before)
        for move in machine.moves:
            fits = move.condition is None or holds(machine.conditions[move.condition], here)
            if state in [machine.states[source] for source in move.sources] and fits:
                left, since_left = state, since
                state, since = machine.states[move.target], placed.time
                if move.emits:
                    seen = {**placed.row, "@from": left, "@to": state, "@since": since_left}
                    yield (
                        placed,
                        {
                            field.name: value_of(field.expr, Bindings(event=seen))
                            for field in rule.emit
                            if field.expr is not None
                        },
                    )
                break


def python_rows(rule: Rule, stream: Stream) -> Iterator[tuple[Placed, dict[str, Any]]]:
    """The same by the rule's function; one that takes tables has one beside it that takes events."""
    assert rule.function is not None
    module, name = rule.function.split(":")
    function = getattr(importlib.import_module(module), name.removesuffix("_of_table"))
    state = None
    for placed in stream:
        state, rows = function(state, dict(placed.row))
        for row in rows:
            yield placed, {field.name: row.get(field.name) for field in rule.emit}
