"""Short streams that are handled as long ones are: carries of several chunks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from spark_pace import ways


@contextmanager
def as_with_many_events() -> Iterator[None]:
    """Let the carry of a short stream have several chunks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ways, "SMALL", 0)
        patch.setattr(ways, "LARGEST", 12)
        patch.setattr(ways, "PART_ROWS", 5)
        patch.setattr(ways, "FIRST_OPENINGS", 1)
        yield
