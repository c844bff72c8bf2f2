"""numba without its optimising: functions are only collected. What makes machine code alone imports this.

numba optimises each function together with all that it calls, and makes machine code of it, so that Python
can call it as well. For ours, of which Python calls none, that is three quarters of the time. Collected they
are optimised once, as one piece (`spark_pace.machine_code.compiler`).

This uses what is not public in numba. Where that is not there any more, numba does as it always does.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from llvmlite import binding as llvm
from numba.core import codegen, cpu, typing
from numba.core.registry import cpu_target
from numba.core.runtime import rtsys


class _Library(codegen.JITCodeLibrary):  # type: ignore[misc]
    """A function, and the libraries of those that it calls."""

    def _optimize_functions(self, module: Any) -> None:
        """Leave it to whoever optimises all."""

    def finalize(self) -> None:
        """Note only that nothing is added any more."""
        self._raise_if_finalized()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """None: there is no machine code."""
        return 0

    def whole(self) -> Any:
        """The module of the function, with all that it calls, straight or not."""
        libraries = [self]
        for one in libraries:
            new = (other for other in one._linking_libraries if isinstance(other, _Library))
            libraries += [other for other in dict.fromkeys(new) if other not in libraries]
        module = self._final_module.clone()
        for one in libraries[1:]:
            part = one._final_module.clone()
            for function in part.functions:
                if not function.is_declaration and function.linkage == llvm.Linkage.external:
                    function.linkage = "linkonce_odr"  # two libraries may have it
            module.link_in(part)
        return module


class _Codegen(codegen.JITCPUCodegen):  # type: ignore[misc]
    _library_class = _Library

    def set_env(self, name: str, environment: Any) -> None:
        """Do nothing: code that raises nothing needs no environment."""


class _Context(cpu.CPUContext):  # type: ignore[misc]
    def init(self) -> None:
        super().init()
        self._internal_codegen = _Codegen("spark_pace")


@contextmanager
def only_collected() -> Iterator[None]:
    """Let numba only collect what it compiles, apart from all else that it compiles in this process."""
    ours, target = _contexts(), vars(cpu_target)
    theirs = {name: target[name] for name in ours}
    target.update(ours)
    try:
        yield
    finally:
        target.update(theirs)


@cache
def _contexts() -> dict[str, Any]:
    rtsys.initialize(cpu_target.target_context)  # or it would be ours that others in this process link
    context = typing.Context()
    return {"_toplevel_typing_context": context, "_toplevel_target_context": _Context(context, "cpu")}
