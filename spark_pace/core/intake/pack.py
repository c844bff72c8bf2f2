"""Evaluates predicates on whole columns, and packs for each slot the events that its rules need.

Which events a rule needs is a bitmap: a bit for each of n events, 64 in a word, the lowest first; bits after
the last event are 0. If there are many rules, each has few of a batch's events; uniting such sets takes one
step for 64 events.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.expr import ARROW_TYPES, EventColumns, evaluate_mask
from spark_pace.core.plan.conditions import Lookup, Sought
from spark_pace.core.plan.plan import Plan, RulePlan, bits_column, key_column_of
from spark_pace.core.plan.structs import shown_values
from spark_pace.core.ranks import buckets_of, distinct
from spark_pace.core.tables import (
    HOME,
    OFFSET,
    SOURCE,
    TIME,
    Bools,
    Ints,
    array,
    chosen,
    numbers,
    with_column,
)

_ESCAPED = r'["\\\x00-\x1f]'  # the characters that JSON escapes in a text


def key_texts(names: Sequence[str], columns: Sequence[pa.Array]) -> pa.DictionaryArray:
    """dictionary<int32, string>[n]: each row's key as compact JSON, made once for each distinct key."""
    first, code = distinct(columns)
    parts: list[Any] = []
    for name, column in zip(names, columns, strict=True):
        parts += ["," if parts else "{", f"{_json(name)}:", _json_texts(column.take(pa.array(first)))]
    texts = pc.binary_join_element_wise(*parts, "}", "")
    return pa.DictionaryArray.from_arrays(pa.array(code, pa.int32()), texts)


def _json_texts(values: pa.Array) -> pa.Array:
    """string[n]: each value as JSON; times and dates as ISO 8601."""
    if pa.types.is_string(values.type):
        texts = pc.binary_join_element_wise('"', values, '"', "")
        alone = pc.fill_null(pc.match_substring_regex(values, _ESCAPED), False)
    elif not pa.types.is_temporal(values.type) and not pa.types.is_floating(values.type):
        texts, alone = values.cast(pa.string()), pa.array(np.zeros(len(values), np.bool_))
    else:
        texts, alone = pa.nulls(len(values), pa.string()), pc.is_valid(values)
    if pc.any(alone).as_py():
        told = [_json(_plain(value)) for value in shown_values(values.filter(alone))]
        texts = pc.replace_with_mask(texts, alone, pa.array(told, pa.string()))
    return pc.fill_null(texts, "null")


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _plain(value: Any) -> Any:
    if isinstance(value, (datetime.datetime, datetime.date)):
        return value.isoformat()
    return value + 0.0 if isinstance(value, float) else value  # -0.0 is the key 0.0


Bitmap = npt.NDArray[np.uint64]  # uint64[(n + 63) // 64], little-endian on every machine

_WORD = np.dtype("<u8")
# to transpose a square of eight by eight bits: how far bits move, and which of them
_TURNS = tuple(
    (np.uint64(distance), np.uint64(kept))
    for distance, kept in ((7, 0x00AA00AA00AA00AA), (14, 0x0000CCCC0000CCCC), (28, 0x00000000F0F0F0F0))
)


def bitmap_of(holds: Bools) -> Bitmap:
    """The bitmap of the events for which `holds`, bool[n], is True."""
    bits = np.zeros(8 * _words(len(holds)), np.uint8)
    packed = np.packbits(holds, bitorder="little")
    bits[: len(packed)] = packed
    return bits.view(_WORD)


def bitmap_of_rows(rows: Ints, count: int) -> Bitmap:
    """The bitmap of `count` events that has those at `rows`, which are distinct."""
    holds = np.zeros(count, np.bool_)
    holds[rows] = True
    return bitmap_of(holds)


def every_event(count: int) -> Bitmap:
    """The bitmap that has all of `count` events."""
    return bitmap_of(np.ones(count, np.bool_))


def no_event(count: int) -> Bitmap:
    """The bitmap that has none of `count` events."""
    return np.zeros(_words(count), _WORD)


def as_bools(bitmap: Bitmap, count: int) -> Bools:
    """bool[count]: which events the bitmap has."""
    return np.unpackbits(bitmap.view(np.uint8), count=count, bitorder="little").view(np.bool_)


def side_by_side(bitmaps: Sequence[Bitmap], count: int) -> npt.NDArray[np.uint8]:
    """uint8[count]: the bits of each event in up to eight bitmaps, the first bitmap's lowest.

    A table with a column for each bitmap consists of words, squares of eight by eight bits. Each is
    transposed: its halves change places, then their halves, then theirs. Bitmaps without events need none
    of it.
    """
    if not any(bitmap.any() for bitmap in bitmaps):
        return np.zeros(count, np.uint8)
    table = np.zeros((8 * _words(count), 8), np.uint8)
    for column, bitmap in enumerate(bitmaps):
        table[:, column] = bitmap.view(np.uint8)
    square = table.view(_WORD).ravel()
    for distance, kept in _TURNS:
        moved = (square ^ (square >> distance)) & kept
        square ^= moved ^ (moved << distance)
    return square.view(np.uint8)[:count]


def _words(count: int) -> int:
    return -(-count // 64)


@dataclass(frozen=True)
class _Events(EventColumns):
    """The attributes that expressions read: of all rows of a table, or of some.

    Attributes:
        at: the rows; None: all rows.
        known: columns of the whole table that were read so far.
    """

    at: pa.Array | None = None
    known: dict[str, pa.Array] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """The number of events."""
        return int(self.events.num_rows) if self.at is None else len(self.at)

    def column(self, component: str | None, attribute: str) -> pa.Array:
        """The values of an attribute."""
        if attribute not in self.known:  # so that a column's chunks are put together once
            self.known[attribute] = super().column(component, attribute)
        whole = self.known[attribute]
        return whole if self.at is None else whole.take(self.at)

    def some(self, rows: Ints) -> _Events:
        """The attributes of the events at these rows of the table."""
        return _Events(self.events, pa.array(rows), self.known)


def held(plan: Plan, table: pa.Table) -> list[Bitmap]:
    """For each predicate of the plan, the bitmap of the events for which it holds.

    A predicate that is looked up by a constant is tested only on the events with this constant.
    """
    events, lookups = _Events(table), plan.lookups
    found = {number: bitmap_of(evaluate_mask(plan.predicates[number], events)) for number in lookups.others}
    shared = [evaluate_mask(expr, events) for expr in lookups.shared]
    for lookup in lookups.columns:
        for sought, rows in _looked_up(lookup, events):
            found[sought.number] = bitmap_of_rows(_tested(sought, rows, shared, events), table.num_rows)
    return [found[number] for number in range(len(plan.predicates))]


def _looked_up(lookup: Lookup, events: _Events) -> Iterator[tuple[Sought, Ints]]:
    """Yield each predicate of a lookup with the rows that have its constant, int64[m], ascending."""
    constants = pa.array(lookup.constants, ARROW_TYPES[lookup.column.type])
    places = pc.index_in(events.column(None, lookup.column.attribute), value_set=constants)
    rows = np.flatnonzero(pc.is_valid(places).to_numpy(zero_copy_only=False))
    code = pc.drop_null(places).to_numpy()
    if len(constants) <= np.iinfo(np.uint16).max:
        code = code.astype(np.uint16)  # numpy sorts these by radix
    order = np.argsort(code, kind="stable")
    rows, bounds = rows[order], np.searchsorted(code[order], np.arange(len(constants) + 1))
    for sought in lookup.sought:
        yield sought, rows[bounds[sought.constant] : bounds[sought.constant + 1]]


def _tested(sought: Sought, rows: Ints, shared: list[Bools], events: _Events) -> Ints:
    """The rows for which the rest of the predicate holds too."""
    for number in sought.shared:
        rows = rows[shared[number][rows]]
    if sought.rest is None or not len(rows):
        return rows
    return rows[evaluate_mask(sought.rest, events.some(rows))]


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
