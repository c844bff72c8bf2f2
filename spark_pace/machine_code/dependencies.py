"""What the machine code of a function depends on: the functions that it calls, and what these name."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import cache
from types import CodeType, FunctionType, ModuleType
from typing import Any

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
