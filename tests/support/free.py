"""What tests of rules that use nothing up have in common."""

from __future__ import annotations

import pytest

from tests.support.loaded_rules import CONTEXTS
from tests.support.streams import SECOND

WAYS = [*((context, False) for context in CONTEXTS if context.consumption == "zero"), (CONTEXTS[0], True)]
FREE = pytest.mark.parametrize(
    ("context", "close_window"), WAYS, ids=[f"{context}{' window' * close}" for context, close in WAYS]
)
BEYOND = 200 * SECOND  # behind every window
