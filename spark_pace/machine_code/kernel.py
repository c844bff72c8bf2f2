"""Functions that run as machine code where that can be had, and the functions that these call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from spark_pace import ways
from spark_pace.machine_code.code_files import digest, kept_code, made_code
from spark_pace.machine_code.compiler import machine_code
from spark_pace.machine_code.dependencies import MARK, dependencies
from spark_pace.machine_code.layout import Layout, numbers_in, read
from spark_pace.machine_code.memory import Run, loaded

Function = TypeVar("Function", bound=Callable[..., object])


def part(function: Function) -> Function:
    """The function, so that machine code may call it."""
    setattr(function, MARK, "part")
    return function


def inlined(function: Function) -> Function:
    """The function, so that machine code has it in place of each call of it."""
    setattr(function, MARK, "inlined")
    return function


class Kernel:
    """A function that runs as machine code where that can be had; it returns nothing.

    Its arguments are whole numbers, arrays of which each is in one piece, and tuples of these. It must not
    write to arrays that are read-only: machine code would do so, only its source raises then.
    """

    def __init__(self, function: Callable[..., None]) -> None:
        """Load nothing yet."""
        self.function = part(function)
        self.failure: Exception | None = None  # why its machine code was not loaded or made, if it was not
        self._runs: dict[Layout, Run | None] = {}  # None: there is no machine code
        self._may_make = True

    @property
    def is_machine_code(self) -> bool:
        """True if there is machine code for some arguments that it has been given, so that it ran as such."""
        return any(run is not None for run in self._runs.values())

    @property
    def layouts(self) -> list[Layout]:
        """The layouts of the arguments that it has been given."""
        return list(self._runs)

    @property
    def names(self) -> list[str]:
        """The names under which its machine code is kept, one for each of these layouts."""
        return list(map(self._name, self._runs))

    def __call__(self, *arguments: Any, steps: Callable[[], float] = lambda: 0) -> None:
        """Run the function; `steps` tells how many it may take, if these may be more than its numbers."""
        words: list[int] = []
        layout = read(arguments, words)
        run = self._run(layout, arguments, steps)
        if run is None:
            with np.errstate(all="ignore"):  # machine code wraps around and says nothing, either
                self.function(*arguments)
        else:
            given = np.array(words, np.int64)
            run(given.ctypes.data)

    def _run(self, layout: Layout, arguments: tuple[Any, ...], steps: Callable[[], float]) -> Run | None:
        if layout not in self._runs:
            self._runs[layout] = self._loaded(layout)
        run = self._runs[layout]
        if run is None and self._may_make and ways.is_made_now(numbers_in(arguments), steps()):
            run = self._made(layout, arguments)
            self._runs[layout], self._may_make = run, run is not None
        return run

    def _loaded(self, layout: Layout) -> Run | None:
        """The kept machine code, put into memory; None if there is none that this machine can load."""
        try:
            code = kept_code(self._name(layout))
            return None if code is None else loaded(code)
        except (ImportError, OSError, RuntimeError) as error:
            self.failure = error  # numba or llvmlite is not there, or does not know the processor
            return None

    def _made(self, layout: Layout, arguments: tuple[Any, ...]) -> Run | None:
        """Machine code in memory, made now if no other process has kept it since; None if it cannot be."""
        try:
            name = self._name(layout)
            code = kept_code(name) or made_code(name, lambda: machine_code(self.function, arguments))
            run, self.failure = loaded(code), None
        except Exception as error:  # as above, or whatever numba raises: the source gives the same result
            self.failure = error
            return None
        return run

    def _name(self, layout: Layout) -> str:
        told = (layout, *dependencies(self.function))
        return f"{self.function.__name__}-{digest(told)}.o"
