"""Collects records that are no events: a row for each of a file's first ones, one row for all others.

All readers of files and of records sort out impossible times here: no event time, or a TIMESTAMP or DATE
outside its range.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from heapq import merge
from itertools import count, repeat
from operator import itemgetter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.expr import array_element
from spark_pace.core.expr.time_functions import RANGES, out_of_range
from spark_pace.core.plan.plan import MOST_BAD_RECORDS
from spark_pace.core.plan.rule import EventSchema
from spark_pace.core.plan.structs import shown_values
from spark_pace.core.tables import Bools, Ints
from spark_pace.errors import one_line

BAD_SCHEMA = pa.schema(
    [("source", pa.string()), ("offset", pa.int64()), ("reason", pa.string()), ("raw", pa.binary())]
)
WHOLE_FILE = "the file — "  # begins the reason if a whole file is one bad record
MOST_BAD_BYTES = 64 << 20  # the size of a file's bad records that get a row each

Bad = tuple[int, str, bytes]  # offset, reason, raw
Raw = Callable[[int], bytes]  # gives the bytes of a record by its number
_Tell = Callable[[int], tuple[str, bytes]]  # gives the reason and the bytes of a record by its index


class BadRecords:
    """Collects the bad records of a file in bounded memory.

    Attributes:
        count: the number of bad records.
        ignored: the number of lines that are no records.
    """

    def __init__(self, most: int | None = MOST_BAD_RECORDS) -> None:
        """Give the first `most` bad records a row each; None: all of them."""
        self.count = self.ignored = 0
        self._most = most
        self._bytes_left = MOST_BAD_BYTES
        self._told: list[Bad] = []
        self._other: Bad | None = None  # the first that has no row of its own
        self._last = 0  # the offset of the last one
        self._found: list[tuple[Ints, _Tell]] = []

    def add(self, first: int, rows: Ints, reason: Callable[[int], str], raw: Raw) -> None:
        """Add bad records of the part of the file that is being read.

        Args:
            first: the offset of the part's record 0 in the file.
            rows: int64[n], the numbers of the bad records in the part, ascending.
            reason: gives the reason for a record by its index among the n.
            raw: gives the bytes of a record of the part.
        """
        if len(rows):
            self._found.append((first + rows, lambda index: (reason(index), raw(int(rows[index])))))

    def add_one(self, offset: int, reason: str, raw: bytes) -> None:
        """Add one bad record."""
        self.add(offset, np.zeros(1, np.int64), lambda _: reason, lambda _: raw)

    def settle(self) -> None:
        """Put the bad records added so far in order; later ones must come from later parts of the file."""
        if not self._found:
            return
        self.count += sum(len(offsets) for offsets, _ in self._found)
        self._last = max(int(offsets[-1]) for offsets, _ in self._found)
        parts = (zip(offsets.tolist(), count(), repeat(tell)) for offsets, tell in self._found)
        for offset, index, tell in merge(*parts, key=itemgetter(0)):
            if self._other is not None:
                break
            self._tell(offset, *tell(index))
        self._found = []

    def _tell(self, offset: int, reason: str, raw: bytes) -> None:
        self._bytes_left -= len(raw) if self._most is not None else 0
        bad = (offset, one_line(reason), raw)
        if self._bytes_left < 0 or len(self._told) == self._most:
            self._other = bad
        else:
            self._told.append(bad)

    def table(self, source: str) -> pa.Table:
        """The rows for the bad records by offset, as a table of `BAD_SCHEMA` with this source."""
        self.settle()
        rows = [*self._told]
        if self._other is not None:
            (offset, reason, raw), others = self._other, self.count - len(rows)
            which = f"{others} bad records of rows {offset} to {self._last}, of which this is the first: "
            rows.append((offset, which + reason if others > 1 else reason, raw))
        offsets, reasons, raws = zip(*rows, strict=True) if rows else ((), (), ())
        return pa.table([[source] * len(rows), offsets, reasons, raws], schema=BAD_SCHEMA)


EARLIEST_US = -2_208_988_800_000_000  # 1900-01-01
END_US = 7_258_118_400_000_000  # 2200-01-01: no event has a time from here on
FAR_US = 1 << 62  # a time outside every range
UNIT_US = {None: 1, "us": 1, "ms": 1_000, "s": 1_000_000}
_MOST_CHARACTERS = 200  # the length of a value in a reason


def event_times(table: pa.Table, schema: EventSchema) -> tuple[pa.ChunkedArray, Bools]:
    """The event times in the schema's unit, int64[n]; and bool[n], whether each is there and possible."""
    unit, counts = UNIT_US[schema.time_unit], pc.cast(table.column(schema.event_time), pa.int64())
    inside = pc.and_(pc.greater_equal(counts, EARLIEST_US // unit), pc.less(counts, END_US // unit))
    return counts, pc.fill_null(inside, False).to_numpy()


def timely(
    table: pa.Table, schema: EventSchema, rows: Ints, first: int, raw: Raw, bad: BadRecords
) -> pa.Table:
    """Keep the rows of a parsed chunk whose times are possible; add the columns of `with_places`.

    Args:
        table: the parsed records, a column for each attribute.
        schema: the attributes.
        rows: int64[n], the number of each row's record in the chunk.
        first: the offset of the chunk's first record.
        raw: gives the bytes of one of the chunk's records.
        bad: gets the records with an impossible time.
    """
    unit, (counts, possible) = UNIT_US[schema.time_unit], event_times(table, schema)
    wrong = {schema.event_time: ~possible}
    for field in schema.fields:
        outside = out_of_range(table.column(field.name)) if field.name not in wrong else None
        if outside is not None:
            wrong[field.name] = outside
    refused = np.logical_or.reduce(list(wrong.values()))
    if not refused.any():
        return with_places(table, counts.to_numpy() * unit, first + rows)
    places = np.flatnonzero(refused)

    def reason(index: int) -> str:
        row = places[index]
        name = next(name for name, outside in wrong.items() if outside[row])
        return _impossible(schema, name, table.column(name).slice(row, 1))

    bad.add(first, rows[places], reason, raw)
    good = pa.array(~refused)
    return with_places(table.filter(good), counts.filter(good).to_numpy() * unit, first + rows[~refused])


def _impossible(schema: EventSchema, name: str, value: pa.ChunkedArray) -> str:
    """The reason for a record whose attribute `name` has an impossible time, the only entry of `value`."""
    (kind,) = (field.type for field in schema.fields if field.name == name)
    must = "an event time from 1900 to 2199"
    if name != schema.event_time:
        must = RANGES[array_element(kind) or kind]
    (shown,) = shown_values(value)
    text = json.dumps(shown, default=str) if isinstance(shown, list) else str(shown)
    got = "nothing" if shown is None else text.removesuffix(".000000")[:_MOST_CHARACTERS]
    return f"{name} — must be {must}; got {got}"


def with_places(table: pa.Table, times_us: Ints, offsets: Ints) -> pa.Table:
    """Add the columns `@time` (int64, microseconds since 1970) and `@offset` (int64) in front."""
    return table.add_column(0, "@time", pa.array(times_us)).add_column(1, "@offset", pa.array(offsets))
