"""From an event's production to its match in the table: matches' event times and commit times of Delta's log.

The soak's event time is the clock's at production. A match's `matched_at` is the time of the event, or of the
window's end, that completes it. Readers see it once the commit with its row is there. The job's `delay` is
part of that time.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from spark_pace_bench.delta_log import commits

PERCENTILES = (50, 95, 99)


def latencies(table: Path) -> pa.Table:
    """Every match in the log: `rule`, `committed` (seconds since 1970) and `latency` (seconds)."""
    parts = [_of_file(path, commit.committed) for commit in commits(table) for path in commit.files]
    schema = pa.schema([("rule", pa.string()), ("committed", pa.float64()), ("latency", pa.float64())])
    return pa.concat_tables([schema.empty_table(), *parts])


def _of_file(path: Path, committed: float) -> pa.Table:
    rows = pq.read_table(path, columns=["rule", "matched_at"], partitioning=None)
    matched = pc.divide(pc.cast(rows["matched_at"].cast(pa.int64()), pa.float64()), 1e6)
    times = pa.repeat(pa.scalar(committed), rows.num_rows)
    return pa.table(
        {
            "rule": rows["rule"].cast(pa.string()),
            "committed": times,
            "latency": pc.subtract(committed, matched),
        }
    )


def over_time(found: pa.Table, every_seconds: float) -> dict[str, list[float]]:
    """Percentiles of the matches committed in each stretch of time: `time`, `p50`, `p95` and `p99`.

    `time` is when the stretch begins, in seconds since 1970.
    """
    curves: dict[str, list[float]] = {"time": [], **{f"p{percent}": [] for percent in PERCENTILES}}
    stretch = pc.floor(pc.divide(found["committed"], every_seconds))
    for number in sorted(pc.unique(stretch).to_pylist()):
        latency = found["latency"].filter(pc.equal(stretch, number))
        curves["time"].append(number * every_seconds)
        for percent, value in percentiles(latency).items():
            curves[percent].append(value)
    return curves


def percentiles(latency: pa.ChunkedArray) -> dict[str, float]:
    """Of all values: `p50`, `p95`, `p99`."""
    values = pc.quantile(latency, [percent / 100 for percent in PERCENTILES]).to_pylist()
    return {f"p{percent}": value for percent, value in zip(PERCENTILES, values, strict=True)}
