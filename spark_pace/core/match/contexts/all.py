"""Selection policy *all*: one match gathers every event of the span that matches a component."""

from __future__ import annotations

import numpy as np

from spark_pace.core.columns import Ints
from spark_pace.core.match.candidates import expand
from spark_pace.core.match.found import Found
from spark_pace.core.match.stream import Stream


def all_selected(stream: Stream, openings: Ints, closes: Ints, steps: int) -> Found:
    """Every event of each closed span, once, as the first declared component it matches.

    Sources: Snoop's cumulative context (two steps); Siddam 2015, section 2.5.
    """
    first_role = _first_component(stream, steps)
    counts = np.append(0, np.cumsum(first_role >= 0))
    _, rows = expand(openings, closes + 1)
    members = rows[first_role[rows] >= 0]
    sizes = counts[closes + 1] - counts[openings]
    offsets = np.append(0, np.cumsum(sizes))
    return Found(openings, closes, np.arange(len(openings)), offsets, members, first_role[members])


def _first_component(stream: Stream, steps: int) -> np.ndarray[tuple[int], np.dtype[np.int8]]:
    """int8[n], the first declared component each row matches; -1 for none."""
    role = np.full(stream.rows, -1, np.int8)
    for bit in range(steps - 1, -1, -1):
        role[stream.matching(bit)] = bit
    return role
