"""What a component's predicate says of its event alone, and what of other events beside it.

The intake sees single events, so it tests the conjuncts that are about the event alone. The others are tested
where the other events are at hand: those before it in the rule's stream.
"""

from __future__ import annotations

from spark_pace.core.expr import Call, Expr, Previous, conjunction, walk


def of_its_event(predicate: Expr) -> Expr:
    """The part of a component's predicate that is about its event alone."""
    others = of_other_events(predicate)
    return conjunction([one for one in _conjuncts(predicate) if one not in others]) if others else predicate


def of_other_events(predicate: Expr) -> tuple[Expr, ...]:
    """The conjuncts of a component's predicate that are about another event as well."""
    return tuple(one for one in _conjuncts(predicate) if mentions_previous(one))


def mentions_previous(expr: Expr) -> bool:
    """Whether an expression names an attribute of an event before the one at hand."""
    return any(isinstance(node, Previous) for node in walk(expr))


def _conjuncts(expr: Expr) -> list[Expr]:
    """What stands between the outermost ``and`` of a condition."""
    if isinstance(expr, Call) and expr.function == "and":
        return [part for argument in expr.arguments for part in _conjuncts(argument)]
    return [expr]
