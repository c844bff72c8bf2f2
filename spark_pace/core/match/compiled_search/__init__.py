"""The compiled searches for candidates of a pattern."""

from __future__ import annotations

from types import ModuleType

from spark_pace.core.match.compiled_search import conjunction_search, sequence_search
from spark_pace.core.match.search.search import Search


def searches_of(search: Search) -> ModuleType:
    """The module with the searches for candidates of a sequence, or of a conjunction."""
    return conjunction_search if search.pattern.order != "sequence" else sequence_search
