"""What a carry holds of the panes of some keys: what it knows of a time on, and how much is left."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from spark_pace.core.plan.plan import LAST
from spark_pace.core.split.carry.carry import Carry, Touched
from spark_pace.core.split.carry.chunk import Chunk
from spark_pace.core.tables import NO_ROW, SEQ, TIME, Ints, array, concat, numbers, with_column


@dataclass(frozen=True)
class CarriedPanes:
    """The rows of panes that a carry has of some keys; see `spark_pace.core.split.panes`.

    Of a key, no window that has not ended has begun before its first living row: so times tell which rows
    live, and whoever asks for a time of such a window need not know what newer chunks overrule.

    Attributes:
        carry: the carry.
        touched: the keys.
        width_us: the length of a pane.
    """

    carry: Carry
    touched: Touched
    width_us: int

    def newest(self) -> tuple[pa.Table | None, Ints]:
        """The last row of each key of which rows are carried, and the index of its key in `touched`."""
        tables, owners = list[pa.Table](), [np.zeros(0, np.int64)]
        wanted = self.touched.rows > 0
        for chunk, places in zip(reversed(self.carry.chunks), reversed(self.touched.places), strict=True):
            if not wanted.any():
                break
            if chunk.events is None:
                continue
            here = np.flatnonzero(wanted & (places >= 0))
            some, rows = chunk.newest(places[here])
            if len(some):
                tables.append(chunk.events.take(pa.array(rows)))
                owners.append(here[some])
                wanted[here[some]] = False
        if not tables:
            return None, owners[0]
        rows = concat(tables)  # with the columns of a batch's rows
        rows = with_column(rows, LAST, array(rows, TIME)).select([*rows.column_names[:-1], LAST, SEQ])
        return rows, np.concatenate(owners)

    def onward(self, keys: Ints, times: Ints) -> tuple[pa.Table, Ints]:
        """The rows that together hold all that is carried of some keys from some times on, one of each chunk.

        Args:
            keys: int64[w], indices in `touched`, of keys of which rows are carried.
            times: int64[w], of each a time at or before that of its key's last row.

        Returns:
            the rows; and int64[n], for which of the w each is: ascending, and then in stream order.
        """
        tables, owners = list[pa.Table](), list[Ints]()
        for chunk, here, first, _ in self._from(keys, times):
            assert chunk.events is not None
            tables.append(chunk.events.take(pa.array(first)))
            owners.append(here)
        owner = np.concatenate(owners)
        order = np.argsort(owner, kind="stable")
        return concat(tables).take(pa.array(order)), owner[order]

    def left(self, from_us: int) -> tuple[Ints, Ints]:
        """Of each key, how many panes are carried from a time on, and the `seq` of the first one's row.

        The latter is `NO_ROW` where none is. Rows of two chunks may be of one pane.
        """
        count = len(self.touched.texts)
        panes, since = np.zeros(count, np.int64), np.full(count, NO_ROW)
        newest = np.full(count, from_us // self.width_us - 1)
        keys = np.flatnonzero(self.touched.rows > 0)
        for chunk, here, first, end in self._from(keys, np.full(len(keys), from_us)):
            assert chunk.events is not None
            pane, of = numbers(chunk.events, TIME), keys[here]
            panes[of] += end - first - (pane[first] // self.width_us == newest[of])
            newest[of] = pane[end - 1] // self.width_us
            since[of] = np.minimum(since[of], numbers(chunk.events, SEQ)[first])
        return panes, since

    def _from(self, keys: Ints, times: Ints) -> Iterator[tuple[Chunk, Ints, Ints, Ints]]:
        """For each chunk, the oldest first, what it has of keys from times on, where it has some.

        Yields:
            the chunk; and int64[m] each: for which of the keys, the first row, the row behind the last one.
        """
        least = int(times.min(initial=NO_ROW))
        for chunk, places in zip(self.carry.chunks, self.touched.places, strict=True):
            if chunk.events is None or chunk.ranges[TIME][1] < least:
                continue
            here = np.flatnonzero(places[keys] >= 0)
            first, end = chunk.first_from(TIME, places[keys[here]], times[here])
            some = np.flatnonzero(first < end)
            if len(some):
                yield chunk, here[some], first[some], end[some]
