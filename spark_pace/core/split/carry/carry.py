"""The carry of a unit: a log of chunks, looked up by key.

A batch adds one chunk: the keys that it has touched, with their counters, and the events to keep of them. An
older chunk is never changed. So a batch matches and writes what it touches, not all that is carried; of the
rest it looks only at times, to find windows that end. Neighbouring chunks are merged as they come to be of
like size, so that there are few of them; each event is merged only a few times. No merge makes a chunk of
more than `ways.LARGEST` rows, so a carry may be larger than memory; then each large chunk holds the events of
some time, and loses them together when their windows have ended.

Sources: O'Neil et al., The Log-Structured Merge-Tree, 1996.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace import ways
from spark_pace.core.columns import NO_ROW, NOTHING_US, Bools, Ints
from spark_pace.core.frames import let_go
from spark_pace.core.hashes import Hashes, hash_texts
from spark_pace.core.ranges import expand
from spark_pace.core.split.carry.chunk import (
    COUNTERS,
    LAST,
    Chunk,
    Together,
    cleaned,
    merged,
    new_chunk,
    without_forgotten,
)
from spark_pace.core.split.carry.forgotten_keys import Forgetting
from spark_pace.core.split.carry.hashing import EVERY_HASH, HashRange
from spark_pace.core.split.carry.wake import Wake
from spark_pace.core.split.carry.whole_stream import Whole, lasting
from spark_pace.core.tables import array, in_chunks


@dataclass(frozen=True)
class Wanted:
    """What a rule wants to know of its keys in a batch, besides their counters.

    Attributes:
        forgetting: when keys are forgotten; None: they are not.
        last_values: the columns with what is kept of each key: values of its last events, which ``prev``
            reads, or the state of its fold.
    """

    forgetting: Forgetting | None = None
    last_values: pa.Schema = field(default_factory=lambda: pa.schema([]))


NOTHING_ELSE = Wanted()


@dataclass(frozen=True)
class Touched:
    """Some keys, and what the carry knows of them. The counters move on as the batch is worked on.

    Attributes:
        texts: string[k], the keys, distinct.
        hashes: uint64[k].
        places: for each chunk int64[k], the row of each key; -1 where the chunk does not have it.
        next_seq: int64[k], the `seq` of each key's next event.
        next_selection: int64[k], the number of each key's next selection.
        open: int64[k], how many selections of each key are open.
        rows: int64[k], how many events of each key are carried.
        last: int64[k], the event time of each key's last event, where keys are forgotten.
        last_before: int64[k], `last` as the carry has it.
        last_values: by the columns of `Wanted.last_values`, what is kept of each key; null where there is
            nothing.
        new: how many of the keys the carry has never met, or has forgotten.
        rows_before: the sum of `rows` as the carry has it.
        open_before: the sum of `open` as the carry has it.
        forgetting: when keys are forgotten; None: they are not.
    """

    texts: pa.Array
    hashes: Hashes
    places: list[Ints]
    next_seq: Ints
    next_selection: Ints
    open: Ints
    rows: Ints
    last: Ints
    last_before: Ints
    last_values: dict[str, pa.Array]
    new: int
    rows_before: int
    open_before: int
    forgetting: Forgetting | None


@dataclass
class Carry:
    """What a unit keeps between two batches.

    Attributes:
        chunks: the oldest first.
        keys: how many keys were ever met and are not forgotten. Join values may be forgotten, too, once
            nothing of theirs is carried.
        rows: how many events are carried.
        open: how many selections are open.
        whole: what is known of the rule's whole stream, where the keys are join values; else None.
        together: puts events of two chunks together, where those of the one depend on those of the other.
    """

    chunks: list[Chunk] = field(default_factory=list)
    keys: int = 0
    rows: int = 0
    open: int = 0
    whole: Whole | None = None
    together: Together | None = None

    def find(self, texts: pa.Array, wanted: Wanted = NOTHING_ELSE) -> Touched:
        """What is known of some distinct keys; the counters of a new key are 0."""
        hashes = hash_texts(texts)
        counters = {name: np.zeros(len(texts), np.int64) for name in COUNTERS}
        if len(texts) == 1:
            places = [chunk.places(hashes, texts) for chunk in self.chunks]
        else:
            order = np.argsort(hashes)  # so that a large chunk is read from its beginning to its end
            back, in_order = np.argsort(order), texts.take(pa.array(order))
            places = [chunk.places(hashes[order], in_order)[back] for chunk in self.chunks]
        counters[LAST] = np.full(len(texts), NOTHING_US)
        forgetting = wanted.forgetting
        names = COUNTERS if forgetting is None else (*COUNTERS, LAST)
        new = np.ones(len(texts), np.bool_)
        for chunk, place in zip(self.chunks, places, strict=True):
            here = np.flatnonzero(place >= 0)
            new[here] = False
            for name in names:
                counters[name][here] = chunk.column(name)[place[here]]
        if forgetting is not None:
            new |= forgetting.before(counters[LAST])
            for name in COUNTERS:
                counters[name][new] = 0
            for place in places:
                place[new] = -1
        rows, open_ = int(counters["rows"].sum()), int(counters["open"].sum())
        values = self._last_values(wanted.last_values, places, len(texts))
        return Touched(
            texts, hashes, places, **counters, last_before=counters[LAST].copy(), last_values=values,
            new=int(new.sum()), rows_before=rows, open_before=open_, forgetting=forgetting,
        )  # fmt: skip

    def _last_values(self, columns: pa.Schema, places: list[Ints], count: int) -> dict[str, pa.Array]:
        """What is kept of `count` keys in these columns, as the newest chunk that has a key knows it."""
        found: dict[str, pa.Array] = {}
        for column in columns:
            parts, rows = [pa.nulls(1, column.type)], np.zeros(count, np.int64)
            for chunk, place in zip(self.chunks, places, strict=True):
                here = np.flatnonzero(place >= 0)
                rows[here] = sum(map(len, parts)) + np.arange(len(here))
                parts.append(array(chunk.keys, column.name).take(pa.array(place[here])))
            found[column.name] = pa.concat_arrays(parts).take(pa.array(rows))
        return found

    def events_of(self, touched: Touched, chosen: Bools) -> tuple[pa.Table | None, Ints]:
        """The carried events of the chosen keys.

        Returns:
            events: a table of one or more Arrow chunks; None if there are no events. owner: int64[n], the
                index of each event's key in `touched`. The events of one key are in the order of ``@seq``.
        """
        tables: list[pa.Table] = []
        owners: list[Ints] = []
        for chunk, here, place, since in self._holding(touched, chosen & (touched.rows > 0)):
            lo, hi = chunk.alive(place, since)
            if chunk.events is None or not (hi > lo).any():
                continue
            if len(lo) == 1:  # nothing is copied
                tables.append(chunk.events.slice(lo[0], hi[0] - lo[0]))
                owners.append(np.repeat(here, hi - lo))
            else:
                owner, rows = expand(lo, hi)
                tables.append(chunk.events.take(pa.array(rows)))
                owners.append(here[owner])
        if not tables:
            return None, np.zeros(0, np.int64)
        return in_chunks(tables[::-1]), np.concatenate(owners[::-1])

    def _holding(self, touched: Touched, chosen: Bools) -> Iterator[tuple[Chunk, Ints, Ints, Ints]]:
        """The chunks in which chosen keys may have events that are alive, the newest first.

        Yields:
            the chunk; and int64[m] each: the indices in `touched` of such keys that the chunk has, their rows
            in it, and the `seq` from which on their events in it are alive.
        """
        since = np.where(chosen, np.int64(-1), NO_ROW)
        for chunk, place in zip(reversed(self.chunks), reversed(touched.places), strict=True):
            here = np.flatnonzero((place >= 0) & (since < NO_ROW))
            if len(here):
                yield chunk, here, place[here], since[here]
                since[here] = np.maximum(since[here], chunk.column("since")[place[here]])

    def due(self, wake: Wake) -> pa.Array:
        """string[k], the keys that a carried event wakes."""
        rows = [chunk.due(wake) for chunk in self.chunks]
        return distinct_texts(
            [
                array(chunk.keys, "key").take(pa.array(due))
                for chunk, due in zip(self.chunks, rows, strict=True)
            ]
        )

    def ending(self, forgetting: Forgetting) -> pa.Array:
        """string[k], the keys whose stream ends in this batch if no event of theirs comes in it."""
        low, high = forgetting.bounds()
        texts = distinct_texts([chunk.ending(low, high) for chunk in self.chunks])
        last_us = self.find(texts, Wanted(forgetting)).last
        return texts.filter(pa.array((last_us >= low) & (last_us < high)))

    def hash_ranges(self) -> list[HashRange]:
        """Ranges of hashes, each with about `ways.PART_ROWS` rows, that together hold every key."""
        count = 1 + sum(chunk.weight for chunk in self.chunks) // ways.PART_ROWS
        bounds = [number * (1 << 64) // count for number in range(count + 1)]
        return [(np.uint64(low), np.uint64(high - 1)) for low, high in itertools.pairwise(bounds)]

    def living(self, wanted: Wanted = NOTHING_ELSE, hashes: HashRange = EVERY_HASH) -> pa.Array:
        """string[k], every key with a hash in a range of which events are carried."""
        texts = distinct_texts([chunk.living(hashes) for chunk in self.chunks])
        return texts.filter(pa.array(self.find(texts, wanted).rows > 0))

    def put(self, touched: Touched, since: Ints, events: pa.Table | None, owner: Ints) -> None:
        """Keep what a batch has left of the keys that it has touched: `add` it, then `tidy`."""
        self.add(touched, since, events, owner)
        self.tidy(1, touched.forgetting)

    def add(self, touched: Touched, since: Ints, events: pa.Table | None, owner: Ints) -> None:
        """Keep what a part of a batch has left, as a new chunk; `tidy` works on the older ones.

        Args:
            touched: the keys, with the counters that they have now.
            since: int64[k], the `seq` from which on each key's events in the older chunks stay alive.
            events: the events to add, each key's in the order of ``@seq``; None if there are none.
            owner: int64[n], the index of each event's key in `touched`.
        """
        self.rows += int(touched.rows.sum()) - touched.rows_before
        self.open += int(touched.open.sum()) - touched.open_before
        forgetting = touched.forgetting
        names = COUNTERS if forgetting is None else (*COUNTERS, LAST)
        counters = {name: pa.array(getattr(touched, name)) for name in names}
        columns = {"hash": touched.hashes, "key": touched.texts, **counters, **touched.last_values}
        keys = pa.table(columns | {"since": since})
        if forgetting is not None:
            left = ~forgetting.by_now(touched.last)
            keys, owner = keys.filter(pa.array(left)), (np.cumsum(left) - 1)[owner]
        self.keys += touched.new + keys.num_rows - len(touched.texts)
        newest = new_chunk(keys, events, owner)
        in_part = ((since > -1) & (since < NO_ROW)).any()
        if keys.num_rows == self.keys and newest.event_rows == self.rows and not in_part:
            self.chunks = [newest] if newest.weight else []  # it holds all that is carried
        else:
            self._count_dead(touched, since)
            self.chunks += [newest] if newest.weight else []

    def let_go(self) -> None:
        """Give back the memory that chunks were read into, after each part of a batch that reads them all."""
        for chunk in self.chunks:
            if chunk.mapped is not None:
                let_go(chunk.mapped)

    def tidy(self, most: int, forgetting: Forgetting | None) -> None:
        """Clean at most `most` chunks, merge chunks, and remove forgotten keys and join values.

        The new chunks are in memory until they are stored; so call it when all parts of a batch are added.
        """
        for _ in range(min(most, len(self.chunks))):
            self._clean(forgetting)
        self._merge(forgetting)
        if self.whole is not None and self.chunks:
            self._forget()

    def _forget(self) -> None:
        """Remove join values of which nothing is carried from the oldest chunk, where they are dead rows.

        From a chunk that is not stored they go at once, from a stored one when there are many.
        """
        oldest = self.chunks[0]
        dead = oldest.keys.num_rows - oldest.event_rows  # at least so many
        if oldest.name is None or ways.is_cleaned(dead, oldest.weight):
            self.chunks[0] = lasting(oldest)
        if len(self.chunks) > 1 and not self.chunks[0].weight:
            del self.chunks[0]
        if len(self.chunks) == 1:
            self.keys = self.chunks[0].keys.num_rows

    def _count_dead(self, touched: Touched, since: Ints) -> None:
        """Count in each chunk what a new one overrules: events of touched keys, and each key's newest row."""
        for chunk, here, place, before in self._holding(touched, since > -1):
            first, _ = chunk.alive(place, before)
            still, _ = chunk.alive(place, np.maximum(since[here], before))
            chunk.dead += int((still - first).sum())
        left = np.ones(len(since), np.bool_)
        for chunk, place in zip(reversed(self.chunks), reversed(touched.places), strict=True):
            chunk.dead += int((left & (place >= 0)).sum())
            left &= place < 0

    def _clean(self, forgetting: Forgetting | None) -> None:
        """Remove the dead rows of the chunk that has the most of them, if they are enough to be cleaned."""
        chunks = self.chunks
        at = max(range(len(chunks)), key=lambda place: chunks[place].dead, default=-1)
        if chunks and ways.is_cleaned(chunks[at].dead, chunks[at].weight):
            kept = cleaned(chunks[at], chunks[:at], chunks[at + 1 :])
            kept = without_forgotten(kept, chunks[at + 1 :], forgetting)
            chunks[at : at + 1] = [kept] if kept.weight else []

    def _merge(self, forgetting: Forgetting | None) -> None:
        """Merge neighbouring chunks for which `ways.is_merged` says so, the newest first."""
        chunks = self.chunks
        for at in range(len(chunks) - 2, -1, -1):
            if ways.is_merged(chunks[at].weight, chunks[at + 1].weight):
                whole = merged(chunks[at], chunks[at + 1], self.together)
                chunks[at : at + 2] = [without_forgotten(whole, chunks[at + 2 :], forgetting)]


def distinct_texts(parts: list[pa.Array]) -> pa.Array:
    """string[k], each text of some string arrays once, in the order in which they stand first."""
    kept = [part for part in parts if len(part)]
    return pc.unique(pa.concat_arrays(kept)) if kept else pa.array([], pa.string())
