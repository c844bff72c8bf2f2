"""The counters of a rule's whole stream, for units that keep events by join value."""

from __future__ import annotations

import base64
import zlib
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from spark_pace.core.columns import MASK, OPENING, SEQ
from spark_pace.core.match.release import Resolution
from spark_pace.core.split.carry.chunk import Chunk
from spark_pace.core.tables import numbers, with_column


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


def lasting(chunk: Chunk) -> Chunk:
    """The oldest chunk without the keys that have no carried events; they need no counters of their own."""
    lives = chunk.column("rows") > 0
    if lives.all():
        return chunk
    dead = max(0, chunk.dead - int(np.count_nonzero(~lives)))
    return replace(chunk, keys=chunk.keys.filter(pa.array(lives)), frames=(), name=None, dead=dead)
