"""The functions that take an ARRAY."""

from __future__ import annotations

from collections.abc import Sequence

from spark_pace.core.expr import Call, Expr, Literal, array_element
from spark_pace.rules.expressions.types import Wrong, unify

ARRAY_FUNCTIONS = ("size", "array_contains", "element_at")
_PLACES = 2**31 - 1  # as Spark counts them


def size(arguments: Sequence[Expr]) -> Expr | Wrong:
    """``size(array)``."""
    return _no_array(arguments[0]) or Call("size", tuple(arguments), "BIGINT")


def array_contains(arguments: Sequence[Expr]) -> Expr | Wrong:
    """``array_contains(array, constant)``; the constant is of the elements' type."""
    array, sought = arguments
    if wrong := _no_array(array):
        return wrong
    element = array_element(array.type) or ""
    if not isinstance(sought, Literal) or sought.value is None:
        got = "null" if isinstance(sought, Literal) else f"a computed {sought.type}"
        return Wrong("must be a constant, but not null", got, "Write a number, a text or a time.")
    unified = unify([Literal(None, element), sought], element)
    if isinstance(unified, Wrong) or unified[1].type != element:
        return Wrong(
            f"must be a constant of the type {element}", sought.type, "Look for what can be in the ARRAY."
        )
    return Call("array_contains", (array, unified[1]), "BOOLEAN")


def element_at(arguments: Sequence[Expr]) -> Expr | Wrong:
    """``element_at(array, place)``; the place is a constant: 1 is the first element, -1 the last."""
    array, place = arguments
    if wrong := _no_array(array):
        return wrong
    number = place.value if isinstance(place, Literal) and place.type == "BIGINT" else 0
    if not isinstance(number, int) or not 1 <= abs(number) <= _PLACES:
        do = "Write 1 for the first element, -1 for the last."
        return Wrong("must be a constant place other than 0", "another value", do)
    return Call("element_at", (array, place), array_element(array.type) or "")


def _no_array(value: Expr) -> Wrong | None:
    if array_element(value.type) is not None:
        return None
    return Wrong("must be an ARRAY", value.type, "Name an attribute that is declared ARRAY<TYPE>.")
