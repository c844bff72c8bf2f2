"""What the machine code of a function depends on: the functions that it calls, and what these name."""

from __future__ import annotations

from collections.abc import Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

MARK = "__machine_code__"  # the attribute of functions that machine code calls


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
    """All that the machine code of a function depends on, in words by which it is told apart."""
    for one in parts_of(function):
        yield one.__qualname__, getattr(one, MARK), _told(one.__code__)
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


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float))


def _named(function: Any) -> list[Any]:
    names = sorted(_names(function.__code__))
    return [function.__globals__[name] for name in names if name in function.__globals__]


def _names(code: CodeType) -> set[str]:
    inner = (_names(one) for one in code.co_consts if isinstance(one, CodeType))
    return set(code.co_names).union(*inner)


def _told(code: CodeType) -> tuple[object, ...]:
    constants = (_told(one) if isinstance(one, CodeType) else one for one in code.co_consts)
    return code.co_code, code.co_names, code.co_varnames, tuple(constants)
