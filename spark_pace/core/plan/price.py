"""Predicts the time that a rule's operators will take from the times that they took before.

Sources: Mayer, Tariq, Rothermel 2017, section 4: the mean plus some standard deviations, a pessimistic
prediction.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spark_pace.core.tables import Ints

Floats = npt.NDArray[np.float64]

DEVIATIONS = 1.0  # the number of standard deviations that are added to each mean
_ALIKE = 1e-9  # a variance below this share of the square is rounding error


@dataclass(frozen=True)
class Price:
    """The predicted times of a rule's operators, in seconds.

    Attributes:
        selection: seconds for each selection of a Python operator; 0 for other rules.
        event: seconds for each event of each selection.
    """

    selection: float
    event: float

    def seconds(self, rows: Ints) -> Floats:
        """float64[n], the predicted seconds for n selections, from their numbers of events (int64[n])."""
        return np.asarray(self.selection + self.event * rows, np.float64)


def sums_of_calls(rows: Ints, seconds: Floats, all_seconds: float) -> Floats:
    """Sums over the calls of a lane. The sums of several lanes are added up for `price_of`.

    Args:
        rows: int64[n], the events of each selection.
        seconds: float64[n], the time of its call; 0 if not known.
        all_seconds: the time of the lane. Time outside the calls is divided equally among them.

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
        rows: the number of events, summed over the lane's selections.
        all_seconds: the time of the lane.
    """
    if not rows:
        return np.zeros(6)
    return np.array([rows, rows, rows, all_seconds, all_seconds, all_seconds**2 / rows])


def price_of(sums: Floats, *, by_call: bool) -> Price | None:
    """Fit the price of a rule to the measured times.

    The price is the line of seconds over events with the least squares; neither of its coefficients is below
    0. The standard deviation is the deviation from this line.

    Args:
        sums: float64[6], the total of results of `sums_of_calls`, or of results of `sums_of_lane`.
        by_call: True for `sums_of_calls`: the deviation is added for each selection, else for each event.

    Returns:
        The price; None if nothing was measured, or if no time passed.
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
