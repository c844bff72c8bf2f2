"""What reads attributes in an expression: dotted names, aggregates, and ``prev(x, n)`` of an event before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from spark_pace.core.expr import STRUCT, Aggregate, Column, Expr, Previous, is_single, of_component, walk
from spark_pace.core.expr.canonical_text import canonical_text
from spark_pace.core.plan.conditions import OPENING_EVENT
from spark_pace.errors import counted
from spark_pace.rules.document import quote
from spark_pace.rules.expressions.functions import ARRAY_FUNCTIONS
from spark_pace.rules.expressions.scopes import Compile, Scope
from spark_pace.rules.expressions.types import ONE_VALUE, Wrong, over_values, shown

MOST_COLLECTED = 1_000
# of aggregates with a second argument: the most it may be, what they must be, and what to do
_SECOND = {
    "percentile": (
        1,
        "must be percentile(x, p) with a constant p from 0 to 1",
        "Write for example percentile(x, 0.95).",
    ),
    "collect_list": (
        MOST_COLLECTED,
        f"must be collect_list(x, n) with a whole number n from 1 to {MOST_COLLECTED:,}",
        "Write for example collect_list(x, 20): the first 20 values in stream order.",
    ),
}
PREV = "prev"
MOST_BACK = 8  # so many events of each key are kept for `prev`
_USAGE = f"must be prev(attribute) or prev(attribute, n) with a whole number n from 1 to {MOST_BACK}"
_EXAMPLE = "Write for example prev(price, 2)."


def name_of(tree: exp.Expr, scope: Scope) -> tuple[str | None, str] | None:
    """The prefix, None without one, and the attribute that a name is made of; None for what is no name.

    The first part is a prefix unless it is a STRUCT: ``user.id`` has none, ``a.user.id`` has ``a``.
    """
    parts = _parts(tree)
    if not parts:
        return None
    if len(parts) == 1 or (parts[0] in scope.schema.structs and parts[0] not in scope.names):
        return None, ".".join(parts)
    return parts[0], ".".join(parts[1:])


def _parts(tree: exp.Expr) -> list[str]:
    """The names between the dots; an empty list for what is no name."""
    if isinstance(tree, exp.Dot):
        outer = _parts(tree.this)
        return [*outer, tree.expression.name] if outer and isinstance(tree.expression, exp.Identifier) else []
    if not isinstance(tree, exp.Column) or not isinstance(tree.this, exp.Identifier):
        return []
    return [part.name for part in tree.parts]


def whole(found: Expr, tree: exp.Expr) -> Wrong | None:
    """What is wrong if a STRUCT or ARRAY is named where a single value must stand; None if nothing is.

    They may stand before ``is null``, and an ARRAY in the functions that take one.
    """
    around = tree.parent
    asked = isinstance(around, exp.Is) and isinstance(around.expression, exp.Null)
    called = (
        around.name.lower() if isinstance(around, exp.Anonymous) and around.expressions[0] is tree else ""
    )
    if is_single(found.type) or asked or (called in ARRAY_FUNCTIONS and found.type != STRUCT):
        return None
    assert isinstance(found, Column | Aggregate), found
    do = f"Name what a STRUCT holds. An ARRAY stands in {', '.join(ARRAY_FUNCTIONS)}; both before is null."
    return Wrong("must be a single value", f"{quote(found.attribute or '')}, {found.type}", do)


def aggregate(
    function: str, arguments: Sequence[exp.Expr], scope: Scope, compiled: Compile
) -> Aggregate | Wrong | None:
    """What an aggregate of these arguments stands for; None where something in it is reported as wrong."""
    at: float | Wrong | None = None
    if function in _SECOND:
        at, arguments = _second(function, arguments), arguments[:1]
    if isinstance(at, Wrong):
        return at
    if len(arguments) == 1 and isinstance(arguments[0], exp.Distinct):
        if function != "count":
            do = f"Write {function} without distinct, or count(distinct x)."
            return Wrong("must be count(distinct x)", f"{function}(distinct x)", do)
        function, arguments = "count_distinct", arguments[0].expressions
    if len(arguments) != 1:
        usage = "count(distinct x)" if function == "count_distinct" else f"{function}(x)"
        return Wrong(f"must be {usage}", counted(len(arguments), "argument"), "Give one value of each event.")
    if isinstance(arguments[0], exp.Star):
        counts = function == "count"
        do = "All events are counted by count(*)."
        return scope.aggregate(function, None, "*") if counts else Wrong(f"must be {function}(x)", "*", do)
    value = arguments[0].unnest()  # without parentheses
    name = name_of(value, scope)
    found = _computed(function, value, scope, compiled) if name is None else scope.aggregate(function, *name)
    return found if at is None or not isinstance(found, Aggregate) else replace(found, at=at)


def _second(function: str, arguments: Sequence[exp.Expr]) -> float | Wrong:
    """The second argument of ``percentile`` or ``collect_list``, a constant."""
    most, must, do = _SECOND[function]
    if len(arguments) != 2:
        return Wrong(must, counted(len(arguments), "argument"), do)
    at = arguments[1]
    is_number = isinstance(at, exp.Literal) and not at.is_string
    whole_enough = is_number and (function == "percentile" or (at.name.isdecimal() and int(at.name) > 0))
    if not whole_enough or not 0 <= float(at.name) <= most:
        return Wrong(must, quote(at.sql(dialect="spark")), do)
    return int(at.name) if function == "collect_list" else float(at.name)


def _computed(function: str, value: exp.Expr, scope: Scope, compiled: Compile) -> Aggregate | Wrong | None:
    """The aggregate of what is computed of each event."""
    inside = scope.inside(function)
    if isinstance(inside, Wrong):
        return inside
    of = compiled(value, inside)
    if of is None:
        return None
    components = {node.component for node in walk(of) if isinstance(node, Column)}
    if not components:
        must, do = f"must name an attribute inside {shown(function)}", "Events are counted by count."
        return Wrong(must, quote(canonical_text(of)), do)
    if len(components) > 1:
        got, do = " and ".join(sorted(map(str, components))), "It is computed of one event after the other."
        return Wrong(f"must be about one component inside {shown(function)}", got, do)
    if not is_single(of.type):
        return Wrong(f"must be of single values inside {shown(function)}", of.type, ONE_VALUE)
    (component,) = components
    of = of_component(of, None)
    return over_values(function, component, f"@({canonical_text(of)})", of.type, of)


def previous(scope: Scope, arguments: Sequence[exp.Expr]) -> Previous | Wrong:
    """What ``prev`` of these arguments stands for, or what is wrong with them."""
    if scope.not_back is not None:
        return Wrong("must not use prev", "prev(...)", scope.not_back)
    if not 1 <= len(arguments) <= 2:
        return Wrong(_USAGE, counted(len(arguments), "argument"), _EXAMPLE)
    name = arguments[0]
    parts = name_of(name, scope)
    if parts is None:
        do = "Write for example prev(price) + 1 instead of prev(price + 1), or prev(price, 2)."
        return Wrong("must name an attribute inside prev", quote(_text(name)), do)
    if parts[0] is not None and scope.several is None:
        do = f"Write prev({parts[1]}): it is about the event before the one that is tested."
        return Wrong("must name an attribute without a prefix inside prev", quote(_text(name)), do)
    back = 1 if len(arguments) == 1 else whole_number(arguments[1])
    if back is None or not 1 <= back <= MOST_BACK:
        return Wrong(_USAGE, quote(_text(arguments[1])), _EXAMPLE)
    if parts[0] in (scope.several or ()):
        got = quote(f"{parts[0]}.{parts[1]}")
        do = "Write it in the condition of that component (when), which is tested of each of its events."
        return Wrong("must be about a component that stands for one event inside prev", got, do)
    column = scope.column(*parts)
    if isinstance(column, Wrong):
        return column
    alone = scope.several is not None and (parts[0] is None or parts[0] == OPENING_EVENT)
    if alone or not isinstance(column, Column):
        do = "Write the name of a component before it."
        return Wrong("must be about the event of a component inside prev", quote(_text(name)), do)
    if not is_single(column.type):
        return Wrong("must be of single values inside prev", f"{quote(parts[1])}, {column.type}", ONE_VALUE)
    return Previous(column.attribute, back, column.type, column.component)


def whole_number(tree: exp.Expr) -> int | None:
    """The whole number that is written, without a sign and of nine digits at most; None if there is none."""
    digits = str(tree.this) if isinstance(tree, exp.Literal) and not tree.is_string else ""
    return int(digits) if len(digits) < 10 and digits.isdecimal() and digits.isascii() else None


def _text(tree: exp.Expr) -> str:
    return tree.sql(dialect="spark", normalize_functions=False)
