"""Machine code is made: numba compiles functions one by one, LLVM optimises them as one piece."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from importlib import import_module
from typing import Any

from spark_pace.machine_code.dependencies import MARK, parts_of
from spark_pace.machine_code.layout import Layout
from spark_pace.machine_code.memory import ENTRY, OPTIMISE, Target, machine

# no counts of who refers to an array; a division by zero gives infinity or NaN, it raises nothing
_OPTIONS = {"_nrt": False, "error_model": "numpy"}


def machine_code(function: Any, layouts: Sequence[Layout], targets: Sequence[Target]) -> list[bytes]:
    """The machine code of a function for arguments laid out so, as an object file for each target.

    It is optimised for the first target. The others get what came of that, so they give the same results.
    """
    try:
        module = _module(function, layouts, _collecting())
    except Exception:  # numba's inside is not as it was: by its public way it takes three times as long
        module = _module(function, layouts, nullcontext())
    outside = [f.name for f in module.functions if f.is_declaration and not f.name.startswith("llvm.")]
    assert not outside, outside  # loading code that is not whole would end the process
    _optimise(module, machine(targets[0]), {one.__name__: getattr(one, MARK) for one in parts_of(function)})
    return [_object(module, target) for target in targets]


def _collecting() -> AbstractContextManager[None]:
    found: AbstractContextManager[None] = import_module(f"{__package__}.linking").only_collected()
    return found


def _module(function: Any, layouts: Sequence[Layout], compiling: AbstractContextManager[None]) -> Any:
    """LLVM's module of a function and all that it calls; `ENTRY` unpacks words and calls it."""
    from llvmlite import binding as llvm

    numba: Any = import_module("numba")
    for one in parts_of(function):
        _register(one)
    unpacked = import_module(f"{__package__}.given").unpacking(layouts)

    def entry(words: Any) -> None:
        function(*unpacked(words))

    signature = numba.types.void(numba.types.CPointer(numba.types.int64))
    wrappers = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    with compiling:
        made = numba.njit(signature, **wrappers, **_OPTIONS)(entry).overloads[signature.args]
        library = made.library
        whole = hasattr(library, "whole")
        module = library.whole() if whole else llvm.parse_assembly(library.get_llvm_str())
    module.get_function(made.fndesc.llvm_func_name).name = ENTRY
    module.verify()
    return module


def _object(module: Any, target: Target) -> bytes:
    emitter = machine(target)
    module.triple, module.data_layout = target.triple, str(emitter.target_data)
    code: bytes = emitter.emit_object(module)
    return code


def _optimise(module: Any, target: Any, marks: dict[str, str]) -> None:
    """Optimise a module as one piece: nothing calls its functions from outside but `ENTRY`.

    Functions that are marked as "inlined" are put in place of each call. Some of them are gone, where numba
    has put them in place of their calls already.

    Args:
        module: the module.
        target: what it is optimised for.
        marks: the name of each function that it is made of, with its mark.
    """
    from llvmlite import binding as llvm

    names = re.compile(rf"\d({'|'.join(marks)})B")  # numba writes the length of a name, the name, a tag
    functions = [one for one in module.functions if not one.is_declaration and one.name != ENTRY]
    found = [(one, match[1]) for one in functions if (match := names.search(one.name)) is not None]
    assert found or not functions, "numba must write names as it did"
    for one in (*functions, *(one for one in module.global_variables if not one.is_declaration)):
        one.linkage = "internal"
    for function, name in found:
        if marks[name] == "inlined":
            function.add_function_attribute("alwaysinline")
    builder = llvm.create_pass_builder(target, llvm.create_pipeline_tuning_options(OPTIMISE))
    builder.getModulePassManager().run(module, builder)


@cache
def _register(function: Any) -> None:
    """Let numba compile a function wherever code that it compiles calls it."""
    from numba.extending import register_jitable

    register_jitable(**_OPTIONS)(function)
