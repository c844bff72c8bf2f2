"""Imports the Python function that a rule calls, its operator or its fold."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import cache
from typing import Any

from spark_pace.core.functions.error_texts import last_line, traceback_text
from spark_pace.errors import OperatorError

ATTEMPTS = 2  # the number of calls until a failure is final


@cache
def load_operator(name: str) -> Callable[..., Any]:
    """The callable that ``module:function`` names.

    Raises:
        OperatorError: there is no such module or function, or another package defines the function.
    """
    module, _, function = name.partition(":")
    try:
        operator = getattr(importlib.import_module(module), function)
    except (Exception, SystemExit) as error:  # a module may raise anything when it is imported
        got = last_line(traceback_text(error))
        raise OperatorError(
            f"operator {name} — must be importable where the operators run; got {got}. "
            "Install the module, or put its folder on PYTHONPATH (--py-files on a cluster)."
        ) from error
    home, package = str(getattr(operator, "__module__", "")), module.partition(".")[0]
    if not callable(operator) or home.partition(".")[0] != package:  # it must not be an import
        raise OperatorError(
            f"operator {name} — must be a function that the package {package} defines; "
            f"got {type(operator).__name__} of {home or 'none'}. "
            "Define it there, or allow and name the module that does."
        )
    return operator  # type: ignore[no-any-return]
