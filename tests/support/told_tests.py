"""Checks of the tests of single events that `why` tells of: what it says holds, and only that."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import isfinite
from typing import Any

from spark_pace.core.expr import Expr
from spark_pace.core.expr.canonical_text import canonical_text
from spark_pace.core.plan.rule import Pattern
from spark_pace.reasons.answer import ConditionTest
from tests.oracle.components import is_preceded
from tests.oracle.expressions import Bindings, conjuncts_of, has_open, has_previous, holds, nodes_of, value_of
from tests.oracle.stream import Placed


def check_before(pattern: Pattern, placed: Placed | None, tests: Sequence[ConditionTest]) -> None:
    """What is said of the events before an event is so: none forbids it, or the one that is named does."""
    for absence, test in zip(pattern.absences, tests, strict=True):
        assert test.condition.startswith(f"not {absence.component.name}")
        if placed is None:
            assert (test.holds, test.values) == (None, {})
            continue
        forbids = [
            f"#{one.seq}, table:{one.event.offset} "
            for one in placed.earlier
            if is_preceded(pattern, absence, replace(placed, earlier=[one]))
        ]
        assert test.holds == (not forbids)
        assert [told.split("at ")[0] for told in test.values.values()] == forbids[-1:]


def check_tests(
    tests: Iterable[ConditionTest], condition: Expr, here: Bindings, *, known: bool = False
) -> None:
    parts = {canonical_text(part): part for part in conjuncts_of(condition)}
    for test in tests:
        part = parts[test.condition]
        if known or not (has_previous(part) or has_open(part)):
            assert test.holds == holds(part, here)
            check_values(test.values, part, here)
        else:
            assert test.holds is None


def check_values(values: dict[str, Any], expr: Expr, here: Bindings) -> None:
    nodes = {canonical_text(node): node for node in nodes_of(expr)}
    found = {name: value_of(nodes[name], here) for name in values}
    endless = {name: str(one) for name, one in found.items() if isinstance(one, float) and not isfinite(one)}
    assert values == found | endless  # numbers that JSON cannot write are told as texts


def check_not_ended(test: ConditionTest, until: Expr, here: Bindings, *, known: bool) -> None:
    """What is said of the condition at which a group ends is so."""
    assert test.condition == f"not until {canonical_text(until)}"
    if known or not (has_previous(until) or has_open(until)):
        assert test.holds != holds(until, here)
        check_values(test.values, until, here)
    else:
        assert test.holds is not False
