"""Short streams that are handled as long ones are: carries of several chunks, and compiled searches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from spark_pace.core.match import chain
from spark_pace.core.match.search import search
from spark_pace.core.order import pending
from spark_pace.core.split.carry import carry


@contextmanager
def as_with_many_events() -> Iterator[None]:
    """Let the carry of a short stream have several chunks, and let compiled code search it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(carry, "SMALL", 0)
        patch.setattr(carry, "LARGEST", 12)
        patch.setattr(carry, "AT_ONCE", 5)
        patch.setattr(pending, "SMALL", 0)
        patch.setattr(pending, "LARGEST", 9)
        patch.setattr(search, "FEW", 0)
        patch.setattr(chain, "FIRST_BLOCK", 1)
        yield
