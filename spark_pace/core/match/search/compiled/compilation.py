"""How functions are compiled by numba, and kept for other processes.

The compiled code is kept beside its source or in the user's cache directory; where neither can be written,
each process compiles it anew. The names of the files in which it is kept have a digest of `SOURCES`, so that
no code is used that other sources have made: numba itself looks only at the file of the function that Python
calls.

Searches are compiled without counting who refers to an array, which took most of their time. So they make no
arrays, but write into those that they are given.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache, wraps
from pickle import UnpicklingError
from pkgutil import get_data
from typing import Any, TypeVar, cast

import numba
import numpy as np

from spark_pace.core.columns import Ints

Function = TypeVar("Function", bound=Callable[..., object])
_OF_SEARCHES: dict[str, Any] = {"_nrt": False}
KEPT: list[Any] = []  # the functions whose code is kept, as numba has them
_FOLDER = "spark_pace.core.match.search"
SOURCES = (  # the modules that compiled code takes functions, constants and the order of fields from
    "spark_pace.core.columns",
    *(
        f"{_FOLDER}.{name}"
        for name in ("comparison", "operations", "search_arguments", "turn_arguments", "unused")
    ),
    *(
        f"{_FOLDER}.compiled.{name}"
        for name in ("aggregates", "compilation", "depth_first", "interpreter", "sets", "turns")
    ),
    f"{_FOLDER}.compiled.state_machine",
)


def normal(values: Ints) -> Ints:
    """The numbers in the layout of every argument: for each other one all would be compiled once more."""
    return np.require(values, np.int64, ["C", "W"])


@cache
def _version() -> str:
    """What the sources of compiled code are told apart by."""
    places = (name.rpartition(".") for name in SOURCES)
    texts = (
        get_data(package, f"{module}.py") or b"" for package, _, module in places
    )  # from an archive as well
    return hashlib.sha256(b"\n".join(texts)).hexdigest()[:16]


def compiled(function: Function) -> Function:
    """The function as compiled functions call it."""
    return cast("Function", numba.njit(**_OF_SEARCHES)(function))


def inlined(function: Function) -> Function:
    """The function as part of the ones that call it, for those that are given more than they do."""
    return cast("Function", numba.njit(inline="always", **_OF_SEARCHES)(function))


def kept(function: Function, *, makes_arrays: bool = False) -> Function:
    """The function, compiled at its first call and kept for other processes, if there is a place for it.

    Args:
        function: what Python calls.
        makes_arrays: whether it makes arrays of its own, as searches do not: then references are counted.
    """
    options = {} if makes_arrays else _OF_SEARCHES
    function.__qualname__ += f"_{_version()}"  # of which the names of files are made
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
