"""Evaluate the predicates on whole columns, and give each slot the events that its rules need."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spark_pace.core.columns import HOME, OFFSET, SOURCE, TIME, Bools, array, chosen, with_column
from spark_pace.core.expr import EventColumns, evaluate_mask
from spark_pace.core.intake.keys import key_texts
from spark_pace.core.plan.buckets import buckets_of
from spark_pace.core.plan.plan import Plan, RulePlan, bits_column, key_column_of


def pack(plan: Plan, events: pa.Table) -> list[tuple[int, pa.Table]]:
    """Cut a table of events into the parts that the slots need.

    Args:
        plan: the plan.
        events: ``@time, @source, @offset`` and the schema's attributes, in any order.

    Returns:
        (slot, frame) for each slot that needs events. Its columns are ``@time, @source, @offset, @home``, the
        bits, the texts of partition keys, and the attributes that the slot's rules use. Where repeats are
        dropped, every slot gets every event.
    """
    if not events.num_rows:
        return []
    events, held, member = _wanted_somewhere(plan, events, *_held(plan, events))
    full = _with_bits(events, [*held, *member])
    for names in plan.partition_keys:
        texts = key_texts(names, [array(events, name) for name in names])
        full = with_column(full, key_column_of(names), texts)
    buckets = {name: _buckets(full, name, plan.buckets) for name in map(key_column_of, plan.partition_keys)}
    return _slot_frames(plan, full, member, buckets)


def wanted(plan: Plan, events: pa.Table) -> Bools:
    """bool[n], which events belong to the stream of a rule; `events` has the schema's attributes."""
    return _of_any(_held(plan, events)[1], events.num_rows)


def _of_any(member: list[Bools], rows: int) -> Bools:
    """bool[n], which events belong to the stream of any of the rules, of which there may be none."""
    return np.logical_or.reduce([np.zeros(rows, np.bool_), *member])  # type: ignore[no-any-return]


def _held(plan: Plan, events: pa.Table) -> tuple[list[Bools], list[Bools]]:
    """For each predicate where it holds, and for each rule which events its stream has; bool[n] each."""
    columns = EventColumns(events)
    held = [evaluate_mask(predicate, columns) for predicate in plan.predicates]
    return held, [_stream_member(planned, held, events.num_rows) for planned in plan.rules]


def _wanted_somewhere(
    plan: Plan, events: pa.Table, held: list[Bools], member: list[Bools]
) -> tuple[pa.Table, list[Bools], list[Bools]]:
    """The events that some slot needs, with the columns that are needed for it, and what holds of them."""
    used = {name for slot in range(plan.slots) for name in slot_columns(plan, slot)}
    used.update(*plan.partition_keys)
    events = events.select([name for name in events.column_names if name in used])
    wanted = _of_any(member, events.num_rows)
    if plan.order.deduplicate_on or wanted.all():  # see `_slot_frames`
        return events, held, member
    rows = np.flatnonzero(wanted)
    return chosen(events, wanted), [one[rows] for one in held], [one[rows] for one in member]


def _stream_member(planned: RulePlan, held: list[Bools], rows: int) -> Bools:
    """bool[n], which events belong to the rule's stream, given where each predicate holds.

    Sources: semantics, section 1.
    """
    member = np.full(rows, planned.takes_all)
    if not planned.takes_all:
        for _, predicate in planned.bits:
            member |= held[predicate]
    if planned.filter_bit is not None:
        member &= held[planned.filter_bit]
    return member


def _with_bits(events: pa.Table, held: list[Bools]) -> pa.Table:
    """The events with one bit more for each of `held`, in the columns ``@bits``."""
    words: dict[str, npt.NDArray[np.uint8]] = {}
    for number, holds in enumerate(held):
        name, bit = bits_column(number)
        word = words.setdefault(name, np.zeros((len(holds), 8), np.uint8))  # the lowest byte first
        word[:, bit // 8] |= holds.view(np.uint8) << np.uint8(bit % 8)
    for name, word in words.items():
        events = with_column(events, name, word.view("<u8").ravel().astype(np.uint64, copy=False))
    return events


def _buckets(events: pa.Table, key_column: str, buckets: int) -> npt.NDArray[np.int64]:
    keys = array(events, key_column)
    return buckets_of(keys.dictionary, buckets)[keys.indices.to_numpy()]  # type: ignore[no-any-return]


def _slot_frames(
    plan: Plan, events: pa.Table, member: list[Bools], buckets: dict[str, npt.NDArray[np.int64]]
) -> list[tuple[int, pa.Table]]:
    frames = []
    seen = np.zeros(events.num_rows, np.bool_)
    for slot, units in enumerate(plan.units):
        # every slot must see every event where repeats are dropped, or the slots would drop different ones
        wanted = np.full(events.num_rows, bool(plan.order.deduplicate_on))
        for unit in units:
            planned = plan.rules[unit.rule_index]
            mine = member[unit.rule_index]
            if planned.key_column is not None and plan.buckets > 1:
                mine = mine & (buckets[planned.key_column] == unit.bucket)
            wanted |= mine
        if wanted.any():
            frame = with_column(events, HOME, wanted & ~seen).select(slot_columns(plan, slot))
            frames.append((slot, chosen(frame, wanted)))
            seen |= wanted
    return frames


def slot_columns(plan: Plan, slot: int) -> list[str]:
    """The names of the columns of a slot's frames, in their order."""
    rules = [plan.rules[index] for index in dict.fromkeys(unit.rule_index for unit in plan.units[slot])]
    bits = dict.fromkeys(bits_column(number)[0] for number in range(len(plan.bit_names)))
    keys = dict.fromkeys(planned.key_column for planned in rules if planned.key_column is not None)
    used = {name for planned in rules for name in (*planned.columns, *planned.tested)}
    used |= {*plan.ties, *plan.order.deduplicate_on}
    attributes = [field.name for field in plan.schema.fields if field.name in used]
    return [TIME, SOURCE, OFFSET, HOME, *bits, *keys, *attributes]
