"""The nodes of an expression tree: frozen, picklable, comparable."""

from __future__ import annotations

import re
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import pyarrow as pa

TypeName: TypeAlias = str  # a key of `ARROW_TYPES`, or one with parameters: DECIMAL(p,s), ARRAY<T>
ExprType: TypeAlias = str  # a `TypeName`, or NULL: the type of a bare null

STRUCT = "STRUCT"  # true where a group of attributes is there, else null; the attributes are other columns
_ARRAY = re.compile(r"ARRAY<(.+)>")
_DECIMAL = re.compile(r"DECIMAL\(([0-9]+),([0-9]+)\)")


def decimal_digits(kind: ExprType) -> tuple[int, int] | None:
    """The number of digits of a DECIMAL(p,s), and of those behind the point; None for other types."""
    found = _DECIMAL.fullmatch(kind)
    return (int(found[1]), int(found[2])) if found else None


def is_single(kind: ExprType) -> bool:
    """True if the values of a type have no parts, so that they can be compared."""
    return kind != STRUCT and array_element(kind) is None


def array_element(kind: ExprType) -> TypeName | None:
    """The type of the elements of an ARRAY<T>; None for other types."""
    found = _ARRAY.fullmatch(kind)
    return found[1] if found else None


class _ArrowTypes(dict[TypeName, pa.DataType]):
    """A mapping that makes a type with parameters when it is first asked for."""

    def __missing__(self, kind: TypeName) -> pa.DataType:
        digits, element = decimal_digits(kind), array_element(kind)
        if element is not None:
            return self.setdefault(kind, pa.list_(self[element]))
        if digits is None:
            raise KeyError(kind)
        return self.setdefault(kind, pa.decimal128(*digits))


ARROW_TYPES: Mapping[TypeName, pa.DataType] = _ArrowTypes(
    {
        "BOOLEAN": pa.bool_(),
        "BIGINT": pa.int64(),
        "DOUBLE": pa.float64(),
        "STRING": pa.string(),
        "TIMESTAMP": pa.timestamp("us"),  # UTC, without a zone
        "DATE": pa.date32(),
        STRUCT: pa.bool_(),
    }
)


@dataclass(frozen=True)
class Literal:
    """A constant.

    A TIMESTAMP is held as microseconds since 1970 UTC, a DATE as days since 1970, a DECIMAL as text.
    """

    value: bool | int | float | str | None
    type: ExprType


@dataclass(frozen=True)
class Column:
    """An attribute: of the event at hand (`component` is None) or of the event bound to a component."""

    component: str | None
    attribute: str
    type: ExprType


@dataclass(frozen=True)
class Call:
    """An operator or function on arguments; `KERNELS` in `spark_pace.core.expr.evaluation` has all names."""

    function: str
    arguments: tuple[Expr, ...]
    type: ExprType


@dataclass(frozen=True)
class Previous:
    """An attribute of the event `back` places before in the stream of rule and key; null if there is none.

    It stands before the event at hand (`component` is None), or before the event bound to a component.
    """

    attribute: str
    back: int
    type: ExprType
    component: str | None = None

    @property
    def column(self) -> str:
        """The name of the column with these values, among the attributes of events in stream order."""
        return f"@prev{self.back} {self.attribute}"


AggregateName: TypeAlias = typing.Literal[
    "count", "sum", "avg", "min", "max", "stddev", "first", "last",
    "count_distinct", "approx_count_distinct", "median", "percentile", "mode", "collect_list",
]  # fmt: skip


@dataclass(frozen=True)
class Aggregate:
    """A value over all events bound to a repeated component, or of a span if `component` is None.

    Attributes:
        function: its name in the rule language, or "count_distinct".
        component: the component.
        attribute: the attribute, or the column that `of` is computed into; None where events are counted.
        type: the type of the value.
        of: what is computed of each event, without the names of components; None where it is an attribute.
        at: the place in order that a percentile is at, from 0 to 1; of a list, the most values it has.
    """

    function: AggregateName
    component: str | None
    attribute: str | None
    type: ExprType
    of: Expr | None = None
    at: float | None = None


Expr: TypeAlias = Literal | Column | Previous | Call | Aggregate


def walk(expr: Expr) -> Iterator[Expr]:
    """Yield the node and every node below it, parents first."""
    yield expr
    if isinstance(expr, Call):
        for argument in expr.arguments:
            yield from walk(argument)


def transform(expr: Expr, change: Callable[[Expr], Expr | None]) -> Expr:
    """The expression with what `change` gives in place of nodes; where that is None, arguments change."""
    changed = change(expr)
    if changed is not None or not isinstance(expr, Call):
        return changed or expr
    return replace(expr, arguments=tuple(transform(one, change) for one in expr.arguments))


def renamed(expr: Expr, name: Callable[[str | None], str | None]) -> Expr:
    """The expression with other names of components, or none, for those before its attributes."""
    kinds = Column | Previous
    return transform(
        expr, lambda node: replace(node, component=name(node.component)) if isinstance(node, kinds) else None
    )


def of_component(expr: Expr, component: str | None) -> Expr:
    """The expression with the names of components replaced by one, or left out."""
    return renamed(expr, lambda _: component)


def conjunction(parts: Sequence[Expr]) -> Expr:
    """Join `parts` by ``and``; true if there are none."""
    if not parts:
        return Literal(True, "BOOLEAN")
    whole = parts[0]
    for part in parts[1:]:
        whole = Call("and", (whole, part), "BOOLEAN")
    return whole
