"""Functions of folds for the tests."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

Rows = list[dict[str, Any]]


def balance(state: Any, event: dict[str, Any]) -> tuple[Any, Rows]:
    """A sum of x since the last event without x; a row where the sum is even, two where it is zero."""
    total, ids = state or [0, []]
    if event["x"] is None:
        return None, [{"id": "-".join(ids), "balance": total}]
    total, ids = total + event["x"] - 1, [*ids, event["id"] or ""][-2:]
    rows = [{"id": event["id"], "balance": total}]
    return [total, ids], rows * (2 if total == 0 else 1 if total % 2 == 0 else 0)


def balance_of_table(state: Any, events: pa.Table) -> tuple[Any, pa.Table]:
    """The same, for all events of a run."""
    rows: Rows = []
    for place, event in enumerate(events.to_pylist()):
        state, found = balance(state, event)
        rows += [{"row": place, **row} for row in found]
    schema = pa.schema([("row", pa.int64()), ("id", pa.string()), ("balance", pa.int64())])
    return state, pa.Table.from_pylist(rows, schema=schema)


balance_of_table.takes_table = True  # type: ignore[attr-defined]


def seen(state: Any, event: dict[str, Any]) -> tuple[Any, Rows]:
    """A row without fields for each type that comes for the first time."""
    known = state or {"types": [], "n": 0, "mean": 0.5, "last": None}
    kind = event["type"] or ""  # null in matches of a rule that does not give it
    is_new = kind not in known["types"]
    types = sorted({*known["types"], kind})
    return {"types": types, "n": known["n"] + 1, "mean": known["mean"] / 3, "last": event["k"]}, [{}] * is_new
