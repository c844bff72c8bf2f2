"""Machine code is made: numba compiles functions one by one, LLVM optimises them as one piece."""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from spark_pace.machine_code.dependencies import MARK, parts_of
from spark_pace.machine_code.memory import ENTRY, OPTIMISE, machine

# no counts of who refers to an array; a division by zero gives infinity or NaN, it raises nothing
_OPTIONS = {"_nrt": False, "error_model": "numpy"}


def machine_code(function: Any, arguments: tuple[Any, ...]) -> bytes:
    """The machine code of a function for arguments of these types, as an object file."""
    from llvmlite import binding as llvm

    numba: Any = import_module("numba")
    parts = parts_of(function)
    for one in parts:
        _register(one)
    unpacked = _unpacking(_kind(arguments))

    def entry(words: Any) -> None:
        function(*unpacked(words))

    signature = numba.types.void(numba.types.CPointer(numba.types.int64))
    wrappers = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    made = numba.njit(signature, **wrappers, **_OPTIONS)(entry).overloads[signature.args]
    module = llvm.parse_assembly(made.library.get_llvm_str())
    module.get_function(made.fndesc.llvm_func_name).name = ENTRY
    outside = [f.name for f in module.functions if f.is_declaration and not f.name.startswith("llvm.")]
    assert not outside, outside  # loading code that is not whole would end the process
    target = machine()
    _optimise(module, target, {one.__name__: getattr(one, MARK) for one in parts})
    code: bytes = target.emit_object(module)
    return code


def _optimise(module: Any, target: Any, marks: dict[str, str]) -> None:
    """Optimise a module as one piece: nothing calls its functions from outside but `ENTRY`.

    numba optimises each function for itself, and hands tuples over word by word at each call. Functions that
    are marked as "inlined" are put in place of each call here; numba itself would do so again and again. Some
    of them are gone, because numba has put them in place of their calls already.

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
    for function in functions:
        function.linkage = "internal"
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


def _kind(value: Any) -> Any:
    """The type of an argument, as numba has it: all arrays may be written to."""
    numba: Any = import_module("numba")
    types = numba.types
    if isinstance(value, np.ndarray):
        return types.Array(numba.from_dtype(value.dtype), value.ndim, "C")
    if isinstance(value, tuple):
        named = type(value) if hasattr(value, "_fields") else None
        return types.BaseTuple.from_types([*map(_kind, value)], named)
    return types.int64


def _unpacking(kind: Any) -> Any:
    """What numba compiles into code that makes a tuple of this type of the words that stand for it."""
    from numba.extending import intrinsic

    modules = ("numba.types", "numba.core.cgutils", "numba.np.arrayobj")
    types, tools, arrays = map(import_module, modules)

    def generate(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
        place = iter(range(1 << 16))

        def word() -> Any:
            return builder.load(tools.gep_inbounds(builder, arguments[0], next(place)))

        def array(kind: Any) -> Any:
            number = context.get_data_type(kind.dtype)
            data, shape = builder.inttoptr(word(), number.as_pointer()), [word() for _ in range(kind.ndim)]
            size = context.get_constant(types.intp, context.get_abi_sizeof(number))
            strides = [size]
            for length in shape[:0:-1]:
                strides.insert(0, builder.mul(strides[0], length))
            found = context.make_array(kind)(context, builder)
            arrays.populate_array(found, data, shape, strides, size, meminfo=None)
            return found._getvalue()

        def made(kind: Any) -> Any:
            if isinstance(kind, types.Array):
                return array(kind)
            if isinstance(kind, types.Integer):
                return context.cast(builder, word(), types.int64, kind)
            return context.make_tuple(builder, kind, [made(one) for one in kind.types])

        return made(kind)

    @intrinsic
    def unpacked(_: Any, words: Any) -> Any:
        return kind(words), generate

    return unpacked
