"""Profiles of Hypothesis, carries of several chunks, some beside the state, and searches that are compiled.

`ci`, the default, always takes the same examples. ``HYPOTHESIS_PROFILE=long`` searches on at random.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.support.many_events import as_with_many_events

COMMON = settings(
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)

settings.register_profile("ci", COMMON, derandomize=True, max_examples=50, database=None)
settings.register_profile("long", COMMON, max_examples=int(os.environ.get("HYPOTHESIS_EXAMPLES", "2000")))
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


@pytest.fixture(autouse=True, scope="module")
def _as_with_many_events() -> Iterator[None]:
    """Let the carry of a short stream have several chunks, and let compiled code search it."""
    with as_with_many_events():
        yield
