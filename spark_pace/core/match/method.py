"""How the matches of a rule are found, as far as the rule alone decides it: chosen once, read everywhere.

The *join value* of an event is the text of the attribute in which `where` says that all events of a candidate
are equal. No candidate has events of different join values, so a unit keeps and matches events by join value,
as it does by partition key.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from spark_pace.core.expr import Call, Column
from spark_pace.core.match.contexts import context_of
from spark_pace.core.match.contexts.contexts import Backwards, Forwards, Way
from spark_pace.core.match.stream import is_of_time
from spark_pace.core.plan.earlier_tests import filters_back, looks_back
from spark_pace.core.plan.rule import Conjunct, Pattern, Rule
from spark_pace.core.plan.shape import initiator_bits, shape_of, terminator_bits


@dataclass(frozen=True)
class Method:
    """How the matches of a rule are found.

    Attributes:
        way: who decides about selections and matches; None where the rule's span or fold decides instead.
        join: the attribute by whose values events are kept and matched; None where they are not.
        pattern: what is tested among events that are matched together: the rule's pattern without the
            equalities that make `join`. None if the rule has no pattern.
        waits: whether a match waits until all selections with smaller ids are resolved.
        ends_go: whether an event that can only end matches is carried no further: each of its matches has
            gone out with it.
    """

    way: Way | None
    join: str | None
    pattern: Pattern | None
    waits: bool
    ends_go: bool = False


def method_of(rule: Rule) -> Method:
    """The method of a checked rule."""
    pattern = rule.pattern
    return _method(rule, None if pattern is None or rule.span is not None else context_of(pattern).way)


@lru_cache(maxsize=4096)
def _method(rule: Rule, way: Way | None) -> Method:
    pattern = rule.pattern
    if pattern is None or way is None:
        return Method(None, None, pattern, rule.merge == "selection")
    waits = _waits(rule, pattern)
    if isinstance(way, Forwards | Backwards) and _may_join(rule, pattern):
        equalities: dict[str, list[Conjunct]] = {}
        for conjunct in pattern.where:
            if (name := _equal_attribute(conjunct)) is not None:
                equalities.setdefault(name, []).append(conjunct)
        for name, stated in equalities.items():
            if _join_all(stated, len(pattern.components), in_turn=way.in_turn):
                rest = tuple(conjunct for conjunct in pattern.where if conjunct not in stated)
                return Method(way, name, replace(pattern, where=rest), waits, _ends_go(pattern, way, waits))
    return Method(way, None, pattern, waits, _ends_go(pattern, way, waits))


def _ends_go(pattern: Pattern, way: Way, waits: bool) -> bool:
    """See `Method.ends_go`.

    Matches must not wait, nor an event that completed no match have closed a selection, nor windows or
    neighbours ask which events are there.
    """
    timed = is_of_time(pattern.within)
    open_ = isinstance(way, Backwards) or (isinstance(way, Forwards) and pattern.close == "window")
    own = pattern.order == "sequence" and not terminator_bits(pattern) & initiator_bits(pattern)
    return timed and open_ and own and not waits and shape_of(pattern).simple


def _waits(rule: Rule, pattern: Pattern) -> bool:
    """Tell whether matches wait for earlier selections.

    Matches of a plain sequence without window never wait: they are decided in the order of their selections.
    Where earlier selections decide whether there is a match, matches wait whatever the merge order is.
    """
    if pattern.within is None and not pattern.where:
        return False
    return rule.merge == "selection" or context_of(pattern).waits_for_earlier


def _may_join(rule: Rule, pattern: Pattern) -> bool:
    """Tell whether the events of one join value can be matched without looking at the others.

    They cannot where other events may stand between them (groups, negations, strict contiguity), count for
    the window (of N events), are what ``prev`` reads, or keep events from the first component. Rules with
    partition keys, or without a window, are not matched by join value either.
    """
    return (
        is_of_time(pattern.within)
        and not rule.partition_by
        and shape_of(pattern).simple
        and not looks_back(rule)
        and not filters_back(rule)
        and not pattern.absences
    )


def _equal_attribute(conjunct: Conjunct) -> str | None:
    """The attribute in which a conjunct says that two components are equal; None if it says anything else.

    It is also None for a DOUBLE: equal ones may differ in their text, as 0.0 and -0.0 do.
    """
    expr = conjunct.expr
    if not isinstance(expr, Call) or expr.function != "=":
        return None
    left, right = expr.arguments
    if not isinstance(left, Column) or not isinstance(right, Column):
        return None
    same = left.attribute == right.attribute and len(conjunct.components) == 2
    return left.attribute if same and left.type != "DOUBLE" else None


def _join_all(stated: list[Conjunct], components: int, *, in_turn: bool) -> bool:
    """Tell whether the equalities of one attribute make all components equal in it.

    With `in_turn` they must say of each component that it equals an earlier one.
    """
    pairs = [conjunct.components for conjunct in stated]
    if in_turn:
        return {later for _, later in pairs} == set(range(1, components))
    reached = {0}
    for _ in pairs:
        reached.update(*(pair for pair in pairs if not reached.isdisjoint(pair)))
    return len(reached) == components
