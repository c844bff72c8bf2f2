"""A chunk of a carry: keys with their counters and events. It never changes; newer chunks overrule it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from spark_pace.core.columns import (
    MASK,
    SEQ,
    Ints,
    array,
    compacted,
    concat,
    has_bit,
    numbers,
    with_column,
)
from spark_pace.core.split.carry.hashing import Hashes, place_of
from spark_pace.core.split.carry.wake import Wake

COUNTERS = ("next_seq", "next_selection", "open", "rows")


@dataclass(frozen=True)
class Chunk:
    """Keys, by their hash, with their events.

    Attributes:
        keys: table with a row for each key: ``hash`` uint64, ascending; ``key`` string; the `COUNTERS` int64;
            ``since`` int64: events of this key in older chunks are alive from this `seq` on; ``end`` int64:
            the row behind its events here.
        events: the keys' events, by (row of `keys`, ``@seq``); None where there are none.
        frames: both tables as bytes, where they have come from a snapshot: they go into the next one as they
            are.
    """

    keys: pa.Table
    events: pa.Table | None
    frames: tuple[memoryview, ...] = ()

    @property
    def weight(self) -> int:
        """How many rows it has."""
        return int(self.keys.num_rows) + self.event_rows

    @property
    def event_rows(self) -> int:
        """How many events it holds, dead ones included."""
        return 0 if self.events is None else int(self.events.num_rows)

    def column(self, name: str) -> Ints:
        """A column of numbers of the keys."""
        return numbers(self.keys, name)

    @cached_property
    def hashes(self) -> Hashes:
        """uint64[k], the hashes of the keys."""
        return numbers(self.keys, "hash")

    @cached_property
    def bounds(self) -> Ints:
        """int64[k + 1], the events of key i are the rows ``bounds[i]:bounds[i + 1]``."""
        return np.append(0, self.column("end"))

    def places(self, hashes: Hashes, texts: pa.Array) -> Ints:
        """int64[m], the row of each of these keys; -1 for a key that is not here."""
        return place_of(self.hashes, array(self.keys, "key"), hashes, texts)

    def due(self, wake: Wake) -> Ints:
        """The rows of the keys that an event wakes."""
        if self.events is None or wake.low >= wake.high:
            return np.zeros(0, np.int64)
        values = numbers(self.events, wake.column)
        rows = np.flatnonzero((values >= wake.low) & (values < wake.high))
        if wake.bit is not None:
            rows = rows[has_bit(numbers(self.events, MASK)[rows], wake.bit)]
        return np.unique(np.searchsorted(self.column("end"), rows, "right"))

    def alive(self, places: Ints, since: Ints) -> tuple[Ints, Ints]:
        """The rows of the events of some keys from some `seq` on.

        Args:
            places: int64[m], rows of keys.
            since: int64[m].

        Returns:
            lo, hi: int64[m] each, the events of key i are ``lo[i]:hi[i]``.
        """
        lo, hi = self.bounds[places].copy(), self.bounds[places + 1]
        if self.events is None:
            return lo, hi
        seq = numbers(self.events, SEQ)
        stop = hi.copy()
        while len(left := np.flatnonzero(lo < stop)):  # a binary search in all keys at once
            middle = (lo[left] + stop[left]) // 2
            below = seq[middle] < since[left]
            lo[left] = np.where(below, middle + 1, lo[left])
            stop[left] = np.where(below, stop[left], middle)
        return lo, hi


def new_chunk(keys: pa.Table, events: pa.Table | None, owner: Ints) -> Chunk:
    """A chunk of keys in any order.

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
        return Chunk(keys, None)
    return Chunk(keys, compacted(events if ordered else events.take(pa.array(order))))


def merged(old: Chunk, new: Chunk) -> Chunk:
    """One chunk instead of two neighbours, without the events that the newer one says are dead."""
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
    tables, owners = [], []
    if old.events is not None:
        owner = np.repeat(np.arange(old.keys.num_rows), np.diff(old.bounds))
        alive = numbers(old.events, SEQ) >= since[owner]
        tables.append(old.events.filter(pa.array(alive)))
        owners.append(row[owner[alive]])
    if new.events is not None:
        tables.append(new.events)
        owners.append(np.repeat(np.arange(new.keys.num_rows), np.diff(new.bounds)) + only_old)
    if not tables:
        return new_chunk(keys, None, np.zeros(0, np.int64))
    return new_chunk(keys, concat(tables), np.concatenate(owners))
