"""The four figures of a burst, after Mendes 2013, section 4.5.5, from latencies against the scheduled time.

A batch shows all its matches at once, and those that came just before it began are quick even where the job
lags; so recovery is told by the mean over the matches of a batch, where the thesis looks at one output.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from spark_pace.sizing.bench.events.schedule import Floats
from spark_pace.sizing.bench.results.driven import Driven


def burst(driven: Driven, bounds: Floats) -> dict[str, Any] | None:
    """The figures of the run's first peak; None without one, or without matches before or in it.

    Args:
        driven: the run.
        bounds: the begin of each phase and the end of the last, seconds since 1970.
    """
    roles = [phase.role for phase in driven.run.phases]
    if "peak" not in roles:
        return None
    number, found = roles.index("peak"), driven.latencies
    seconds = found.seconds["scheduled"]
    before = seconds[found.phase == number - 1]
    inside = seconds[found.phase == number]
    if not len(before) or not len(inside):
        return None
    last = float(driven.sent.due[driven.sent.phase == number].max(initial=bounds[number]))
    recovered = _recovered(found.committed, seconds, last, float(before.mean()))
    after = seconds[(found.committed >= recovered) & (found.due > last)] if recovered else before[:0]
    return {
        "peak_begins": float(bounds[number] - driven.began),
        "peak_ends": float(bounds[number + 1] - driven.began),
        "maximum_peak_latency": float(seconds[found.due >= bounds[number]].max()),
        "peak_degradation": float(np.percentile(inside, 99.9) / np.percentile(before, 99.9)),
        "recovery_seconds": recovered - last if recovered else None,
        "post_peak_variation": float(after.mean() / before.mean()) if len(after) else None,
    }


def _recovered(committed: Floats, seconds: Floats, last: float, usual: float) -> float | None:
    """When the first batch behind the peak's last event came whose mean latency is the usual one or less."""
    for time in np.unique(committed[committed > last]).tolist():
        if seconds[committed == time].mean() <= usual:
            return float(time)
    return None
