"""The matches of a rule that are known and not out: the rules that read it must not go on past them.

Sources: semantics, section 5.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from spark_pace.core.columns import UNKNOWN_TIME, Bools, Ints


def _none() -> Ints:
    return np.zeros(0, np.int64)


@dataclass(frozen=True)
class Waiting:
    """How many matches wait, by their times; or by how many these have changed, which may be less than 0.

    Attributes:
        times: int64[n], the `matched_at` of matches, ascending, each once.
        counts: int64[n], none of them 0.
    """

    times: Ints = field(default_factory=_none)
    counts: Ints = field(default_factory=_none)

    @staticmethod
    def change(come: Ints, gone: Ints) -> Waiting:
        """The change by matches of the times `come` that wait from now on, and `gone` that do no longer."""
        times = np.concatenate([come, gone])
        return _summed(times, np.repeat([1, -1], [len(come), len(gone)]))

    @staticmethod
    def sum(parts: Iterable[Waiting]) -> Waiting:
        """All of these together."""
        parts = [part for part in parts if len(part.times)]
        if len(parts) < 2:
            return parts[0] if parts else NOTHING_WAITS
        times, counts = (np.concatenate([getattr(part, name) for part in parts]) for name in _COLUMNS)
        return _summed(times, counts)

    @property
    def first_us(self) -> int:
        """The least time at which a match waits; `UNKNOWN_TIME` if none does."""
        times = self.times[self.counts > 0]
        return int(times[0]) if len(times) else UNKNOWN_TIME

    def since(self, time_us: int) -> Waiting:
        """Those of this time and later ones."""
        first = np.searchsorted(self.times, time_us)
        return Waiting(self.times[first:], self.counts[first:])

    def stored(self) -> list[list[int]]:
        """Both columns as plain values."""
        return [self.times.tolist(), self.counts.tolist()]

    @staticmethod
    def of(stored: list[list[int]]) -> Waiting:
        """What `stored` has made plain values of."""
        times, counts = (np.array(column, np.int64) for column in stored)
        return Waiting(times, counts)


_COLUMNS = ("times", "counts")
NOTHING_WAITS = Waiting()


def _summed(times: Ints, counts: Ints) -> Waiting:
    distinct, place = np.unique(times, return_inverse=True)
    sums = np.zeros(len(distinct), np.int64)
    np.add.at(sums, place, counts)
    left = sums != 0
    return Waiting(distinct[left], sums[left])


def come_to_wait(matched_us: Ints, out: Bools, passed_us: int, frontier_us: int) -> Waiting:
    """The matches that are known only now and do not go out now.

    Args:
        matched_us: int64[m], the times of certain matches.
        out: bool[m], whether each goes out now, or has gone out before.
        passed_us: the frontier before the batch.
        frontier_us: the frontier now.
    """
    come = matched_us[~out & (matched_us >= passed_us) & (matched_us < frontier_us)]
    return Waiting.change(come, _none())
