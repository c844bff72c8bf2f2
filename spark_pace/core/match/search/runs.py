"""Groups whose events directly follow each other: parts of runs of neighbours in the stream."""

from __future__ import annotations

import numpy as np

from spark_pace.core.columns import Ints
from spark_pace.core.match.stream import Stream


class Runs:
    """The runs of neighbours among the events of a component.

    Attributes:
        stream: the stream.
        rows: int64[r], the rows that match the component, ascending.
        before: int64[rows + 1], how many of them stand before each row of the stream.
        behind: int64[r], the row behind the run that each of `rows` is in.
        from_left: whether a group begins with the row that it stands behind.
    """

    def __init__(self, stream: Stream, rows: Ints, before: Ints, *, from_left: bool) -> None:
        """Find the runs."""
        self.stream, self.rows, self.before, self.from_left = stream, rows, before, from_left
        last = np.append(np.diff(stream.seq[rows]) != 1, True)[: len(rows)]
        self.behind: Ints = rows[last][np.cumsum(last) - last] + 1

    def ended(self, left: Ints) -> Ints:
        """int64[m], the row that ends the run of neighbours behind each row `left`, or from it on."""
        first = self.before[left + (not self.from_left)]
        there = first < len(self.rows)
        first = np.where(there, first, 0)
        rows, behind = (np.append(one, 0) for one in (self.rows, self.behind))
        near = self.stream.seq[rows[first]] - self.stream.seq[left] == (not self.from_left)
        return np.where(there & near, behind[first], left + 1)
