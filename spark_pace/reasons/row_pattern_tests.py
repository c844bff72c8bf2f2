"""Explains a row pattern at an event: for which variables it could be taken."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow.compute as pc

from spark_pace.core.expr import evaluate
from spark_pace.core.expr.canonical_text import canonical_text
from spark_pace.core.match.row_patterns.rows import Rows, SlotColumns
from spark_pace.core.plan.row_pattern import Computed, MatchNumber, Navigation, RowPattern, Slot
from spark_pace.reasons.answer import ROWS_UNTOLD, Why
from spark_pace.reasons.answer_parts import ComponentTest, ConditionTest
from spark_pace.reasons.rule_stream import OfKey
from spark_pace.reasons.wording import plain

_SLOT = re.compile(r"`@(\d+)`")


def rows_told(rows: RowPattern, own: OfKey, why: Why) -> Why:
    """Add the tests of the conditions that do not read the match so far, and say what is not told."""
    stream = own.stream
    known = Rows(stream.events, np.array([0, stream.rows], np.int64))
    told = []
    for name, one in zip(rows.variables, rows.conditions, strict=True):
        tests = [_test(part, rows.variables, known, own.row) for part in one.fixed]
        tests += [ConditionTest(_text(part, rows.variables), None, {}) for part in one.of_match]
        holds = [test.holds for test in tests]
        told.append(ComponentTest(name, False, _all(holds), tuple(tests)))
    return replace(why, components=tuple(told), untold=(ROWS_UNTOLD,))


def _all(holds: Sequence[bool | None]) -> bool | None:
    return False if False in holds else None if None in holds else True


def _test(part: Computed, names: Sequence[str], known: Rows, row: int) -> ConditionTest:
    columns, values = [], dict[str, Any]()
    for slot in part.slots:
        assert isinstance(slot, Navigation) and slot.of is not None, slot
        columns.append(known.shifted(slot.of, slot.shift))
        values[_slot_text(slot, names)] = plain(columns[-1][row].as_py())
    holds = pc.fill_null(evaluate(part.expr, SlotColumns(known.rows, columns)), False)[row].as_py()
    return ConditionTest(_text(part, names), holds, values)


def _text(part: Computed, names: Sequence[str]) -> str:
    """The condition with what slots read in place of their numbers."""
    return _SLOT.sub(lambda found: _slot_text(part.slots[int(found[1])], names), canonical_text(part.expr))


def _slot_text(slot: Slot, names: Sequence[str]) -> str:
    if isinstance(slot, MatchNumber):
        return "match_number()"
    rows = "" if slot.variables is None else "|".join(names[one] for one in slot.variables) + "."
    if not isinstance(slot, Navigation):
        return f"{slot.function}({rows}{'*' if slot.of is None else canonical_text(slot.of)})"
    text = f"classifier({rows[:-1]})" if slot.of is None else f"{rows}{canonical_text(slot.of)}"
    if slot.first or slot.back:
        text = f"{'first' if slot.first else 'last'}({text}{f', {slot.back}' if slot.back else ''})"
    if not slot.shift:
        return text
    return f"{'prev' if slot.shift < 0 else 'next'}({text}, {abs(slot.shift)})"
