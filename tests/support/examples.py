"""Runs the examples in docstrings."""

from __future__ import annotations

import doctest
from typing import Any


def tried(documented: object, values: dict[str, Any]) -> int:
    """How many examples the docstring of something has; each must give what it shows.

    Args:
        documented: a module, a class or a function.
        values: what the names that the examples take for granted stand for.
    """
    name = getattr(documented, "__name__", "")
    (test,) = doctest.DocTestFinder(recurse=False).find(documented, name, globs=values)
    result = doctest.DocTestRunner().run(test)
    assert result.failed == 0
    return result.attempted
