"""What machine code is given, as numba has it: words in memory. Only what makes machine code imports this.

A named tuple that a function gets from outside is the address of its words. A field is read where it is
named, so that a call hands over one address in place of two hundred words: that takes a quarter of the time
to compile, and less to run. Tuples that functions make themselves are numba's own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import from_dtype, types
from numba.core import cgutils
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.extending import intrinsic, lower_getattr_generic, models, register_model
from numba.np import arrayobj

from spark_pace.machine_code.memory import Layout


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
