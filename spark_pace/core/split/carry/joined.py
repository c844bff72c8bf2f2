"""Rules without `partition_by` whose `where` keeps candidates to one value of an attribute.

The *join value* of an event is the text of that attribute. No candidate has events of different join values,
so a unit keeps and matches its events by join value, as it does by partition key. What counts the whole
stream of the rule stays one: its numbers, and which selections are resolved.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.columns import Ints
from spark_pace.core.expr import Call, Column
from spark_pace.core.match.contexts import context_of
from spark_pace.core.match.contexts.context import Backwards, Forwards
from spark_pace.core.plan.looking_back import looks_back
from spark_pace.core.plan.rule import Conjunct, Pattern, Rule
from spark_pace.core.plan.shape import shape_of


@dataclass(frozen=True)
class Join:
    """What holds the events of a candidate together.

    Attributes:
        attribute: the attribute in which they are equal.
        pattern: the rule's pattern without the equalities: what is left to test among events of one value.
    """

    attribute: str
    pattern: Pattern


def join_of(rule: Rule) -> Join | None:
    """The join of a rule without `partition_by` and with a window of time; None where it has none."""
    pattern = rule.pattern
    if pattern is None or rule.span is not None or rule.partition_by:
        return None
    way = context_of(pattern).way
    if not isinstance(way, Forwards | Backwards) or pattern.within is None or pattern.within.time_us is None:
        return None
    if not shape_of(pattern).simple:  # other values' events belong to groups, and forbid
        return None
    if looks_back(rule):
        return None  # the event before may have another value
    equalities: dict[str, list[Conjunct]] = {}
    for conjunct in pattern.where:
        if (name := _equal_attribute(conjunct)) is not None:
            equalities.setdefault(name, []).append(conjunct)
    for name, stated in equalities.items():
        if _join_all(stated, len(pattern.components), in_turn=way.in_turn):
            rest = tuple(conjunct for conjunct in pattern.where if conjunct not in stated)
            return Join(name, replace(pattern, where=rest))
    return None


def _equal_attribute(conjunct: Conjunct) -> str | None:
    """The attribute in which a conjunct says that two components are equal; None where it says another thing.

    Not one of floats: equal ones may differ in their text, as 0.0 and -0.0 do.
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
    """Whether equalities hold all components together; `in_turn`: each one with an earlier one."""
    pairs = [conjunct.components for conjunct in stated]
    if in_turn:
        return {later for _, later in pairs} == set(range(1, components))
    reached = {0}
    for _ in pairs:
        reached.update(*(pair for pair in pairs if not reached.isdisjoint(pair)))
    return len(reached) == components


def join_values(values: pa.Array) -> tuple[pa.Array, Ints]:
    """The join values of n events.

    Returns:
        texts: string[k], distinct, that of null among them; owner: int64[n], the index of each event's text.
    """
    encoded = values.dictionary_encode(null_encoding="encode")
    distinct = encoded.dictionary
    if pa.types.is_timestamp(distinct.type):
        distinct = distinct.cast(pa.int64())
    texts = pc.fill_null(pc.binary_join_element_wise("=", distinct.cast(pa.string()), ""), "null")
    return texts, encoded.indices.to_numpy().astype(np.int64)


def without_candidates(mask: npt.NDArray[np.uint16], values: pa.Array, bits: int) -> npt.NDArray[np.uint16]:
    """The masks of events; where the value is null, bit 0 is left to those that have one of `bits`, no other.

    Null equals nothing, so such an event is in no candidate, but it opens a selection if it has the bits of
    initiators.
    """
    if not values.null_count:
        return mask
    null = pc.is_null(values).to_numpy(zero_copy_only=False)
    return np.where(null, (mask & np.uint16(bits) != 0).astype(np.uint16), mask)
