"""The compiled search for the matches of a disjunction of sequences that use up their events."""

from __future__ import annotations

import numpy as np

from spark_pace.core.match.compiled_search.sequence_search import Turns
from spark_pace.core.match.search.any_order import Alternatives
from spark_pace.core.ranks import segments_of
from spark_pace.core.tables import NO_ROW, Ints


def decided(search: Alternatives) -> Ints:
    """int64[m, n + 1], the least candidate of each terminator without the events of those before it.

    Each step takes the terminators of one alternative up to the next one of another. Where an event may end
    candidates of several alternatives, it takes that event alone, and the least of their candidates.
    """
    used = np.full(search.stream.rows, NO_ROW)
    parts = [Turns(part, used) for part in search.parts]
    rows = np.concatenate([part.terminators for part in parts])
    numbers = np.repeat(np.arange(len(parts)), [len(part.terminators) for part in parts])
    order = np.argsort(rows, kind="stable")
    several = np.bincount(rows, minlength=1)[rows] > 1
    kinds = np.where(several, len(parts) + rows, numbers)[order]
    found = [np.zeros((0, search.steps), np.int64)]
    for run in np.split(order, segments_of(kinds)[1:]) if len(rows) else ():
        if several[run[0]]:
            found.append(_least(search, parts, numbers[run].tolist(), int(rows[run[0]])))
        else:
            number = int(numbers[run[0]])
            found.append(search.padded(number, parts[number].found(int(rows[run[0]]), int(rows[run[-1]]))))
    return np.concatenate(found)


def _least(search: Alternatives, parts: list[Turns], numbers: list[int], row: int) -> Ints:
    """The match that ends at a row, which several alternatives may have: int64[0 or 1, n + 1]."""
    ending = [(rows, number) for number in numbers for rows in parts[number].tried(row)]
    if not ending:
        return np.zeros((0, search.steps), np.int64)
    rows, number = min(ending)
    parts[number].use(rows, row)
    return search.padded(number, np.array([rows]))
