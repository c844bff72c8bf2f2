"""The carry of a unit: a log of chunks, looked up by key.

A batch adds one chunk: the keys that it touches, with their counters and the events to keep. Older chunks
never change. So a batch matches and writes only what it touches, not all that is carried; from the rest it
reads only times, to find windows that end. Neighbouring chunks of similar size are merged, so that there are
few of them, and each event is merged only a few times. No merge makes a chunk of more than `ways.LARGEST`
rows, so a carry may be larger than memory; then each large chunk holds the events of some period, and loses
them together when their windows have ended.

Units that keep events by join value have the counters of the rule's whole stream beside it.

Sources: O'Neil et al., The Log-Structured Merge-Tree, 1996.
"""

from __future__ import annotations

import base64
import itertools
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace import ways
from spark_pace.core.frames import let_go
from spark_pace.core.match.release import Resolution
from spark_pace.core.ranks import Hashes, expand, hash_texts
from spark_pace.core.split.carry.chunk import (
    COUNTERS,
    EVERY_HASH,
    LAST,
    Chunk,
    HashRange,
    Together,
    cleaned,
    merged,
    new_chunk,
    without,
    without_forgotten,
)
from spark_pace.core.split.carry.examined_keys import Forgetting, Wake
from spark_pace.core.tables import (
    MASK,
    NO_ROW,
    NOTHING_US,
    OPENING,
    SEQ,
    Bools,
    Ints,
    array,
    in_chunks,
    numbers,
    with_column,
)


@dataclass
class Whole:
    """The next numbers and the resolution of a rule's whole stream.

    Attributes:
        next_seq: the `seq` of the next event.
        next_selection: the number of the next selection.
        resolution: which selections are resolved.
    """

    next_seq: int = 0
    next_selection: int = 0
    resolution: Resolution = field(default_factory=Resolution)

    def number(self, events: pa.Table, bits: int) -> pa.Table:
        """Add ``@seq`` and ``@opening`` to new events, which are in stream order; the counters advance.

        An event whose mask has one of `bits` opens a selection.
        """
        opens = (numbers(events, MASK) & np.uint16(bits) != 0).astype(np.int64)
        before = np.cumsum(opens) - opens
        events = with_column(events, SEQ, self.next_seq + np.arange(len(opens)))
        events = with_column(events, OPENING, self.next_selection + before)
        self.next_seq += len(opens)
        self.next_selection += int(opens.sum())
        return events

    def stored(self) -> dict[str, Any]:
        """The counters and the resolution as plain values for JSON."""
        first, closed = self.resolution.first, self.resolution.closed
        bits = np.zeros(0, np.bool_)
        if len(closed):
            bits = np.zeros(int(closed[-1]) + 1 - first, np.bool_)
            bits[closed - first] = True
        packed = base64.b64encode(zlib.compress(np.packbits(bits).tobytes(), 1)).decode()
        return {
            "next_seq": self.next_seq,
            "next_selection": self.next_selection,
            "resolved": first,
            "closed": packed,
        }


def whole_of(stored: dict[str, Any]) -> Whole:
    """Restore a `Whole` from the result of `Whole.stored`."""
    packed = np.frombuffer(zlib.decompress(base64.b64decode(stored["closed"])), np.uint8)
    closed = np.flatnonzero(np.unpackbits(packed)) + stored["resolved"]
    return Whole(stored["next_seq"], stored["next_selection"], Resolution(stored["resolved"], closed))


@dataclass(frozen=True)
class Wanted:
    """The values that a rule needs of its keys in a batch, besides their counters.

    Attributes:
        forgetting: when keys are forgotten; None: never.
        last_values: the columns of values kept for each key: those of its last events, which ``prev`` reads,
            or the state of its fold.
    """

    forgetting: Forgetting | None = None
    last_values: pa.Schema = field(default_factory=lambda: pa.schema([]))


NOTHING_ELSE = Wanted()


@dataclass(frozen=True)
class Touched:
    """Some keys with their counters and values from the carry. The batch updates the counters in place.

    Attributes:
        texts: string[k], the keys, distinct.
        hashes: uint64[k].
        places: for each chunk int64[k], the row of each key; -1 where the chunk does not have it.
        next_seq: int64[k], the `seq` of each key's next event.
        next_selection: int64[k], the number of each key's next selection.
        open: int64[k], the number of open selections of each key.
        rows: int64[k], the number of carried events of each key.
        last: int64[k], the event time of each key's last event, if keys are forgotten.
        last_before: int64[k], `last` before the batch.
        last_values: the columns of `Wanted.last_values` with k values each; null if there is no value.
        new: the number of keys that the carry has never had, or has forgotten.
        rows_before: the sum of `rows` before the batch.
        open_before: the sum of `open` before the batch.
        forgetting: when keys are forgotten; None: never.
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
    """The keys and events that a unit keeps between two batches.

    Attributes:
        chunks: the chunks, the oldest first.
        keys: the number of keys ever seen and not forgotten. Join values of which no events are carried may
            be forgotten too.
        rows: the number of carried events.
        open: the number of open selections.
        whole: the counters of the rule's whole stream if the keys are join values; else None.
        together: merges the events of two chunks, if events of the one depend on those of the other.
        forbidding: for each negated component in first place a carry of the events that can still forbid
            others (`earlier_events.py`), by key and values; only the carry of such a rule has them.
        left: in one of these, the number of its rows when it was pruned last.
    """

    chunks: list[Chunk] = field(default_factory=list)
    keys: int = 0
    rows: int = 0
    open: int = 0
    whole: Whole | None = None
    together: Together | None = None
    forbidding: list[Carry] = field(default_factory=list)
    left: int = 0

    def find(self, texts: pa.Array, wanted: Wanted = NOTHING_ELSE) -> Touched:
        """Look up distinct keys; the counters of a new key are 0."""
        hashes = hash_texts(texts)
        counters = {name: np.zeros(len(texts), np.int64) for name in COUNTERS}
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
        """The values of `count` keys in these columns, each from the newest chunk that has the key."""
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
        """The carried events of the chosen keys (`chosen` is bool[k]).

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
        """Find the chunks in which chosen keys may have live events, the newest first.

        Yields:
            the chunk; and int64[m] each: the indices in `touched` of the chosen keys that the chunk has,
                their rows in it, and the `seq` from which on their events in it are alive.
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
        """string[k], the keys whose stream ends in this batch unless the batch has an event of theirs."""
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
        """string[k], all keys with carried events whose hash is in a range."""
        texts = distinct_texts([chunk.living(hashes) for chunk in self.chunks])
        return texts.filter(pa.array(self.find(texts, wanted).rows > 0))

    def put(self, touched: Touched, since: Ints, events: pa.Table | None, owner: Ints) -> None:
        """Store the touched keys and their events after a batch: `add` them, then `tidy`."""
        self.add(touched, since, events, owner)
        self.tidy(1, touched.forgetting)

    def add(self, touched: Touched, since: Ints, events: pa.Table | None, owner: Ints) -> None:
        """Store the touched keys and their events of a part of a batch as a new chunk. Older chunks stay.

        Args:
            touched: the keys, with their updated counters.
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
            self.chunks = [newest] if newest.weight else []  # it has all that is carried
        else:
            self._count_dead(touched, since)
            self.chunks += [newest] if newest.weight else []

    def let_go(self) -> None:
        """Release the memory that chunks were read into, after each part of a batch that reads all chunks."""
        for carry in (self, *self.forbidding):
            for chunk in carry.chunks:
                if chunk.mapped is not None:
                    let_go(chunk.mapped)

    def tidy(self, most: int, forgetting: Forgetting | None) -> None:
        """Clean at most `most` chunks, merge chunks, and remove forgotten keys and join values.

        Call it once all parts of a batch are added, because new chunks stay in memory until they are stored.
        """
        for _ in range(min(most, len(self.chunks))):
            self._clean(forgetting)
        self._merge(forgetting)
        if self.whole is not None and self.chunks:
            self._forget()

    def _forget(self) -> None:
        """Remove join values without carried events from the oldest chunk, where they are dead rows.

        A chunk that is not stored loses them at once, a stored one once there are many.
        """
        oldest = self.chunks[0]
        dead = oldest.keys.num_rows - oldest.event_rows  # a lower bound
        if oldest.name is None or ways.is_cleaned(dead, oldest.weight):
            self.chunks[0] = without(oldest, np.flatnonzero(oldest.column("rows") == 0))
        if len(self.chunks) > 1 and not self.chunks[0].weight:
            del self.chunks[0]
        if len(self.chunks) == 1:
            self.keys = self.chunks[0].keys.num_rows

    def _count_dead(self, touched: Touched, since: Ints) -> None:
        """Count the rows in each chunk that a new chunk replaces: events and rows of the touched keys."""
        for chunk, here, place, before in self._holding(touched, since > -1):
            first, _ = chunk.alive(place, before)
            still, _ = chunk.alive(place, np.maximum(since[here], before))
            chunk.dead += int((still - first).sum())
        left = np.ones(len(since), np.bool_)
        for chunk, place in zip(reversed(self.chunks), reversed(touched.places), strict=True):
            chunk.dead += int((left & (place >= 0)).sum())
            left &= place < 0

    def _clean(self, forgetting: Forgetting | None) -> None:
        """Remove the dead rows of the chunk with the most of them, if these are many (`ways.is_cleaned`)."""
        chunks = self.chunks
        at = max(range(len(chunks)), key=lambda place: chunks[place].dead, default=-1)
        if chunks and ways.is_cleaned(chunks[at].dead, chunks[at].weight):
            kept = cleaned(chunks[at], chunks[:at], chunks[at + 1 :])
            kept = without_forgotten(kept, chunks[at + 1 :], forgetting)
            chunks[at : at + 1] = [kept] if kept.weight else []

    def _merge(self, forgetting: Forgetting | None) -> None:
        """Merge neighbouring chunks of similar size (`ways.is_merged`), the newest first."""
        chunks = self.chunks
        for at in range(len(chunks) - 2, -1, -1):
            if ways.is_merged(chunks[at].weight, chunks[at + 1].weight):
                whole = merged(chunks[at], chunks[at + 1], self.together)
                chunks[at : at + 2] = [without_forgotten(whole, chunks[at + 2 :], forgetting)]


def distinct_texts(parts: list[pa.Array]) -> pa.Array:
    """string[k], the distinct texts of some string arrays, in the order of their first appearance."""
    kept = [part for part in parts if len(part)]
    return pc.unique(pa.concat_arrays(kept)) if kept else pa.array([], pa.string())
