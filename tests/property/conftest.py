"""Carries of several chunks, some beside the state, and searches that are compiled."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.many_events import as_with_many_events


@pytest.fixture(autouse=True, scope="module")
def _as_with_many_events() -> Iterator[None]:
    """Let the carry of a short stream have several chunks, and let compiled code search it."""
    with as_with_many_events():
        yield
