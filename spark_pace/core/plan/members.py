"""The members of disjunctions: what is asked of an event that may stand for any of them.

A disjunction is one component, so a search knows nothing of members. Which member an event stands for is a
bit of its ``@mask``. A condition that names a member becomes one that also holds where another member stands.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from spark_pace.core.expr import (
    Aggregate,
    Call,
    Column,
    Expr,
    ExprType,
    Literal,
    Previous,
    conjunction,
    renamed,
    walk,
)
from spark_pace.core.plan.conditions import conjuncts as conjuncts_of
from spark_pace.core.plan.conditions import of_its_event, of_other_events
from spark_pace.core.plan.rule import Component, Conjunct, Member, Pattern, Rule, StateMachine

_TURNED = {"=": "=", "<>": "<>", "<": ">", ">": "<", "<=": ">=", ">=": "<="}


def disjunction(name: str, members: Sequence[Member]) -> Component:
    """The component that a disjunction of at least one member is."""
    predicates = [member.predicate for member in members]
    predicate = _any(predicates)
    if of_other_events(predicate):  # what members say of the event alone is tested where it is known
        predicate = conjunction([_any([of_its_event(one) for one in predicates]), predicate])
    return Component(name, predicate, members=tuple(members))


def _any(conditions: Sequence[Expr]) -> Expr:
    whole = conditions[0]
    for condition in conditions[1:]:
        whole = Call("or", (whole, condition), "BOOLEAN")
    return whole


def nameable(components: Sequence[Component]) -> list[Component]:
    """The components and members that expressions can name; members as components of one event.

    A disjunction without a name of its own is called by those of its members, which no expression has.
    """
    found = list[Component]()
    for component in components:
        found += [component] if component.name.isidentifier() else []
        found += [Component(member.name, member.predicate) for member in component.members]
    return found


def names_of(component: Component) -> list[str]:
    """The names that a component takes in a pattern: its own, and those of its members."""
    return [component.name, *(member.name for member in component.members)]


def members_of(pattern: Pattern) -> list[Member]:
    """All members of the disjunctions of a pattern, in the order of the rule file."""
    return [member for component in pattern.components for member in component.members]


def conditions_by_bit(rule: Rule) -> list[tuple[int, Expr]]:
    """(bit of ``@mask``, condition) for each component, end of a group, member or condition of a move."""
    conditions = list(enumerate(rule.conditions))
    if isinstance(rule.fold, StateMachine) or rule.pattern is None:
        return conditions
    for bit, component in enumerate(rule.pattern.components):
        conditions += [(one.bit, _standing(component, place)) for place, one in enumerate(component.members)]
        if component.until is not None:
            conditions[bit] = (bit, _but_not(component.predicate, [component.until.predicate]))
    return conditions


def _standing(component: Component, place: int) -> Expr:
    """The condition under which an event stands for a member: it matches none that is listed before."""
    *before, own = (member.predicate for member in component.members[: place + 1])
    return _but_not(own, before) if before else own


def _but_not(own: Expr, others: Sequence[Expr]) -> Expr:
    """A condition, where none of some others holds."""
    false = Literal(False, "BOOLEAN")
    branches = [part for other in others for part in (other, false)]
    alone = Call("case", (*branches, own), "BOOLEAN")
    return conjunction([of_its_event(own), alone]) if of_other_events(alone) else alone


def asked(stated: Expr, components: Sequence[Component]) -> Conjunct:
    """A condition over components and members as it is asked of candidates.

    It holds wherever another member than a named one stands.
    """
    named = names_in(stated)
    places = {member.name: one.name for one in components for member in one.members if member.name in named}
    indices = [
        index
        for index, one in enumerate(components)
        if one.name in named or any(member.name in named for member in one.members)
    ]
    if not places:
        return Conjunct(stated, tuple(indices))
    columns = (Column(place, stands_column(name), "BOOLEAN") for name, place in places.items())
    other = _any([Call("not", (column,), "BOOLEAN") for column in columns])
    return Conjunct(_any([other, _of_places(stated, places)]), tuple(indices), stated)


def united(conjuncts: Sequence[Conjunct], components: Sequence[Component]) -> list[Conjunct]:
    """The conditions, with one in place of those that compare each member of a disjunction with the same.

    Of ``card.id = order.id`` and ``transfer.ref = order.id`` that is one equality of two components; its one
    side depends on the member. So a search looks events up by it, as it does by any equality.
    """
    found, unnamed = list(conjuncts), {member.name for one in components for member in one.members}
    for component in components:
        alike: dict[tuple[str, Expr, ExprType], dict[str, tuple[Conjunct, Expr]]] = {}
        for conjunct in found:
            if (compared := _compared(conjunct, component, unnamed | {component.name})) is not None:
                name, function, own, other = compared
                alike.setdefault((function, other, own.type), {}).setdefault(name, (conjunct, own))
        for (function, other, _), by_member in alike.items():
            if len(by_member) == len(component.members) > 0:
                stated = [conjunct for conjunct, _ in by_member.values()]
                sides = [by_member[member.name][1] for member in component.members]
                expr = Call(function, (_by_member(component, sides), other), "BOOLEAN")
                whole = conjunction([as_stated(conjunct) for conjunct in stated])
                place = next(index for index, one in enumerate(found) if one is stated[0])
                found[place] = Conjunct(expr, stated[0].components, whole)
                found = [one for one in found if all(one is not another for another in stated[1:])]
    return found


def _compared(
    conjunct: Conjunct, component: Component, unnamed: set[str]
) -> tuple[str, str, Expr, Expr] | None:
    """(member, comparison, its side, the other side), the member's on the left; None for other conditions.

    The other side has none of the names in `unnamed`: of members, and of the disjunction.
    """
    stated = conjunct.stated
    if not isinstance(stated, Call) or stated.function not in _TURNED or stated.arguments[0].type == "NULL":
        return None
    left, right = stated.arguments
    members = {member.name for member in component.members}
    for own, other, function in ((left, right, stated.function), (right, left, _TURNED[stated.function])):
        names, others = names_in(own), names_in(other)
        if len(names) == 1 and names < members and others and others.isdisjoint(unnamed):
            (name,) = names
            return name, function, _of_places(own, {name: component.name}), other
    return None


def _by_member(component: Component, sides: Sequence[Expr]) -> Expr:
    """The one of these expressions that is of the member for which an event stands."""
    if all(side == sides[0] for side in sides):
        return sides[0]
    columns = (Column(component.name, stands_column(member.name), "BOOLEAN") for member in component.members)
    branches = [part for pair in zip(columns, sides, strict=True) for part in pair]
    return Call("case", (*branches[:-2], sides[-1]), sides[0].type)


def separate(conjunct: Conjunct, components: Sequence[Component]) -> list[Conjunct]:
    """The conditions as the rule states them, of which `united` may have made one."""
    if conjunct.stated is None:
        return [conjunct]
    return [asked(one, components) for one in conjuncts_of(conjunct.stated)]


def names_in(expr: Expr) -> set[str]:
    """The components and members that an expression names."""
    named = (node.component for node in walk(expr) if isinstance(node, Column | Previous | Aggregate))
    return {name for name in named if name is not None}


def stands_column(name: str) -> str:
    """The name of a column that tells which events stand for a member."""
    return f"@is {name}"


def as_stated(conjunct: Conjunct) -> Expr:
    """A condition as the rule states it."""
    return conjunct.expr if conjunct.stated is None else conjunct.stated


def asked_where_it_stands(conjunct: Conjunct) -> Expr:
    """What a condition of `asked` asks of candidates in which the members stand that it names."""
    if conjunct.stated is None:
        return conjunct.expr
    assert isinstance(conjunct.expr, Call)
    return conjunct.expr.arguments[-1]


def members_in(conjunct: Conjunct, components: Iterable[Component]) -> list[Member]:
    """The members that a condition names."""
    named = set() if conjunct.stated is None else names_in(conjunct.stated)
    return [member for one in components for member in one.members if member.name in named]


def _of_places(expr: Expr, places: dict[str, str]) -> Expr:
    """The expression with the name of its disjunction in place of each member's name."""
    return renamed(expr, lambda own: own and places.get(own, own))
