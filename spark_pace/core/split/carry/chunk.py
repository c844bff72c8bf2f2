"""A chunk of a carry: keys with counters and events. Its rows never change, but newer chunks replace them.

Keys are found by the hashes of their texts. As bytes, a state holds small chunks itself, but only the names
of larger ones; so the bytes that a batch writes do not grow with what is carried.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace import ways
from spark_pace.core.frames import TableStore, decode, decode_parcel, or_empty, or_none, write_mappable
from spark_pace.core.ranks import Hashes, segments_of
from spark_pace.core.split.carry.examined_keys import Forgetting, Wake
from spark_pace.core.tables import (
    MASK,
    OPENING,
    SEQ,
    TIME,
    Bools,
    Ints,
    array,
    compacted,
    concat,
    has_bit,
    numbers,
    with_column,
)
from spark_pace.errors import StateError

HashRange = tuple[np.uint64, np.uint64]  # the least and the greatest hash
EVERY_HASH: HashRange = (np.uint64(0), np.uint64((1 << 64) - 1))


def place_of(hashes: Hashes, keys: pa.Array, wanted: Hashes, texts: pa.Array) -> Ints:
    """Look texts up among keys that are sorted by their hash.

    Args:
        hashes: uint64[n], ascending.
        keys: string[n], the keys with these hashes.
        wanted: uint64[m], the hashes of `texts`.
        texts: string[m].

    Returns:
        int64[m], the index of each text among the keys; -1 if it is not there.
    """
    place = np.searchsorted(hashes, wanted)
    found = np.full(len(wanted), -1, np.int64)
    asked = np.arange(len(wanted))
    while len(asked):  # more than once only if different keys share a hash
        at = place[asked]
        inside = at < len(hashes)
        inside[inside] = hashes[at[inside]] == wanted[asked[inside]]
        asked = asked[inside]
        at = place[asked]
        same = _equal(keys, at, texts, asked)
        found[asked[same]] = at[same]
        asked = asked[~same]
        place[asked] += 1
    return found


def _equal(keys: pa.Array, at: Ints, texts: pa.Array, asked: Ints) -> Bools:
    equal = pc.equal(keys.take(pa.array(at)), texts.take(pa.array(asked)))
    return equal.to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


Ranges = dict[str, tuple[int, int]]
Owned = tuple[pa.Table, Ints]  # events grouped by key, and int64[n], the number of each one's key
Together = Callable[[Owned, Owned], Owned]
COUNTERS = ("next_seq", "next_selection", "open", "rows")
LAST = "last"  # a column of `Chunk.keys`, if keys are forgotten


@dataclass
class Chunk:
    """Keys, sorted by their hash, with their events.

    Attributes:
        keys: table with a row for each key: ``hash`` uint64, ascending; ``key`` string; the `COUNTERS` int64;
            ``since`` int64: events of this key in older chunks are alive from this `seq` on; ``end`` int64:
            the row behind its events here. Where keys are forgotten also `LAST` int64, the event time of the
            last event of each key's stream, carried or not. With ``prev`` also `Wanted.last_values`.
        events: the keys' events, by (row of `keys`, ``@seq``); None where there are none.
        ranges: the least and the greatest value of `LAST` and of some columns of the events, unless empty.
        frames: both tables as bytes if they are from a snapshot; the next snapshot takes them unchanged.
        name: the chunk's name in the store; None if it is not stored there.
        mapped: the bytes of both tables if they are from the store; else None.
        dead: the number of its rows (keys and events) that newer chunks have replaced since it was made or
            cleaned.
    """

    keys: pa.Table
    events: pa.Table | None
    ranges: Ranges
    frames: tuple[memoryview, ...] = ()
    name: str | None = None
    mapped: memoryview | None = None
    dead: int = 0

    @property
    def weight(self) -> int:
        """The number of the chunk's rows: keys and events."""
        return int(self.keys.num_rows) + self.event_rows

    @property
    def event_rows(self) -> int:
        """The number of the chunk's events, dead ones included."""
        return 0 if self.events is None else int(self.events.num_rows)

    def column(self, name: str) -> Ints:
        """int64[k], a column of `keys`."""
        return numbers(self.keys, name)

    @property
    def hashes(self) -> Hashes:
        """uint64[k], the hashes of the keys."""
        return numbers(self.keys, "hash")

    def owners(self) -> Ints:
        """int64[n], the row of each event's key."""
        counts = np.diff(self.column("end"), prepend=0)
        return np.repeat(np.arange(self.keys.num_rows), counts)

    def places(self, hashes: Hashes, texts: pa.Array) -> Ints:
        """int64[m], the row of each of these keys; -1 for a key that the chunk does not have."""
        return place_of(self.hashes, array(self.keys, "key"), hashes, texts)

    def living(self, hashes: HashRange) -> pa.Array:
        """string[m], the keys with a hash in this range that had events when the chunk was made."""
        first = int(np.searchsorted(self.hashes, hashes[0], "left"))
        end = int(np.searchsorted(self.hashes, hashes[1], "right"))
        keys = self.keys.slice(first, end - first)
        return array(keys, "key").filter(pa.array(numbers(keys, "rows") > 0))

    def due(self, wake: Wake) -> Ints:
        """int64[m], the rows of the keys that one of their events wakes."""
        least, greatest = self.ranges.get(wake.column, (wake.high, wake.high))
        if self.events is None or least >= wake.high or greatest < wake.low:
            return np.zeros(0, np.int64)
        values = numbers(self.events, wake.column)
        if wake.newest:
            owner, last = self.newest(np.arange(self.keys.num_rows))
            return owner[(values[last] >= wake.low) & (values[last] < wake.high)]
        rows = np.flatnonzero((values >= wake.low) & (values < wake.high))
        if wake.bit is not None:
            rows = rows[has_bit(numbers(self.events, MASK)[rows], wake.bit)]
        owner = np.searchsorted(self.column("end"), rows, "right")
        return owner[segments_of(owner)]

    def ending(self, low: int, high: int) -> pa.Array:
        """string[m], the keys whose last event has a time from `low` on and below `high`, by this chunk."""
        least, greatest = self.ranges.get(LAST, (high, high))
        if least >= high or greatest < low:
            return pa.array([], pa.string())
        last_us = self.column(LAST)
        return array(self.keys, "key").filter(pa.array((last_us >= low) & (last_us < high)))

    def alive(self, places: Ints, since: Ints) -> tuple[Ints, Ints]:
        """The rows of the live events of some keys: those with at least a given `seq`.

        Args:
            places: int64[m], rows of keys.
            since: int64[m], the least `seq` of each key's live events.

        Returns:
            lo, hi: int64[m] each, the events of key i are ``lo[i]:hi[i]``.
        """
        return self.first_from(SEQ, places, since)

    def first_from(self, column: str, places: Ints, least: Ints) -> tuple[Ints, Ints]:
        """The rows of keys' events whose value in a column is at least `least`.

        Args:
            column: ``@seq``, or the event time.
            places: int64[m], rows of keys.
            least: int64[m], the least value for each key.

        Returns:
            lo, hi: int64[m] each, the events of key i are ``lo[i]:hi[i]``.
        """
        end = self.column("end")
        lo, hi = np.where(places > 0, end[places - 1], 0), end[places]
        if self.events is None:
            return lo, hi
        values = numbers(self.events, column)
        if len(lo) == 1:
            return lo + np.searchsorted(values[lo[0] : hi[0]], least), hi
        stop, left = hi.copy(), np.flatnonzero(lo < hi)
        left = left[values[lo[left]] < least[left]]  # most often few, because chunks span long times
        while len(left):  # a binary search in all keys at once
            middle = (lo[left] + stop[left]) // 2
            below = values[middle] < least[left]
            lo[left] = np.where(below, middle + 1, lo[left])
            stop[left] = np.where(below, stop[left], middle)
            left = left[lo[left] < stop[left]]
        return lo, hi

    def newest(self, places: Ints) -> tuple[Ints, Ints]:
        """int64[m] each: the places of the keys with events here, and the row of each one's last event."""
        end = self.column("end")
        first = np.where(places > 0, end[places - 1], 0)
        some = np.flatnonzero(first < end[places])
        return some, end[places[some]] - 1


def new_chunk(keys: pa.Table, events: pa.Table | None, owner: Ints) -> Chunk:
    """Make a chunk of keys in any order.

    Args:
        keys: as in `Chunk`, without ``end``.
        events: their events; those of one key are in the order of ``@seq``.
        owner: int64[n], the row of `keys` of each event.
    """
    by_hash = np.argsort(numbers(keys, "hash"), kind="stable")
    place = np.empty(len(by_hash), np.int64)
    place[by_hash] = np.arange(len(by_hash))
    owner = place[owner]
    ordered = bool((owner[1:] >= owner[:-1]).all())
    order = np.arange(len(owner)) if ordered else np.argsort(owner, kind="stable")
    end = np.searchsorted(owner[order], np.arange(len(by_hash)), "right")
    keys = keys.take(pa.array(by_hash)).append_column("end", pa.array(end))
    if events is None or not events.num_rows:
        return Chunk(keys, None, ranges_of(keys, None))
    events = compacted(events if ordered else events.take(pa.array(order)))
    return Chunk(keys, events, ranges_of(keys, events))


def ranges_of(keys: pa.Table, events: pa.Table | None) -> Ranges:
    """The least and the greatest value of the columns that wake keys; these values grow with the stream."""
    columns: dict[str, Ints] = {}
    for table, names in ((keys, (LAST,)), (events, (TIME, OPENING))):
        if table is not None and table.num_rows:
            columns |= {name: numbers(table, name) for name in names if name in table.column_names}
    return {name: (int(values.min()), int(values.max())) for name, values in columns.items()}


def merged(old: Chunk, new: Chunk, together: Together | None = None) -> Chunk:
    """Merge two neighbouring chunks into one, without the events that are dead by the newer one.

    Args:
        old: the older one.
        new: the newer one.
        together: merges the events of both, if events of the one depend on those of the other.
    """
    places = old.places(new.hashes, array(new.keys, "key"))
    again = np.flatnonzero(places >= 0)
    since = np.full(old.keys.num_rows, -1, np.int64)
    since[places[again]] = new.column("since")[again]
    left = np.ones(old.keys.num_rows, np.bool_)
    left[places[again]] = False
    older = np.full(new.keys.num_rows, -1, np.int64)
    older[again] = old.column("since")[places[again]]
    newer = with_column(new.keys, "since", np.maximum(older, new.column("since")))
    keys = concat([old.keys.filter(pa.array(left)), newer]).drop_columns("end")
    only_old = int(left.sum())
    row = np.empty(old.keys.num_rows, np.int64)
    row[left] = np.arange(only_old)
    row[places[again]] = only_old + again
    tables, owners, dead = [], [], old.dead + new.dead - len(again)
    if old.events is not None:
        owner = old.owners()
        alive = numbers(old.events, SEQ) >= since[owner]
        tables.append(old.events.filter(pa.array(alive)))
        owners.append(row[owner[alive]])
        dead -= len(alive) - int(alive.sum())
    if new.events is not None:
        tables.append(new.events)
        owners.append(new.owners() + only_old)
    if together is not None and len(owners) > 1 and all(map(len, owners)):
        events, owner = together((tables[0], owners[0]), (tables[1], owners[1]))
    else:
        events, owner = (concat(tables), np.concatenate(owners)) if tables else (None, np.zeros(0, np.int64))
    chunk = new_chunk(keys, events, owner)
    chunk.dead = max(dead, 0)  # a row that was overruled before its chunk was cleaned is not counted
    return chunk


def cleaned(chunk: Chunk, older: Sequence[Chunk], newer: Sequence[Chunk]) -> Chunk:
    """The chunk without the rows that newer chunks have replaced: dead events, and keys without live ones.

    Such a key stays if an event in an older chunk is dead only by its row here. A key's row in a newer chunk
    that only kept events of this chunk dead is counted as dead there, now that these events are gone.

    Args:
        chunk: the chunk.
        older: all older chunks.
        newer: all newer chunks.
    """
    hashes, texts, own = chunk.hashes, array(chunk.keys, "key"), chunk.column("since")
    since, last, needed = (np.full(len(hashes), -1, np.int64) for _ in range(3))
    for number, other in enumerate(newer):
        places = other.places(hashes, texts)
        here = np.flatnonzero(places >= 0)
        says = other.column("since")[places[here]]
        needed[here[says >= since[here]]] = last[here] = number
        since[here] = np.maximum(since[here], says)
    kept = last < 0
    for other in older:
        places = other.places(hashes, texts)
        here = np.flatnonzero((places >= 0) & (own > since))
        by_newer, _ = other.alive(places[here], since[here])
        kept[here] |= other.alive(places[here], own[here])[0] > by_newer
    owner = chunk.owners()
    alive = np.zeros(0, np.bool_) if chunk.events is None else numbers(chunk.events, SEQ) >= since[owner]
    with_events, without = np.unique(owner[alive]), np.unique(owner[~alive])
    kept[with_events] = True
    free = needed[without[needed[without] < last[without]]]
    for other, count in zip(newer, np.bincount(free, minlength=len(newer)).tolist(), strict=True):
        other.dead += count
    row = np.cumsum(kept) - 1
    events = None if chunk.events is None else chunk.events.filter(pa.array(alive))
    left = new_chunk(chunk.keys.filter(pa.array(kept)).drop_columns("end"), events, row[owner[alive]])
    left.dead = int((last[with_events] >= 0).sum())
    return left


def without_forgotten(chunk: Chunk, newer: Sequence[Chunk], forgetting: Forgetting | None) -> Chunk:
    """The chunk without the keys that are forgotten, and without their events.

    Args:
        chunk: the chunk.
        newer: all newer chunks. A key that one of them has is not removed here.
        forgetting: when keys are forgotten; None: never.
    """
    if forgetting is None:
        return chunk
    gone = np.flatnonzero(forgetting.for_good(chunk.column(LAST)))
    for other in newer:
        texts = array(chunk.keys, "key").take(pa.array(gone))
        gone = gone[other.places(chunk.hashes[gone], texts) < 0]
    return without(chunk, gone)


def without(chunk: Chunk, gone: Ints) -> Chunk:
    """The chunk without the keys of these rows, and without their events."""
    if not len(gone):
        return chunk
    kept = np.ones(chunk.keys.num_rows, np.bool_)
    kept[gone] = False
    owner = chunk.owners()
    alive, row = kept[owner], np.cumsum(kept) - 1
    events = None if chunk.events is None else chunk.events.filter(pa.array(alive))
    left = new_chunk(chunk.keys.filter(pa.array(kept)).drop_columns("end"), events, row[owner[alive]])
    left.dead = max(0, chunk.dead - (chunk.weight - left.weight))
    return left


def put_beside(store: TableStore, chunk: Chunk) -> None:
    """Store a chunk if it is not small, and give it its name."""
    if chunk.name is None and ways.is_stored_apart(chunk.weight):
        tables = [chunk.keys, or_empty(chunk.events)]
        chunk.name = store.put(partial(write_mappable, {"ranges": chunk.ranges}, tables))


def inline_chunk(*frames: memoryview) -> Chunk:
    """Read the chunk from two frames of a state: its keys and its events."""
    keys, events = map(decode, frames)
    return Chunk(keys, or_none(events), ranges_of(keys, events), frames)


def stored_chunk(store: TableStore | None, name: str) -> Chunk:
    """Open the chunk that is stored under a name; only its header is read now.

    Raises:
        StateError: it is missing or damaged.
    """
    header, (keys, events), mapped = stored_tables(store, name)
    return Chunk(keys, or_none(events), header["ranges"], name=name, mapped=mapped)


def stored_tables(store: TableStore | None, name: str) -> tuple[dict[str, Any], list[pa.Table], memoryview]:
    """Open what is stored under a name: the header, the tables, and the bytes of both.

    Raises:
        StateError: it is missing or damaged.
    """
    if store is None:
        do = "Go on with it in the job that made it."
        raise StateError(f"{name} — must be in the folder of a checkpoint; got a state without one. {do}")
    try:
        mapped = store.get(name)
        return *decode_parcel(mapped), mapped
    except (ValueError, KeyError, pa.ArrowException) as error:
        must, do = "must be as this program wrote it", "Restore the whole checkpoint."
        raise StateError(f"waiting/{name} — {must}; got damaged bytes. {do}") from error
