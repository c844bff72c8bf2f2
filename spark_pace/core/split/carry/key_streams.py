"""The streams of the keys that a batch examines, and the events that it leaves to the carry.

Join values (`core/match/method.py`) are texts that group the events of a carry in place of partition keys. A
unit of a rule with join values still numbers the whole stream of the rule, and keeps track of its resolved
selections.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace import ways
from spark_pace.core.match.stream import Stream, starts_of_streams
from spark_pace.core.plan.plan import LAST, RulePlan, bits_column
from spark_pace.core.plan.shape import terminator_bits
from spark_pace.core.ranks import hash_texts
from spark_pace.core.split.carry.carry import Carry, Touched
from spark_pace.core.split.carry.chunk import HashRange
from spark_pace.core.split.carry.examined_keys import always_looks
from spark_pace.core.split.task import Split
from spark_pace.core.tables import (
    MASK,
    NO_ROW,
    SEQ,
    SPENT,
    Bools,
    Ints,
    concat,
    in_chunks,
    numbers,
    with_column,
)


def join_values(values: pa.Array) -> tuple[pa.Array, Ints]:
    """Convert the join values of n events to texts.

    Returns:
        texts: string[k], the distinct texts, with one for null; owner: int64[n], the index of each event's
            text.
    """
    encoded = values.dictionary_encode(null_encoding="encode")
    distinct = encoded.dictionary
    if pa.types.is_timestamp(distinct.type):
        distinct = distinct.cast(pa.int64())
    texts = pc.fill_null(pc.binary_join_element_wise("=", distinct.cast(pa.string()), ""), "null")
    return texts, encoded.indices.to_numpy().astype(np.int64)


def without_candidates(mask: npt.NDArray[np.uint16], values: pa.Array, bits: int) -> npt.NDArray[np.uint16]:
    """The masks of events; if the value is null, only bit 0 if the mask has one of `bits`, else 0.

    Null equals nothing, so such an event is in no candidate, but it opens a selection if it has one of
    `bits`, those of initiators.
    """
    if not values.null_count:
        return mask
    null = pc.is_null(values).to_numpy(zero_copy_only=False)
    return np.where(null, (mask & np.uint16(bits) != 0).astype(np.uint16), mask)


@dataclass(frozen=True)
class Fresh:
    """A unit's new events in a batch, in stream order.

    Attributes:
        events: the events; None if there are none.
        texts: string[k], their distinct keys.
        owner: int64[n], the index of each event's key.
    """

    events: pa.Table | None
    texts: pa.Array
    owner: Ints

    def within(self, hashes: HashRange) -> Fresh:
        """The events of keys with a hash in this range, both ends included."""
        own = hash_texts(self.texts)
        chosen = (own >= hashes[0]) & (own <= hashes[1])
        if self.events is None or chosen.all():
            return self
        mine = chosen[self.owner]
        if not mine.any():
            return Fresh(None, self.texts.slice(0, 0), np.zeros(0, np.int64))
        owner = (np.cumsum(chosen) - 1)[self.owner[mine]]
        return Fresh(self.events.filter(pa.array(mine)), self.texts.filter(pa.array(chosen)), owner)


def mask_of(bits: Sequence[tuple[int, int]], events: pa.Table, chosen: Bools) -> npt.NDArray[np.uint16]:
    """uint16[k], the column ``@mask`` for the k chosen events.

    Args:
        bits: as in `RulePlan`.
        events: events with the plan's bits.
        chosen: bool[n].
    """
    rows = slice(None) if chosen.all() else np.flatnonzero(chosen)
    mask = np.zeros(int(chosen.sum()), np.uint16)
    words: dict[str, npt.NDArray[np.uint64]] = {}
    for place, predicate, count in _runs(bits):
        name, bit = bits_column(predicate)
        if name not in words:
            words[name] = numbers(events, name)[rows]
        mask |= ((words[name] >> np.uint64(bit)).astype(np.uint16) & np.uint16((1 << count) - 1)) << place
    return mask


def _runs(bits: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int, int]]:
    """Group neighbouring bits of ``@mask`` whose predicates are neighbours in one column too.

    Yields:
        the first bit, the number of its predicate, and the number of bits.
    """

    def run(numbered: tuple[int, tuple[int, int]]) -> tuple[int, int, str]:
        at, (place, predicate) = numbered
        return place - at, predicate - at, bits_column(predicate)[0]

    for _, neighbours in groupby(enumerate(bits), key=run):
        pairs = [pair for _, pair in neighbours]
        yield *pairs[0], len(pairs)


@dataclass(frozen=True)
class Segments:
    """The streams of the keys that are examined.

    Attributes:
        stream: carried and new events, with a segment for each key.
        key: int64[s], the index of each segment's key among the touched keys.
        carried: bool[n], which events were carried.
        anew: bool[s], which segments begin a new stream, with numbers from 0 on.
        ends_us: int64[s], the time when each segment's stream ends unless more events of its key come; None:
            no stream ends before the input.
    """

    stream: Stream
    key: Ints
    carried: Bools
    anew: Bools
    ends_us: Ints | None = None


def segments_of_keys(
    key_column: str | None, carry: Carry, touched: Touched, fresh: Fresh, look: Bools
) -> Segments | None:
    """Join the carried and the new events of the keys in `look`; None if they have no events."""
    return segments_with(key_column, carry.events_of(touched, look), touched, fresh, look)


def segments_with(
    key_column: str | None,
    kept: tuple[pa.Table | None, Ints],
    touched: Touched,
    fresh: Fresh,
    look: Bools,
) -> Segments | None:
    """Like `segments_of_keys`, with given carried events of the keys in `look`, and int64[n], their keys."""
    old, owner = kept
    tables = [] if old is None else [old]
    carried = np.ones(len(owner), np.bool_)
    if fresh.events is not None and (here := look[fresh.owner]).any():
        tables.append(fresh.events if here.all() else fresh.events.filter(pa.array(here)))
        owner = np.append(owner, fresh.owner[here])
        carried = np.append(carried, np.zeros(int(here.sum()), np.bool_))
    if not tables:
        return None
    if key_column is None:
        return _segments(Stream(in_chunks(tables), np.zeros(1, np.int64)), np.zeros(1, np.int64), carried)
    events = concat(tables)
    order = np.argsort(owner, kind="stable")
    owner, carried = owner[order], carried[order]
    used, number = np.unique(owner, return_inverse=True)
    texts = touched.texts.take(pa.array(used))
    keys = pa.DictionaryArray.from_arrays(pa.array(number, pa.int32()), texts)
    events = with_column(events.take(pa.array(order)), key_column, keys)
    stream = Stream(events, starts_of_streams(number, numbers(events, SEQ)))
    return _segments(stream, owner[stream.starts], carried, _ends(touched, stream, owner, carried))


def _segments(stream: Stream, key: Ints, carried: Bools, ends_us: Ints | None = None) -> Segments:
    anew = ~carried[stream.starts] & (stream.seq[stream.starts] == 0)
    return Segments(stream, key, carried, anew, ends_us)


def _ends(touched: Touched, stream: Stream, owner: Ints, carried: Bools) -> Ints | None:
    """int64[s], when each stream ends: `after_us` after its last event, even if that is not carried.

    None if no key is forgotten.
    """
    if touched.forgetting is None:
        return None
    last = np.append(stream.starts[1:], stream.rows) - 1
    until = numbers(stream.events, LAST) if LAST in stream.events.column_names else stream.time
    last_us: Ints = np.where(carried[last], touched.last_before[owner[last]], until[last])
    return last_us + touched.forgetting.after_us


@dataclass
class Left:
    """The events that a batch leaves to the carry, as arguments of `Carry.put`.

    Attributes:
        since: int64[k], as in `Carry.put`.
        tables: the events to add.
        owners: for each table int64[n], the index of each event's key.
    """

    since: Ints
    tables: list[pa.Table]
    owners: list[Ints]

    def events(self) -> tuple[pa.Table | None, Ints]:
        """All events to add in one table, and int64[n], the index of each event's key."""
        if not self.tables:
            return None, np.zeros(0, np.int64)
        return concat(self.tables), np.concatenate(self.owners)


def pass_by(touched: Touched, fresh: Fresh, look: Bools, opens: Bools) -> Left:
    """Leave the new events of keys that are not examined to the carry; their carried events stay alive.

    Args:
        touched: the keys; their counters advance.
        fresh: the events of the batch.
        look: bool[k], the keys that are examined.
        opens: bool[n], which events open a selection. The selection is still open (`looked_at`).
    """
    left = Left(np.where(look, NO_ROW, np.int64(-1)), [], [])
    if fresh.events is None or not (more := ~look[fresh.owner]).any():
        return left
    events, owner = fresh.events.filter(pa.array(more)), fresh.owner[more]
    touched.rows[:] += np.bincount(owner, minlength=len(look))
    touched.open[:] += np.bincount(owner[opens[more]], minlength=len(look))
    left.tables.append(events)
    left.owners.append(owner)
    return left


def keep(key_column: str | None, touched: Touched, segments: Segments, split: Split, left: Left) -> None:
    """Leave the events of examined keys to the carry that later events may need."""
    stream, key = segments.stream, segments.key
    events = stream.events if split.events is None else split.events
    if key_column is not None:
        events = events.drop_columns(key_column)
    touched.open[key] = split.open
    _keep_last_values(touched, key, split.last_values)
    bounds = np.append(stream.starts, stream.rows)
    rows = np.flatnonzero(split.keep)
    place = np.searchsorted(rows, bounds)
    touched.rows[key] = np.diff(place)
    again = np.ones(len(key), np.bool_)  # the keys whose carried events are stored anew
    if ways.is_kept_in_part(len(rows)):
        some = np.flatnonzero(np.diff(place))
        first = rows[place[some]]
        old_end = bounds[some] + np.add.reduceat(segments.carried.astype(np.int64), stream.starts)[some]
        left_out = old_end - first - (np.searchsorted(rows, old_end) - place[some])
        again[some] = (left_out > 0) | ~segments.carried[first]
        again |= _marked(segments, events, split.keep)
        left.since[key[some]] = np.where(again[some], NO_ROW, stream.seq[first])
    stored = split.keep & ~(segments.carried & ~np.repeat(again, np.diff(bounds)))
    left.tables.append(events.filter(pa.array(stored)))
    left.owners.append(np.repeat(key, np.diff(bounds))[stored])


def last_values_of(touched: Touched, segments: Segments, columns: pa.Schema) -> dict[str, pa.Array]:
    """For each segment the key's values in some columns; null if the segment's stream is new."""
    rows = pa.array(segments.key, mask=segments.anew)
    return {name: touched.last_values[name].take(rows) for name in columns.names}


def _keep_last_values(touched: Touched, key: Ints, last_values: Mapping[str, pa.Array]) -> None:
    """Set the values of keys. If a key has several segments, the last one decides."""
    rows = np.arange(len(touched.texts))
    rows[key] = len(rows) + np.arange(len(key))
    for name, values in last_values.items():
        touched.last_values[name] = pa.concat_arrays([touched.last_values[name], values]).take(pa.array(rows))


def _marked(segments: Segments, events: pa.Table, kept: Bools) -> Bools:
    """bool[s], the segments in which the mark of a carried event that is kept has changed in `events`."""
    starts = segments.stream.starts
    if SPENT not in events.column_names:
        return np.zeros(len(starts), np.bool_)
    changed = numbers(events, SPENT) != numbers(segments.stream.events, SPENT)
    return np.logical_or.reduceat(changed & segments.carried & kept, starts)


def looked_at(planned: RulePlan, touched: Touched, fresh: Fresh) -> Bools:
    """bool[k], the keys to examine, because new events of theirs may close selections or end matches.

    The other keys only get more events. No window of the new events is over: older windows would be over too,
    and they wake the key.
    """
    if always_looks(planned.rule):
        return np.ones(len(touched.texts), np.bool_)
    look = touched.rows == 0
    if fresh.events is not None and planned.rule.pattern is not None:
        ends = numbers(fresh.events, MASK) & np.uint16(terminator_bits(planned.rule.pattern)) != 0
        look[fresh.owner[ends]] = True
    return look  # type: ignore[no-any-return]
