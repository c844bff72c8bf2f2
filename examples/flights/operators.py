"""The demo's Python operator: one selection in, rows out, a pure function of the selection."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow.compute as pc

if TYPE_CHECKING:
    from spark_pace.core.operate.python_operator import Span

FEWEST_DEPARTURES = 10
HIGH_MINUTES = 60


def high_median(span: Span) -> Iterator[dict[str, object]]:
    """The median delay of a span's departures, where there are enough of them and it is high."""
    delays = span.events["dep_delay"]
    if len(delays) < FEWEST_DEPARTURES:
        return
    median = pc.quantile(delays, 0.5)[0].as_py()
    if median >= HIGH_MINUTES:
        yield {"median_delay": median, "departures": len(delays)}
