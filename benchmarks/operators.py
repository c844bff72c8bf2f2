"""A Python operator of a known price."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spark_pace.core.operate.python_operator import Span

PRICE_SECONDS = 0.001


def one_millisecond(span: Span) -> Iterator[dict[str, object]]:
    """Keep a core busy for a millisecond, so two copies need two cores; then yield the first event's id."""
    end = time.perf_counter() + PRICE_SECONDS
    while time.perf_counter() < end:
        pass
    yield {"first_id": span.events["id"][0].as_py()}
