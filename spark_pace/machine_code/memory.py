"""What machine code is made for, and machine code in memory: llvmlite alone puts it there.

Arguments are words: addresses and sizes of arrays, and numbers. Their layout says what they are.
"""

from __future__ import annotations

import ctypes
import hashlib
import sys
from collections.abc import Callable
from functools import cache
from operator import index
from typing import Any, NamedTuple, TypeAlias

import numpy as np

# of an array the type of its numbers and its dimensions; of a tuple its type, fields, and their layouts
Layout: TypeAlias = tuple[Any, ...]


def read(value: Any, words: list[int]) -> Layout:
    """The layout of an argument; its words are appended to `words`."""
    if isinstance(value, np.ndarray):
        assert value.flags.c_contiguous, "an array must be in one piece"
        words += (value.__array_interface__["data"][0], *value.shape)
        return value.dtype.str, value.ndim
    if isinstance(value, tuple):
        return type(value).__name__, *getattr(value, "_fields", ()), *[read(one, words) for one in value]
    words.append(index(value))  # refuses what is no whole number
    return ()


def numbers_in(value: Any) -> int:
    """How many numbers an argument has in all."""
    if isinstance(value, tuple):
        return sum(map(numbers_in, value))
    return value.size if isinstance(value, np.ndarray) else 1


Run: TypeAlias = Callable[[int], None]  # takes the address of its arguments as words

ENTRY = "entry"  # the name of the function that is called
OPTIMISE = 3


class Target(NamedTuple):
    """A kind of machine.

    Attributes:
        name: what its code is known by.
        triple: LLVM's name of the kind.
        cpu: the processor, or the least one, by LLVM's name.
        features: what it has beside those.
        needs: what a processor must have to be of the kind.
    """

    name: str
    triple: str
    cpu: str
    features: str
    needs: tuple[str, ...]


# what a wheel brings code for: all processors since 2009, and those of ARM with 64 bits
SHIPPED = (
    Target(
        *("x86-64-v2-linux", "x86_64-unknown-linux-gnu", "x86-64-v2", ""),
        ("cx16", "popcnt", "sahf", "sse3", "ssse3", "sse4.1", "sse4.2"),
    ),
    Target("aarch64-linux", "aarch64-unknown-linux-gnu", "generic", "", ()),
)


@cache
def here() -> Target:
    """What code is made for on this machine: what a wheel brings if it can run here, else its own processor.

    Code for the least processor of a kind is as fast as code for this one: searches read memory.
    """
    from llvmlite import binding as llvm

    triple, features = llvm.get_default_triple(), llvm.get_host_cpu_features()
    for one in SHIPPED:
        same = sys.platform == "linux" and one.triple.partition("-")[0] == triple.partition("-")[0]
        if same and all(features.get(need) for need in one.needs):
            return one
    cpu, has = llvm.get_host_cpu_name(), features.flatten()
    told = hashlib.sha256(repr((triple, cpu, has)).encode()).hexdigest()[:16]
    return Target(f"{cpu}-{told}", triple, cpu, has, ())


def machine(target: Target) -> Any:
    """What LLVM makes code for a kind of machine with."""
    from llvmlite import binding as llvm

    if target is here():
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
    else:
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
    return llvm.Target.from_triple(target.triple).create_target_machine(
        cpu=target.cpu, features=target.features, opt=OPTIMISE, codemodel="jitdefault"
    )


def loaded(code: bytes) -> Run:
    """The function of an object file.

    numba's functions return a status, and write a value and an error. The status is not looked at, because
    functions compiled here raise nothing.
    """
    from llvmlite import binding as llvm

    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine(here()))
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    function = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 3)(engine.get_function_address(ENTRY))
    outcome = np.zeros(2, np.int64)

    def run(words: int, _: object = engine) -> None:  # holds the engine, so that it lives as long
        function(outcome.ctypes.data, outcome.ctypes.data + 8, words)

    return run
