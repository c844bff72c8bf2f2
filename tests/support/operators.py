"""Python operators for the tests: pure functions of a span.

The core gives them the span's events as a table, the oracle as a list of rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa


def rows_of(span: Any) -> list[dict[str, Any]]:
    """The span's events as rows."""
    events = span.events
    rows: list[dict[str, Any]] = events.to_pylist() if isinstance(events, pa.Table) else events
    return rows


def summary(span: Any) -> Iterator[dict[str, Any]]:
    """One row a span: how many events, the first, the last, the sum of `x`."""
    rows = rows_of(span)
    yield {
        "n": len(rows),
        "first": rows[0]["id"],
        "last": rows[-1]["id"],
        "total": sum(row["x"] or 0 for row in rows),
    }


def bounds(span: Any) -> Iterator[dict[str, Any]]:
    """What opened and what closed a span."""
    yield {"opened_by": span.opening["id"], "closed_by": None if span.closing is None else span.closing["id"]}


def known(span: Any) -> Iterator[dict[str, Any]]:
    """A row for every event with an `x`: none, one or several a span."""
    for row in rows_of(span):
        if row["x"] is not None:
            yield {"id": row["id"], "x": row["x"]}
