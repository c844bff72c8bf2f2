"""What ranges of events, or of rows of panes, hold: how many events, sums, least and greatest values.

Numbers and sums of ranges are differences of running sums, which are exact; the least and the greatest value
are taken from ranks. So ranges may overlap, and nothing is copied for each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.match.stream import Stream
from spark_pace.core.plan.plan import EVENTS, Panes, held_column
from spark_pace.core.ranks import folded, range_sums
from spark_pace.core.summaries.distribution import Registers, extremes, of_stored, registers_of, stored
from spark_pace.core.summaries.sums import Sums, squares_of, sums_of, sums_of_stored
from spark_pace.core.tables import Ints, bools, numbers


@dataclass(frozen=True)
class ContentsOfEvents:
    """Rows that are events."""

    stream: Stream

    def events(self, start: Ints, end: Ints) -> Ints:
        """int64[s], how many events each range of rows stands for, from `start` to the row before `end`."""
        return end - start

    def known(self, attribute: str, start: Ints, end: Ints) -> Ints:
        """int64[s], how many of them have a value of the attribute."""
        values = self.stream.attribute(attribute)
        return range_sums(bools(pc.is_valid(values)), start, end) if values.null_count else end - start

    def sums(self, attribute: str, start: Ints, end: Ints, *, squared: bool = False) -> Sums:
        """The sums of their values, or of the squares of these."""
        values = self.stream.attribute(attribute)
        return (squares_of if squared else sums_of)(values).over(start, end)

    def registers(self, attribute: str, start: Ints, end: Ints) -> Registers:
        """The sketches of their values."""
        return registers_of(self.stream.attribute(attribute), start, end)

    def values(self, part: str, attribute: str) -> pa.Array:
        """The "min", "max", "first" or "last" of each row's values; of events "each", which is the value."""
        return self.stream.attribute(attribute)

    def type_of(self, attribute: str) -> pa.DataType:
        """The attribute's type."""
        return self.stream.events.schema.field(attribute).type


@dataclass(frozen=True)
class ContentsOfPanes:
    """Rows that are panes, or parts of them, each of which stands for events that follow each other."""

    stream: Stream
    panes: Panes

    def events(self, start: Ints, end: Ints) -> Ints:
        """See `ContentsOfEvents`."""
        return range_sums(numbers(self.stream.events, EVENTS), start, end)

    def known(self, attribute: str, start: Ints, end: Ints) -> Ints:
        """See `ContentsOfEvents`."""
        return range_sums(numbers(self.stream.events, held_column("known", attribute)), start, end)

    def sums(self, attribute: str, start: Ints, end: Ints, *, squared: bool = False) -> Sums:
        """See `ContentsOfEvents`."""
        stored = self.stream.attribute(held_column("squares" if squared else "sum", attribute))
        return sums_of_stored(stored, start, end)

    def registers(self, attribute: str, start: Ints, end: Ints) -> Registers:
        """See `ContentsOfEvents`."""
        sketches = of_stored(self.stream.attribute(held_column("sketch", attribute)))
        return folded(np.maximum, sketches, start, end)

    def values(self, part: str, attribute: str) -> pa.Array:
        """See `ContentsOfEvents`."""
        return self.stream.attribute(held_column(part, attribute))

    def type_of(self, attribute: str) -> pa.DataType:
        """See `ContentsOfEvents`."""
        return self.panes.types[attribute]


Contents: TypeAlias = ContentsOfEvents | ContentsOfPanes


def contents_of(stream: Stream, panes: Panes | None) -> Contents:
    """The contents of the rows of a rule's stream."""
    return ContentsOfEvents(stream) if panes is None else ContentsOfPanes(stream, panes)


def held_in(contents: Contents, part: str, attribute: str, start: Ints, end: Ints) -> pa.Array:
    """What each range holds of an attribute, as `Panes.held` has it; no range is empty."""
    if part == "known":
        return pa.array(contents.known(attribute, start, end))
    if part in ("sum", "squares"):
        return contents.sums(attribute, start, end, squared=part == "squares").stored()
    if part == "sketch":
        return stored(contents.registers(attribute, start, end))
    values = contents.values(part, attribute)
    if part in ("first", "last"):
        return values.take(pa.array(start if part == "first" else end - 1))
    assert part in ("min", "max"), part
    return extremes(values, start, end, least=part == "min")
