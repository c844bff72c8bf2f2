"""What a rule's operators are predicted to take, from what they took before.

Sources: Mayer, Tariq, Rothermel 2017, section 4: means with a bias of some standard deviations, so that the
prediction is pessimistic.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spark_pace.core.columns import Ints

Floats = npt.NDArray[np.float64]

DEVIATIONS = 1.0  # so many standard deviations are added to each mean
_ALIKE = 1e-9  # a variance below this share of the square says nothing


@dataclass(frozen=True)
class Price:
    """What a rule's operators are predicted to take, in seconds.

    Attributes:
        selection: for each selection of a Python operator; 0 for other rules.
        event: for each event of each selection.
    """

    selection: float
    event: float

    def seconds(self, rows: Ints) -> Floats:
        """float64[n], for selections with so many events."""
        return np.asarray(self.selection + self.event * rows, np.float64)


def sums_of_calls(rows: Ints, seconds: Floats, all_seconds: float) -> Floats:
    """What the calls of a lane say of the price of its rule, to be added up.

    Args:
        rows: int64[n], the events of each selection.
        seconds: float64[n], what its call took; 0 where that is not known.
        all_seconds: what the lane took. What it took beside the calls counts in equal parts for each.

    Returns:
        float64[6]: n, and the sums of rows, rows², seconds, rows × seconds, seconds².
    """
    if not len(rows):
        return np.zeros(6)
    took = seconds + max(0.0, all_seconds - float(seconds.sum())) / len(rows)
    counts = rows.astype(np.float64)  # squares of integers could overflow
    sums = (len(rows), counts.sum(), counts @ counts, took.sum(), counts @ took, took @ took)
    return np.array(sums, np.float64)


def sums_of_lane(rows: int, all_seconds: float) -> Floats:
    """The sums of a lane that was not measured call by call, as if each of its events took the same time.

    Args:
        rows: the events of its selections, of each its own.
        all_seconds: what the lane took.
    """
    if not rows:
        return np.zeros(6)
    return np.array([rows, rows, rows, all_seconds, all_seconds, all_seconds**2 / rows])


def price_of(sums: Floats, *, by_call: bool) -> Price | None:
    """The price of a rule.

    A line through seconds over events, with no part below 0; the standard deviation is that from the line.

    Args:
        sums: float64[6], sums of what `sums_of_calls` gives, or of what `sums_of_lane` does.
        by_call: which of both: whether the deviation counts for each selection, or for each event.

    Returns:
        The price; None where nothing was measured, or no time.
    """
    count, rows, squares, seconds, products, squared_seconds = sums.tolist()
    if not (rows > 0 and 0 < seconds < np.inf):
        return None
    spread = squares - rows * rows / count
    event = (products - rows * seconds / count) / spread if spread > _ALIKE * squares else np.inf
    selection = (seconds - event * rows) / count
    if event < 0:
        selection, event = seconds / count, 0.0
    elif selection < 0:
        selection, event = 0.0, products / squares
    explained = 2 * (selection * seconds + event * products)
    explained -= count * selection**2 + 2 * selection * event * rows + event**2 * squares
    bias = DEVIATIONS * float(np.sqrt(max(0.0, squared_seconds - explained) / count))
    return Price(selection + bias, event) if by_call else Price(0.0, selection + event + bias)
