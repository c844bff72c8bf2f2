"""The soak's Python operator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow.compute as pc

if TYPE_CHECKING:
    from spark_pace.core.operate.python_operator import Span


def spread(span: Span) -> Iterator[dict[str, object]]:
    """How many events a span has, and their median."""
    values = span.events["value"]
    yield {"readings": len(values), "median": pc.quantile(values, 0.5)[0].as_py()}
