"""How functions are compiled by numba, and kept for other processes.

The compiled code is kept beside its source or in the user's cache directory; where neither can be written,
each process compiles it anew. Kept code is used until the file of the function that Python calls changes,
even if what it uses of other files does. So what such a function calls stands in its file.

Searches are compiled without counting who refers to an array, which took most of their time. So they make no
arrays, but write into those that they are given.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pickle import UnpicklingError
from typing import Any, TypeVar, cast

import numba
import numpy as np

from spark_pace.core.columns import Ints

Function = TypeVar("Function", bound=Callable[..., object])
_OF_SEARCHES: dict[str, Any] = {"_nrt": False}
KEPT: list[Any] = []  # the functions whose code is kept, as numba has them


def normal(values: Ints) -> Ints:
    """The numbers in the layout of every argument: for each other one all would be compiled once more."""
    return np.require(values, np.int64, ["C", "W"])


def compiled(function: Function) -> Function:
    """The function as compiled functions call it."""
    return cast("Function", numba.njit(**_OF_SEARCHES)(function))


def kept(function: Function, *, makes_arrays: bool = False) -> Function:
    """The function, compiled at its first call and kept for other processes, if there is a place for it.

    Args:
        function: what Python calls.
        makes_arrays: whether it makes arrays of its own, as searches do not: then references are counted.
    """
    options = {} if makes_arrays else _OF_SEARCHES
    anew = numba.njit(**options)(function)
    try:
        from_cache = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # there is no such place
        return cast("Function", anew)
    KEPT.append(from_cache)

    @wraps(function)
    def call(*arguments: object) -> object:
        try:
            return from_cache(*arguments)
        except (OSError, EOFError, UnpicklingError):  # what is kept there cannot be read, or nothing written
            return anew(*arguments)  # the function itself has not begun

    return cast("Function", call)
