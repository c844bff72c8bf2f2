"""Rules without `partition_by` whose `where` keeps candidates to one value of an attribute.

The *join value* of an event is the text of that attribute. No candidate has events of different join values,
so a unit may keep and match its events by join value, as it does by partition key. What counts the whole
stream of the rule stays one: its numbers, and which selections are resolved.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace import ways
from spark_pace.core.columns import MASK, NO_ROW, SEQ, Ints, array, numbers, with_column
from spark_pace.core.expr import Call, Column
from spark_pace.core.match.contexts import context_of
from spark_pace.core.match.contexts.context import Backwards, Forwards
from spark_pace.core.match.release import Resolution
from spark_pace.core.plan.looking_back import looks_back
from spark_pace.core.plan.rule import Conjunct, Pattern, Rule
from spark_pace.core.plan.shape import initiator_bits, shape_of
from spark_pace.core.split.carry.carry import Carry
from spark_pace.core.split.carry.whole import Whole


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


def arrange(join: Join, carry: Carry, new_rows: int) -> None:
    """Let the carry keep its events by join value, or under one key, whichever the batch is done sooner with.

    Where a batch brings about as much as is carried, a look at all of it is not much more than a look at
    what is new. It needs no order by value then.

    Args:
        join: the rule's join.
        carry: what was kept; it is changed in place.
        new_rows: how many events the batch brings.
    """
    if carry.whole is None:
        if carry.rows and ways.is_kept_by_value(carry.rows, new_rows):
            carry.become(_by_join_value(join, carry))
    elif ways.is_kept_under_one_key(carry.rows, new_rows):
        carry.become(_under_one_key(carry, carry.whole))


def _by_join_value(join: Join, carry: Carry) -> Carry:
    """The same by join value. The next batch looks at all selections, and finds out which are resolved."""
    one = carry.find(pa.array([""]))
    events, _ = carry.events_of(one, np.ones(1, np.bool_))
    values = array(events, join.attribute)
    texts, owner = join_values(values)
    whole = Whole(int(one.next_seq[0]), int(one.next_selection[0]), Resolution(-1))
    kept = Carry(unseen=True, whole=whole)
    touched = kept.find(texts)
    touched.rows[:] = np.bincount(owner)
    mask = without_candidates(numbers(events, MASK), values, initiator_bits(join.pattern))
    events = with_column(events, MASK, mask)
    kept.put(touched, np.full(len(texts), NO_ROW), events, owner)
    return kept


def _under_one_key(carry: Carry, whole: Whole) -> Carry:
    """The same under one key. Only selections that were resolved are missing, so no match waits for these."""
    texts = carry.living()
    events, _ = carry.events_of(carry.find(texts), np.ones(len(texts), np.bool_))
    kept = Carry(unseen=True)
    touched = kept.find(pa.array([""]))
    touched.next_seq[:], touched.next_selection[:] = whole.next_seq, whole.next_selection
    if events is not None:
        events = events.take(pa.array(np.argsort(numbers(events, SEQ))))
    touched.rows[:] = carry.rows
    kept.put(touched, np.full(1, NO_ROW), events, np.zeros(carry.rows, np.int64))
    return kept
