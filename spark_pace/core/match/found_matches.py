"""What matching finds in a stream: selections, and the production sets of the matches in them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spark_pace.core.columns import Ints
from spark_pace.core.match.stream import Stream


@dataclass(frozen=True)
class Found:
    """Selections and matches, by rows of a stream.

    Attributes:
        openings: int64[s], the opening row of each selection, ascending.
        closes: int64[s], the row that closed it; -1 where none did.
        selection: int64[m], for each match the index of its selection.
        offsets: int64[m + 1]: ``members[offsets[i]:offsets[i + 1]]`` is match i's production set.
        members: int64[], rows, ascending within a match.
        roles: int8[], the index of the component that each member stands for.
        deciding: int64[m], the row whose window's end decides each match; -1, or None for all: the match's
            last event does.
        settling: int64[m], the row whose window's end tells all matches that stand before each one, if it is
            not where those before it are decided; None otherwise.
    """

    openings: Ints
    closes: Ints
    selection: Ints
    offsets: Ints
    members: Ints
    roles: npt.NDArray[np.int8]
    deciding: Ints | None = None
    settling: Ints | None = None

    @property
    def matches(self) -> int:
        """How many matches there are."""
        return len(self.selection)

    @property
    def first(self) -> Ints:
        """int64[m], the first row of each match."""
        return self.members[self.offsets[:-1]]

    @property
    def last(self) -> Ints:
        """int64[m], the last row of each match."""
        return self.members[self.offsets[1:] - 1]

    def keep(self, kept: Ints) -> Found:
        """Keep of these selections the matches at the indices `kept` (int64[k]), in that order."""
        lengths = np.diff(self.offsets)[kept]
        offsets = np.append(0, np.cumsum(lengths))
        index = np.arange(offsets[-1]) + np.repeat(self.offsets[:-1][kept] - offsets[:-1], lengths)
        deciding, settling = (None if rows is None else rows[kept] for rows in (self.deciding, self.settling))
        selection, members, roles = self.selection[kept], self.members[index], self.roles[index]
        return Found(self.openings, self.closes, selection, offsets, members, roles, deciding, settling)


@dataclass(frozen=True)
class Decided:
    """What is decided terminator by terminator.

    Attributes:
        offsets, members, roles: the production sets of the matches, by rows of the stream.
        latest: int64[t], the rows that may end a match, ascending; and int64[t], the first row of the
            candidate that starts last up to each of them, -1 where there is none. None where nothing behind
            a match may forbid it.
    """

    offsets: Ints
    members: Ints
    roles: npt.NDArray[np.int8]
    latest: tuple[Ints, Ints] | None


def found_of(openings: Ints, closes: Ints, selection: Ints, matrix: Ints) -> Found:
    """The matches of a matrix int64[m, n] that has one row of the stream for each component."""
    m, n = matrix.shape
    roles = np.tile(np.arange(n, dtype=np.int8), m)
    return Found(openings, closes, selection, np.arange(m + 1) * n, matrix.ravel(), roles)


def stacked(pieces: Iterable[Ints], steps: int) -> Ints:
    """Pieces of candidates as one matrix int64[m, n]."""
    kept = [piece for piece in pieces if len(piece)]
    return np.concatenate(kept) if kept else np.zeros((0, steps), np.int64)


def within_rows(rows: Ints, owned: tuple[int, int]) -> Ints:
    """The part of the ascending `rows` that lies in the range `owned`."""
    lo, hi = np.searchsorted(rows, owned)
    return rows[lo:hi]


def whole(stream: Stream) -> tuple[int, int]:
    """The range of all rows of a stream."""
    return 0, stream.rows
