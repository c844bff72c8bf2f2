"""``prev(x)`` and ``prev(x, n)``: an attribute of the event one place, or n places, before."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from spark_pace.core.expr import Aggregate, Column, Previous, is_single
from spark_pace.core.plan.conditions import OPENING_EVENT
from spark_pace.errors import counted
from spark_pace.rules.document.report import quote
from spark_pace.rules.expressions.attributes import ONE_VALUE
from spark_pace.rules.expressions.group_scope import GroupScope
from spark_pace.rules.expressions.names import name_of
from spark_pace.rules.expressions.scopes import MatchScope, Scope
from spark_pace.rules.expressions.types import Wrong

PREV = "prev"
MOST_BACK = 8  # so many events of each key are kept for `prev`
_USAGE = f"must be prev(attribute) or prev(attribute, n) with a whole number n from 1 to {MOST_BACK}"
_EXAMPLE = "Write for example prev(price, 2)."


def previous(scope: Scope, arguments: Sequence[exp.Expr]) -> Previous | Wrong:
    """What ``prev`` of these arguments stands for, or what is wrong with them."""
    if not scope.looks_back:
        do = "Use it in filter, or in a pattern: in a component's condition, in where or in emit."
        if isinstance(scope, GroupScope):
            do = "It looks before one event, not before each of several."
        return Wrong("must not use prev", "prev(...)", do)
    if not 1 <= len(arguments) <= 2:
        return Wrong(_USAGE, counted(len(arguments), "argument"), _EXAMPLE)
    name = arguments[0]
    parts = name_of(name, scope)
    if parts is None and _is_previous(name):
        return Wrong("must name an attribute inside prev", quote(_text(name)), _further_back(arguments))
    if parts is None:
        do = "Write for example prev(price) + 1 instead of prev(price + 1)."
        return Wrong("must name an attribute inside prev", quote(_text(name)), do)
    if parts[0] is not None and not isinstance(scope, MatchScope):
        do = f"Write prev({parts[1]}): it is about the event before the one that is tested."
        return Wrong("must name an attribute without a prefix inside prev", quote(_text(name)), do)
    back = 1 if len(arguments) == 1 else _whole_number(arguments[1])
    if back is None or not 1 <= back <= MOST_BACK:
        return Wrong(_USAGE, quote(_text(arguments[1])), _EXAMPLE)
    column = _of_component(scope, *parts) if isinstance(scope, MatchScope) else scope.column(*parts)
    if not isinstance(column, Column):
        assert isinstance(column, Wrong)
        return column
    if not is_single(column.type):
        return Wrong("must be of single values inside prev", f"{quote(parts[1])}, {column.type}", ONE_VALUE)
    return Previous(column.attribute, back, column.type, column.component)


def _of_component(scope: MatchScope, prefix: str | None, attribute: str) -> Column | Wrong:
    """An attribute of the event of a component that stands for one event, before which ``prev`` looks."""
    if scope.stands_for_several(prefix):
        got = quote(f"{prefix}.{attribute}")
        do = "Write it in the condition of that component (when), which is tested of each of its events."
        return Wrong("must be about a component that stands for one event inside prev", got, do)
    column = scope.column(prefix, attribute)
    assert not isinstance(column, Aggregate)
    if isinstance(column, Column) and (prefix is None or column.component == OPENING_EVENT):
        got = quote(attribute if prefix is None else f"{prefix}.{attribute}")
        do = "Write the name of a component before it."
        return Wrong("must be about the event of a component inside prev", got, do)
    return column


def _is_previous(tree: exp.Expr) -> bool:
    return isinstance(tree, exp.Anonymous) and tree.name.lower() == PREV


def _further_back(arguments: Sequence[exp.Expr]) -> str:
    """What to write instead of ``prev(prev(x), n)``, if that is known."""
    back = 0
    while 1 <= len(arguments) <= 2:
        number = _whole_number(arguments[1]) if len(arguments) == 2 else 1
        if number is None:
            break
        back += number
        if not _is_previous(arguments[0]):
            name = _text(arguments[0])
            most = f"It looks back at most {MOST_BACK} events."
            return f"Write prev({name}, {back})." if back <= MOST_BACK else most
        arguments = arguments[0].expressions
    return _EXAMPLE


def _whole_number(tree: exp.Expr) -> int | None:
    """The whole number that is written, without a sign and of nine digits at most; None if there is none."""
    digits = str(tree.this) if isinstance(tree, exp.Literal) and not tree.is_string else ""
    return int(digits) if len(digits) < 10 and digits.isdecimal() and digits.isascii() else None


def _text(tree: exp.Expr) -> str:
    return tree.sql(dialect="spark", normalize_functions=False)
