"""Machine code in memory: llvmlite alone puts it there."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

Run: TypeAlias = Callable[[int], None]  # takes the address of its arguments as words

ENTRY = "entry"  # the name of the function that is called
OPTIMISE = 3


def machine() -> Any:
    """What LLVM makes code for: the processor of this machine."""
    from llvmlite import binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=OPTIMISE,
        codemodel="jitdefault",
    )


def in_memory(code: bytes) -> Any:
    """LLVM's engine, which has put an object file into memory. Its functions last as long as it does."""
    from llvmlite import binding as llvm

    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine())
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return engine


def loaded(code: bytes) -> Run:
    """The function of an object file.

    numba's functions return a status, and write a value and an error. The status is not looked at, because
    functions compiled here raise nothing.
    """
    engine = in_memory(code)
    function = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 3)(engine.get_function_address(ENTRY))
    outcome = np.zeros(2, np.int64)

    def run(words: int, _: object = engine) -> None:  # holds the engine, so that it lives as long
        function(outcome.ctypes.data, outcome.ctypes.data + 8, words)

    return run
