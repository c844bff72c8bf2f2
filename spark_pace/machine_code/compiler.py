"""Machine code is made: numba compiles functions one by one, LLVM optimises them as one piece.

Only what makes machine code imports this, for numba takes long to load.

numba by itself optimises each function together with all that it calls, and makes machine code of it, so that
Python can call it as well. For ours, of which Python calls none, that is three quarters of the time. So they
are only collected here, by what is not public in numba, and optimised once.

What machine code is given are words in memory. A named tuple that a function gets from outside is the address
of its words. A field is read where it is named, so that a call hands over one address in place of two hundred
words: that takes a quarter of the time to compile, and less to run. Tuples that functions make themselves are
numba's own.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import numba
import numpy as np
from llvmlite import binding as llvm
from llvmlite import ir
from numba import from_dtype, types
from numba.core import cgutils, codegen, cpu, typing
from numba.core.registry import cpu_target
from numba.core.runtime import rtsys
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.extending import intrinsic, lower_getattr_generic, models, register_jitable, register_model
from numba.np import arrayobj

from spark_pace.machine_code.code_files import MARK, parts_of
from spark_pace.machine_code.memory import ENTRY, OPTIMISE, Layout, Target, machine

# no counts of who refers to an array; a division by zero gives infinity or NaN, it raises nothing
_OPTIONS = {"_nrt": False, "error_model": "numpy"}


def machine_code(function: Any, layouts: Sequence[Layout], targets: Sequence[Target]) -> list[bytes]:
    """The machine code of a function for arguments laid out so, as an object file for each target.

    It is optimised for the first target. The others get what came of that, so they give the same results.
    """
    module = _module(function, layouts)
    outside = [f.name for f in module.functions if f.is_declaration and not f.name.startswith("llvm.")]
    assert not outside, outside  # loading code that is not whole would end the process
    _optimise(module, machine(targets[0]), {one.__name__: getattr(one, MARK) for one in parts_of(function)})
    return [_object(module, target) for target in targets]


def _module(function: Any, layouts: Sequence[Layout]) -> Any:
    """LLVM's module of a function and all that it calls; `ENTRY` unpacks words and calls it."""
    for one in parts_of(function):
        _register(one)
    unpacked = unpacking(layouts)

    def entry(words: Any) -> None:
        function(*unpacked(words))

    signature = types.void(types.CPointer(types.int64))
    wrappers = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    with _only_collected():
        made = numba.njit(signature, **wrappers, **_OPTIONS)(entry).overloads[signature.args]
        module = made.library.whole()
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
    register_jitable(**_OPTIONS)(function)


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
def _only_collected() -> Iterator[None]:
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


class Given(types.Type):  # type: ignore[misc]
    """The type of a named tuple that is given.

    Attributes:
        fields: the type of each field, and the place of its first word.
        words: how many words the tuple has.
    """

    def __init__(self, layout: Layout) -> None:
        """Put the words of the fields one behind the other."""
        names = [one for one in layout[1:] if isinstance(one, str)]
        kinds = [kind_of(one) for one in layout[1 + len(names) :]]
        self.fields, self.words = {}, 0
        for name, kind in zip(names, kinds, strict=True):
            self.fields[name] = kind, self.words
            self.words += words_in(kind)
        told = hashlib.sha256(repr(layout).encode()).hexdigest()[:16]  # the name stands in each call
        super().__init__(f"{layout[0]}_{told}")


def kind_of(layout: Layout) -> Any:
    """The type of what is laid out so: an array, which may be written to, a named tuple or a number."""
    if not layout:
        return types.int64
    if isinstance(layout[1], int):
        return types.Array(from_dtype(np.dtype(layout[0])), layout[1], "C")
    return Given(layout)


def words_in(kind: Any) -> int:
    """How many words stand for a value."""
    if isinstance(kind, Given):
        return kind.words
    return 1 + kind.ndim if isinstance(kind, types.Array) else 1


def unpacking(layouts: Iterable[Layout]) -> Any:
    """What numba compiles into code that makes a tuple of arguments of the words that stand for them."""
    kinds = [kind_of(one) for one in layouts]

    def generate(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
        made, place = [], 0
        for kind in kinds:
            made.append(_read(context, builder, kind, (arguments[0], place)))
            place += words_in(kind)
        return context.make_tuple(builder, types.Tuple(kinds), made)

    @intrinsic  # type: ignore[untyped-decorator]
    def unpacked(_: Any, words: Any) -> Any:
        return types.Tuple(kinds)(words), generate

    return unpacked


def _read(context: Any, builder: Any, kind: Any, at: tuple[Any, int]) -> Any:
    """The value that stands in memory, behind so many words."""
    words, place = at

    def word(number: int) -> Any:
        found = builder.load(cgutils.gep_inbounds(builder, words, place + number))
        found.set_metadata("invariant.load", builder.module.add_metadata([]))  # nothing writes to words
        return found

    if isinstance(kind, Given):
        return builder.bitcast(cgutils.gep_inbounds(builder, words, place), cgutils.voidptr_t)
    if not isinstance(kind, types.Array):
        return context.cast(builder, word(0), types.int64, kind)
    number = context.get_data_type(kind.dtype)
    data, shape = builder.inttoptr(word(0), number.as_pointer()), [word(1 + one) for one in range(kind.ndim)]
    size = context.get_constant(types.intp, context.get_abi_sizeof(number))
    strides = [size]
    for length in shape[:0:-1]:
        strides.insert(0, builder.mul(strides[0], length))
    found = context.make_array(kind)(context, builder)
    arrayobj.populate_array(found, data, shape, strides, size, meminfo=None)
    return found._getvalue()


register_model(Given)(models.OpaqueModel)  # an address


@infer_getattr
class _Fields(AttributeTemplate):  # type: ignore[misc]
    key = Given

    def generic_resolve(self, given: Given, name: str) -> Any:
        return given.fields[name][0] if name in given.fields else None


@lower_getattr_generic(Given)  # type: ignore[untyped-decorator]
def _field(context: Any, builder: Any, given: Given, value: Any, name: str) -> Any:
    kind, place = given.fields[name]
    return _read(context, builder, kind, (builder.bitcast(value, ir.IntType(64).as_pointer()), place))
