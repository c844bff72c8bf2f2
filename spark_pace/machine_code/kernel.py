"""Functions that run as machine code where that can be had, and the functions that these call."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, TypeAlias, TypeVar

import numpy as np

from spark_pace import ways
from spark_pace.machine_code.code_files import dependencies, digest, keep, kept_code, mark
from spark_pace.machine_code.memory import Layout, Run, Target, here, loaded, numbers_in, read

Function = TypeVar("Function", bound=Callable[..., object])
Layouts: TypeAlias = tuple[Layout, ...]

_AHEAD = "`python -m spark_pace.cli.kernels`"
_MAKING = (
    "compiled code — none was found for searches on this kind of processor, {}: it is made now and kept, "
    f"which takes some 20 s for each kind of pattern, once. {_AHEAD} makes all of it ahead."
)
_NOT_KEPT = (
    "compiled code — must be kept, or each process makes it anew; got no folder that can be written to. "
    "Name one by NUMBA_CACHE_DIR."
)


def part(function: Function) -> Function:
    """The function, so that machine code may call it."""
    mark(function, "part")
    return function


def inlined(function: Function) -> Function:
    """The function, so that machine code has it in place of each call of it."""
    mark(function, "inlined")
    return function


class Kernel:
    """A function that runs as machine code where that can be had; it returns nothing.

    Its arguments are whole numbers, arrays of which each is in one piece, and named tuples of these. It must
    not write to arrays that are read-only: machine code would do so, only its source raises then.
    """

    def __init__(self, function: Callable[..., None]) -> None:
        """Load nothing yet."""
        self.function = part(function)
        self.failure: Exception | None = None  # why its machine code was not loaded or made, if it was not
        self.runs: dict[Layouts, Run | None] = {}  # by what it was given; None: there is no machine code
        self._may_make = True

    def __call__(self, *arguments: Any, steps: Callable[[], float] = lambda: 0) -> None:
        """Run the function; `steps` tells how many it may take, if these may be more than its numbers."""
        self.bound(*arguments, steps=steps)()

    def bound(self, *arguments: Any, steps: Callable[[], float] = lambda: 0) -> Callable[[], None]:
        """The function as it is run again and again with the same arguments; see `__call__`."""
        words: list[int] = []
        layouts = tuple(read(one, words) for one in arguments)
        run = self._run(layouts, lambda: ways.is_made_now(numbers_in(arguments), steps()))
        given = np.array(words, np.int64)

        def by_source() -> None:
            with np.errstate(all="ignore"):  # machine code wraps around and says nothing, either
                self.function(*arguments)

        return by_source if run is None else lambda: run(given.ctypes.data)

    def is_ready(self, arguments: tuple[Any, ...], is_made_now: bool) -> bool:
        """True if such arguments run as machine code; it is loaded, or made if it must be and may be."""
        layouts = tuple(read(one, []) for one in arguments)
        return self._run(layouts, lambda: is_made_now) is not None

    def name(self, layouts: Layouts, target: Target) -> str:
        """The name under which its machine code for some arguments and a target is kept."""
        told = digest((layouts, *dependencies(self.function)))
        return f"{target.name}/{self.function.__name__}-{told}.o"

    def codes(self, layouts: Layouts, targets: Sequence[Target]) -> dict[str, bytes]:
        """Its machine code for some arguments and targets, by name; all is made if some is not there.

        Raises:
            Exception: whatever numba raises, or that it is not there.
        """
        names = [self.name(layouts, target) for target in targets]
        found = {name: code for name in names if (code := kept_code(name)) is not None}
        if len(found) == len(names):
            return found
        from spark_pace.machine_code.compiler import machine_code  # loads numba

        return dict(zip(names, machine_code(self.function, layouts, targets), strict=True))

    def _run(self, layouts: Layouts, is_made_now: Callable[[], bool]) -> Run | None:
        if layouts not in self.runs:
            self.runs[layouts] = self._loaded(layouts)
        run = self.runs[layouts]
        if run is None and self._may_make and is_made_now():
            run = self._made(layouts)
            self.runs[layouts], self._may_make = run, run is not None
        return run

    def _loaded(self, layouts: Layouts) -> Run | None:
        """The kept machine code, put into memory; None if there is none that this machine can load."""
        try:
            code = kept_code(self.name(layouts, here()))
            return None if code is None else loaded(code)
        except (ImportError, OSError, RuntimeError) as error:
            self.failure = error  # llvmlite is not there, or does not know the processor
            return None

    def _made(self, layouts: Layouts) -> Run | None:
        """Machine code in memory, made now if no other process has kept it since; None if it cannot be."""
        try:
            name = self.name(layouts, here())
            if (code := kept_code(name)) is None:
                from spark_pace.machine_code.compiler import machine_code  # loads numba

                _say(_MAKING.format(here().name))
                (code,) = machine_code(self.function, layouts, [here()])
                if not keep(name, code):
                    _say(_NOT_KEPT)
            run, self.failure = loaded(code), None
        except Exception as error:  # as above, or whatever numba raises: the source gives the same result
            self.failure = error
            return None
        return run


@cache
def _say(line: str) -> None:
    """Say something once in a process, on stderr: in a job that is its log."""
    print(line, file=sys.stderr, flush=True)
