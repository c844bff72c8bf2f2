"""What grows in a soak: its curves, the slope of each behind the warm-up, and which must not climb."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from spark_pace_bench.drive import Driven
from spark_pace_bench.summary import Figures
from spark_pace_bench.trend import WARM_UP, Trend, trend_of
from tests.long.soak.looks import TABLES, Sample
from tests.long.soak.settings import Settings

MB = 1 << 20
_MEMORY = {"driver": "driver RSS", "jvm": "JVM RSS", "heap": "JVM heap in use", "workers": "workers RSS"}
_FILES = {
    "processes": "Python workers",
    **{f"{table} files": f"{table}, a file a batch until they are joined" for table in TABLES},
    **{f"{table} log": f"{table} log, cut when a day old" for table in TABLES},
    "checkpoint files": "checkpoint files, up and down",  # Spark deletes those of old batches once a minute
}


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


@dataclass(frozen=True)
class Curve:
    """What was measured over time.

    Attributes:
        name: of the curve.
        unit: of its values.
        seconds: since the first event.
        values: one for each.
        memory: it must not grow.
    """

    name: str
    unit: str
    seconds: list[float]
    values: list[Any]
    memory: bool = False


def curves(driven: Driven, figures: Figures, samples: Sequence[Sample]) -> Iterator[Curve]:
    """Every curve of a soak."""
    series = figures["series"]
    for name, unit in (("read", "records/s"), ("lag", "records"), ("end_to_end p50", "s")):
        yield Curve(name, unit, series["second"], series[name])
    rows = driven.watched.rows
    seconds = [row["committed"] - driven.began for row in rows]
    for name in ("seconds", "carry", "pending"):
        yield Curve(f"batch: {name}", "", seconds, [row[name] for row in rows])
    yield Curve("batch: state", "MB", seconds, [row["state_bytes"] / MB for row in rows])
    for key, name in {**_MEMORY, **_FILES, "checkpoint": "checkpoint size"}.items():
        known = [sample for sample in samples if key in sample]
        scale = 1 if key in _FILES else MB
        values = [sample[key] / scale for sample in known]
        unit = "" if key in _FILES else "MB"
        yield Curve(name, unit, [sample["second"] for sample in known], values, key in _MEMORY)


def judged_from(settings: Settings, figures: Figures) -> float:
    """The second from which on slopes are taken: behind warm-up and burst, if that is over in time."""
    burst, least = figures["burst"] or {"peak_ends": 0.0, "recovery_seconds": 0.0}, WARM_UP * settings.seconds
    recovery = settings.seconds if burst["recovery_seconds"] is None else burst["recovery_seconds"]
    return float(min(max(least, burst["peak_ends"] + recovery), 2 * least))


def trends_of(found: Sequence[Curve], begins: float) -> list[tuple[Curve, Trend]]:
    """The curves that are long enough, with their trends."""
    trends = [(curve, trend_of(curve.seconds, curve.values, begins)) for curve in found]
    return [(curve, trend) for curve, trend in trends if trend is not None]


def told(curve: Curve, trend: Trend) -> str:
    """A line of the table."""
    greatest = max(value for value in curve.values if value is not None)
    slope = "flat" if trend.flat else f"{trend.slope_per_hour:+,.4g} an hour"
    return f"{curve.name:44} {curve.unit:>10} {trend.level:12,.4g} {greatest:12,.4g}  {slope}"


def growing(trends: Sequence[tuple[Curve, Trend]], tolerance: Tolerance) -> list[str]:
    """A sentence for each memory that grows."""
    return [
        f"{curve.name} — must not grow; got {trend.slope_per_hour:+.0f} MB an hour at {trend.level:.0f} MB"
        for curve, trend in trends
        if curve.memory and grows(trend, tolerance)
    ]
