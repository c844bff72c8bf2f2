"""Machine code is made: numba compiles functions one by one, LLVM optimises them as one piece.

What the code of a function depends on are the functions that it calls, and what these name.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from importlib import import_module
from types import CodeType, FunctionType, ModuleType
from typing import Any

from spark_pace.machine_code.memory import ENTRY, OPTIMISE, Layout, Target, machine

MARK = "__machine_code__"  # the attribute of functions that machine code calls: how it does
_SOURCE = "__source__"  # the attribute that has the digest of their modules' sources


def mark(function: Any, how: str) -> None:
    """Mark a function that machine code may call.

    Its source is read now, while its module is imported: later there might be that of another version.
    """
    module = function.__globals__
    setattr(function, MARK, how)
    setattr(function, _SOURCE, _digest(module["__loader__"], module["__file__"]))


def parts_of(function: Any) -> list[Any]:
    """A function, and all that it calls, straight or not, and that machine code may call.

    Only functions that are named as globals are found: those of a module (``module.function``), of a closure,
    or in a table are not.
    """
    found = [function]
    for one in found:
        for value in _named(one):
            if isinstance(value, FunctionType) and hasattr(value, MARK) and value not in found:
                found.append(value)
    return found


def dependencies(function: Any) -> Iterator[object]:
    """All that the machine code of a function depends on, in words that are the same for every Python.

    These are the sources of the modules of its parts, and what the parts name of other modules.
    """
    parts = parts_of(function)
    yield from dict.fromkeys(getattr(one, _SOURCE) for one in parts)
    for one in parts:
        names = sorted(_names(one.__code__))
        for name in names:
            value = one.__globals__.get(name)
            if isinstance(value, ModuleType):
                yield (
                    name,
                    [(inner, vars(value)[inner]) for inner in names if _is_number(vars(value).get(inner))],
                )
            elif _is_number(value) or isinstance(value, tuple):
                yield name, value
            elif isinstance(value, type):
                yield name, getattr(value, "_fields", ())


@cache
def _digest(loader: Any, path: str) -> str:
    """The digest of a module's source, which may be in an archive, compiled or not."""
    return hashlib.sha256(loader.get_data(path.removesuffix("c"))).hexdigest()


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float))


def _named(function: Any) -> list[Any]:
    names = sorted(_names(function.__code__))
    return [function.__globals__[name] for name in names if name in function.__globals__]


def _names(code: CodeType) -> set[str]:
    inner = (_names(one) for one in code.co_consts if isinstance(one, CodeType))
    return set(code.co_names).union(*inner)


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
