"""The slope of a curve, by which it is flat or not.

A slope is the median of the slopes between all pairs of points (Theil and Sen): a burst, a pause or one wild
sample does not tilt it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

HOUR = 3600.0
WARM_UP = 1 / 3  # of the time: workers start, caches and heaps fill, a burst leaves its buffers
POINTS = 200  # more samples are put together, each group as its median
FLAT = 0.05  # of the level: what a curve may move by over the time that is judged and still be called flat


@dataclass(frozen=True)
class Trend:
    """One curve after the warm-up.

    Attributes:
        level: the median.
        slope_per_hour: in its unit.
        moved: slope times the time that was judged.
        flat: it has moved by less than `FLAT` of the level.
    """

    level: float
    slope_per_hour: float
    moved: float
    flat: bool


def trend_of(seconds: Sequence[float], values: Sequence[float], begins: float) -> Trend | None:
    """The trend of a curve from second `begins` on; None where there are fewer than three points."""
    curve = np.array(
        [
            (second, value)
            for second, value in zip(seconds, values, strict=True)
            if second >= begins and value is not None
        ],
        float,
    )
    if len(curve) < 3:
        return None
    groups = np.array_split(curve, min(POINTS, len(curve)))
    time, value = np.array([np.median(group, axis=0) for group in groups]).T
    first, second = np.triu_indices(len(time), 1)
    apart = time[second] > time[first]
    slope = (
        float(np.median((value[second] - value[first])[apart] / (time[second] - time[first])[apart]))
        if apart.any()
        else 0.0
    )
    level = float(np.median(value))
    moved = slope * float(time[-1] - time[0])
    return Trend(level, slope * HOUR, moved, abs(moved) <= FLAT * abs(level))
