"""What memory may gain while a job runs under load."""

from __future__ import annotations

from dataclasses import dataclass

from spark_pace_bench.trend import Trend


@dataclass(frozen=True)
class Tolerance:
    """What memory may gain over the time that is judged.

    Attributes:
        share: of its level.
        least_mb: and this in any case: what an allocator's arenas and Spark's caches move by themselves.
    """

    share: float
    least_mb: float


def grows(trend: Trend, tolerance: Tolerance) -> bool:
    """Tell whether memory (in MB) grows: by its slope it gains more than the tolerance in the time judged."""
    return trend.moved > max(tolerance.share * trend.level, tolerance.least_mb)
