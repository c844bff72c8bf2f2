"""Evaluates the predicates on whole columns, and packs for each slot the events that its rules need."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spark_pace.core.columns import HOME, OFFSET, SOURCE, TIME, Bools, Ints
from spark_pace.core.hashes import buckets_of
from spark_pace.core.intake.bitmaps import Bitmap, as_bools, every_event, no_event, side_by_side
from spark_pace.core.intake.key_texts import key_texts
from spark_pace.core.intake.predicates import held
from spark_pace.core.plan.plan import Plan, RulePlan, bits_column, key_column_of
from spark_pace.core.tables import array, chosen, numbers, with_column


def pack(plan: Plan, events: pa.Table) -> list[tuple[int, pa.Table]]:
    """Divide a table of events among the slots that need them.

    Args:
        plan: the plan.
        events: ``@time, @source, @offset`` and the schema's attributes, in any order.

    Returns:
        (slot, frame) for each slot that needs events. The columns of a frame are ``@time``, ``@source``,
        ``@offset``, ``@home``, the bits, the texts of partition keys, and the attributes that the slot's
        rules use. If repeats are dropped, every slot gets every event.
    """
    if not events.num_rows:
        return []
    bitmaps = held(plan, events)
    bitmaps += _streams(plan, bitmaps, events.num_rows)
    count = events.num_rows
    events, rows = _wanted_somewhere(plan, events, bitmaps[len(plan.predicates) :])
    full = _with_bits(events, bitmaps, rows, count)
    for names in plan.partition_keys:
        texts = key_texts(names, [array(events, name) for name in names])
        full = with_column(full, key_column_of(names), texts)
    buckets = {name: _buckets(full, name, plan.buckets) for name in map(key_column_of, plan.partition_keys)}
    return _slot_frames(plan, full, buckets)


def wanted(plan: Plan, events: pa.Table) -> Bools:
    """bool[n]: which events belong to the stream of any rule; `events` has the schema's attributes."""
    streams = _streams(plan, held(plan, events), events.num_rows)
    return _of_any(streams, events.num_rows)


def _of_any(streams: list[Bitmap], rows: int) -> Bools:
    """bool[rows]: which of `rows` events belong to any of the streams."""
    every = no_event(rows)
    for stream in {id(stream): stream for stream in streams}.values():
        every |= stream
    return as_bools(every, rows)


def _streams(plan: Plan, holding: list[Bitmap], rows: int) -> list[Bitmap]:
    """The bitmap of each rule's stream; rules with equal streams share one.

    Args:
        plan: the plan.
        holding: for each predicate, the bitmap of the events for which it holds.
        rows: the number of events.

    Sources: semantics, section 1.
    """
    known: dict[tuple[frozenset[int] | None, int | None], Bitmap] = {}
    streams = []
    for planned in plan.rules:
        matching = None if planned.takes_all else frozenset(predicate for _, predicate in planned.bits)
        if (matching, planned.filter_bit) not in known:
            stream = every_event(rows) if matching is None else no_event(rows)
            for predicate in matching or ():
                stream |= holding[predicate]
            if planned.filter_bit is not None:
                stream &= holding[planned.filter_bit]
            known[matching, planned.filter_bit] = stream
        streams.append(known[matching, planned.filter_bit])
    return streams


def _wanted_somewhere(plan: Plan, events: pa.Table, streams: list[Bitmap]) -> tuple[pa.Table, Ints | None]:
    """Keep the events and columns that some slot needs; return them, and the events' rows.

    The rows are None if all events are needed.
    """
    used = {name for slot in range(plan.slots) for name in slot_columns(plan, slot)}
    used.update(*plan.partition_keys)
    events = events.select([name for name in events.column_names if name in used])
    wanted = _of_any(streams, events.num_rows)
    if plan.order.deduplicate_on or wanted.all():  # see `_slot_frames`
        return events, None
    return chosen(events, wanted), np.flatnonzero(wanted)


def _with_bits(events: pa.Table, bitmaps: list[Bitmap], rows: Ints | None, count: int) -> pa.Table:
    """Add the columns ``@bits``, with a bit for each bitmap.

    Args:
        events: all or some of `count` events.
        bitmaps: bitmaps of `count` events.
        rows: which of the `count` events the table has; None: all of them.
        count: the number of events in a bitmap.
    """
    for first in range(0, len(bitmaps), 64):
        word = np.zeros((events.num_rows, 8), np.uint8)  # the lowest byte first
        for place, eighth in enumerate(range(first, min(first + 64, len(bitmaps)), 8)):
            eight = side_by_side(bitmaps[eighth : eighth + 8], count)
            word[:, place] = eight if rows is None else eight[rows]
        name, _ = bits_column(first)
        events = with_column(events, name, word.view("<u8").ravel().astype(np.uint64, copy=False))
    return events


def _buckets(events: pa.Table, key_column: str, buckets: int) -> npt.NDArray[np.int64]:
    keys = array(events, key_column)
    return buckets_of(keys.dictionary, buckets)[keys.indices.to_numpy()]  # type: ignore[no-any-return]


def _slot_frames(
    plan: Plan, events: pa.Table, buckets: dict[str, npt.NDArray[np.int64]]
) -> list[tuple[int, pa.Table]]:
    frames = []
    seen = np.zeros(events.num_rows, np.bool_)
    in_streams: dict[tuple[int, ...], Bools] = {}  # by rule indices, which all buckets of a key share
    for slot in range(plan.slots):
        # if repeats are dropped, every slot must see every event, or slots would drop different ones
        wanted = np.full(events.num_rows, bool(plan.order.deduplicate_on))
        for (key_column, bucket), rules in _rules_by_bucket(plan, slot).items():
            numbered = tuple(planned.index for planned in rules)
            if numbered not in in_streams:
                in_streams[numbered] = _in_any_stream(plan, events, rules)
            mine = in_streams[numbered]
            if key_column is not None and plan.buckets > 1:
                mine = mine & (buckets[key_column] == bucket)
            wanted |= mine
        if wanted.any():
            frame = with_column(events, HOME, wanted & ~seen).select(slot_columns(plan, slot))
            frames.append((slot, chosen(frame, wanted)))
            seen |= wanted
    return frames


def _rules_by_bucket(plan: Plan, slot: int) -> dict[tuple[str | None, int], list[RulePlan]]:
    """The rules of a slot, by partition key and bucket."""
    alike: dict[tuple[str | None, int], list[RulePlan]] = {}
    for unit in plan.units[slot]:
        planned = plan.rules[unit.rule_index]
        alike.setdefault((planned.key_column, unit.bucket), []).append(planned)
    return alike


def _in_any_stream(plan: Plan, events: pa.Table, rules: list[RulePlan]) -> Bools:
    """bool[n]: which events belong to the stream of any of the rules."""
    bits: dict[str, int] = {}
    for planned in rules:
        name, bit = bits_column(plan.member_bit(planned))
        bits[name] = bits.get(name, 0) | 1 << bit
    every = np.zeros(events.num_rows, np.bool_)
    for name, those in bits.items():
        every |= numbers(events, name) & np.uint64(those) != 0
    return every


def slot_columns(plan: Plan, slot: int) -> list[str]:
    """The names of the columns of a slot's frames, in order."""
    rules = [plan.rules[index] for index in dict.fromkeys(unit.rule_index for unit in plan.units[slot])]
    bits = dict.fromkeys(bits_column(number)[0] for number in range(len(plan.bit_names)))
    keys = dict.fromkeys(planned.key_column for planned in rules if planned.key_column is not None)
    used = {name for planned in rules for name in (*planned.columns, *planned.computed_from, *planned.tested)}
    used |= {*plan.ties, *plan.order.deduplicate_on}
    attributes = [field.name for field in plan.schema.fields if field.name in used]
    return [TIME, SOURCE, OFFSET, HOME, *bits, *keys, *attributes]
