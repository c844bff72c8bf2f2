"""The curves of a soak: what was measured over time, in which unit, and why it may rise where it may."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from spark_pace import read_table
from tests.long.soak.job import HEAP_FILE
from tests.long.soak.latency import latencies, over_time
from tests.long.soak.sampler import TABLES, Sample, Watched
from tests.long.soak.settings import Settings

MB = 1 << 20
LATENCY_SECONDS = 10.0  # the stretches of the latency's percentiles
_FILES = "a file a batch, until OPTIMIZE joins them"
_STATE = "up and down: Spark deletes what is older than ten batches once a minute"
_LOG = "an entry a batch, cut when a day old"


@dataclass(frozen=True)
class Series:
    """One curve.

    Attributes:
        plot: the plot it is in.
        name: of the curve.
        unit: of its values.
        seconds: since the first event.
        values: one for each.
        reason: why it rises, if it does; empty where it should not.
        memory: it must not grow.
    """

    plot: str
    name: str
    unit: str
    seconds: list[float]
    values: list[float]
    reason: str = ""
    memory: bool = False


def all_series(settings: Settings, watched: Watched) -> list[Series]:
    """Every curve of a soak."""
    began, batches = watched.began, watched.batches.values()
    return [
        *_of_metrics(settings, began),
        *_of_latency(settings, began),
        _series(
            "Batch",
            "duration",
            "s",
            [start - began for start, _ in batches],
            [end - start for start, end in batches],
        ),
        *_of_samples(began, watched.samples),
        *_of_heap(settings, began),
    ]


def _series(
    plot: str,
    name: str,
    unit: str,
    seconds: Sequence[float],
    values: Sequence[float],
    reason: str = "",
    *,
    memory: bool = False,
) -> Series:
    return Series(plot, name, unit, [round(second, 3) for second in seconds], list(values), reason, memory)


def _of_metrics(settings: Settings, began: float) -> list[Series]:
    metrics = read_table(settings.tables, "metrics").sort_by("batch_id").to_pylist()
    running = [row for row in metrics if row["written_at"].timestamp() - began <= settings.seconds]
    seconds = [row["written_at"].timestamp() - began for row in running]
    apart = [after - before for before, after in pairwise(seconds)]
    rates = [row["records"] / gap for row, gap in zip(running[1:], apart, strict=True)]
    return [
        _series("Throughput", "records", "records/s", seconds[1:], rates),
        *(
            _series("Kept events", name, "events", seconds, [row[name] for row in running])
            for name in ("carry", "pending")
        ),
        _series("State", "state", "MB", seconds, [row["state_bytes"] / MB for row in running]),
    ]


def _of_latency(settings: Settings, began: float) -> list[Series]:
    curves = over_time(latencies(settings.tables / "matches"), LATENCY_SECONDS)
    seconds = [time - began for time in curves.pop("time")]
    kept = [place for place, second in enumerate(seconds) if second <= settings.seconds]
    return [
        _series("Latency", name, "s", [seconds[place] for place in kept], [values[place] for place in kept])
        for name, values in curves.items()
    ]


def _of_samples(began: float, samples: Sequence[Sample]) -> list[Series]:
    def of(
        plot: str, name: str, unit: str, key: str, scale: int = 1, reason: str = "", *, memory: bool = False
    ) -> Series:
        known = [sample for sample in samples if sample[key] is not None]
        values = [sample[key] / scale for sample in known]
        return _series(
            plot, name, unit, [sample["time"] - began for sample in known], values, reason, memory=memory
        )

    return [
        of("Lag", "lag", "records", "lag"),
        *(
            of("Memory", f"{name} RSS", "MB", f"{name}_rss", MB, memory=True)
            for name in ("driver", "jvm", "workers")
        ),
        of("Processes", "workers", "processes", "workers"),
        *(of("Files of the tables", table, "files", f"{table}_files", reason=_FILES) for table in TABLES),
        *(of("Logs of the tables", table, "files", f"{table}_log", reason=_LOG) for table in TABLES),
        of("Files of the checkpoint", "checkpoint", "files", "checkpoint_files", reason=_STATE),
        of("Size of the checkpoint", "checkpoint size", "MB", "checkpoint_bytes", MB, _STATE),
    ]


def _of_heap(settings: Settings, began: float) -> list[Series]:
    path = settings.out / HEAP_FILE
    looks: list[dict[str, Any]] = (
        [json.loads(line) for line in path.read_text(encoding="ascii").splitlines()] if path.exists() else []
    )
    seconds, values = [look["time"] - began for look in looks], [look["heap_bytes"] / MB for look in looks]
    return [_series("Memory", "JVM heap in use", "MB", seconds, values, memory=True)]
