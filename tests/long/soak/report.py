"""The report of a soak: numbers, trends and curves as JSON, and a table of text."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pyarrow as pa

from spark_pace.errors import counted
from spark_pace_bench.trend import WARM_UP, Trend, trend_of
from tests.long.soak.check import Account
from tests.long.soak.latency import latencies, percentiles
from tests.long.soak.sampler import Watched
from tests.long.soak.series import Series, all_series
from tests.long.soak.settings import Settings
from tests.long.soak.tolerance import Tolerance, grows

Result = dict[str, Any]


def summarize(settings: Settings, account: Account, watched: Watched, tolerance: Tolerance) -> Result:
    """Everything the reports show; `grows` has a sentence for each memory that grows."""
    series = all_series(settings, watched)
    burst = _burst(settings, {curve.name: curve for curve in series})
    # memory is judged even where the job never gets over the burst
    judged_from = min(
        max(WARM_UP * settings.seconds, burst.get("back_after_second", 0.0)), 2 * WARM_UP * settings.seconds
    )
    trends = [(curve, trend_of(curve.seconds, curve.values, judged_from)) for curve in series]
    return {
        "settings": {**asdict(settings), "out": str(settings.out)},
        "account": asdict(account),
        "judged_from_second": judged_from,
        "trends": [_row(curve, trend) for curve, trend in trends if trend is not None],
        "grows": [
            f"{curve.name} — must not grow; "
            f"got {trend.slope_per_hour:+.0f} MB an hour at {trend.level:.0f} MB"
            for curve, trend in trends
            if curve.memory and trend is not None and grows(trend, tolerance)
        ],
        "latency_by_rule": _latency_by_rule(
            settings, watched.began + judged_from, watched.began + settings.seconds
        ),
        "burst": burst,
        "series": [asdict(curve) for curve in series],
    }


def _row(curve: Series, trend: Trend) -> dict[str, Any]:
    verdict = (
        "flat"
        if trend.flat
        else f"{trend.slope_per_hour:+,.4g} {curve.unit} an hour"
        + (f": {curve.reason}" if curve.reason else "")
    )
    name = curve.name if curve.plot.lower().startswith(curve.name) else f"{curve.plot}: {curve.name}"
    greatest = max(curve.values)
    return {
        "name": name,
        "unit": curve.unit,
        "median": trend.level,
        "greatest": greatest,
        "slope_per_hour": trend.slope_per_hour,
        "verdict": verdict,
    }


def _burst(settings: Settings, series: dict[str, Series]) -> dict[str, float]:
    """How far the burst threw the job back, and when it was over; empty without a burst."""
    begins, ends = settings.burst_seconds
    lag, p95 = series["lag"], series["p95"]
    before = _between(lag, begins / 2, begins)
    if begins == ends or not before:
        return {}
    usual = max(before)
    calm = [
        second
        for second, value in zip(lag.seconds, lag.values, strict=True)
        if second > ends and value <= usual
    ]
    back = calm[0] if calm else settings.seconds
    found = {
        "begins_second": begins,
        "ends_second": ends,
        "lag_before": usual,
        "lag_most": max(_between(lag, begins, settings.seconds), default=usual),
    }
    found["back_after_second"] = back
    for name, curve in (
        ("before", _between(p95, begins / 2, begins)),
        ("after", _between(p95, back + 10, settings.seconds)),
    ):
        if curve:
            found[f"latency_p95_{name}"] = sorted(curve)[len(curve) // 2]
    return found


def _between(curve: Series, begins: float, ends: float) -> list[float]:
    return [
        value for second, value in zip(curve.seconds, curve.values, strict=True) if begins <= second < ends
    ]


def _latency_by_rule(settings: Settings, begins: float, ends: float) -> dict[str, dict[str, float]]:
    found = latencies(settings.tables / "matches").to_pandas()
    found = found[(found["committed"] >= begins) & (found["committed"] < ends)]
    by_rule = {str(rule): group["latency"] for rule, group in found.groupby("rule")}
    return {
        rule: {**percentiles(pa.chunked_array([pa.array(latency)])), "matches": len(latency)}
        for rule, latency in sorted(by_rule.items())
    }


def as_text(result: Result) -> str:
    """The same numbers for a terminal."""
    account = result["account"]
    lines = [
        f"produced {account['produced']:,} = {counted(account['events'], 'event')} + {account['late']:,} late"
        f" + {account['bad']:,} bad; "
        f"{counted(account['matches'], 'match')}; differences: {len(account['differences'])}",
        f"{'':36} {'median':>12} {'greatest':>12}  median and trend after second "
        f"{result['judged_from_second']:.0f}, greatest of all",
    ]
    lines += [
        f"{row['name']:36} {row['median']:12,.4g} {row['greatest']:12,.4g}  {row['verdict']}"
        for row in result["trends"]
    ]
    for rule, latency in result["latency_by_rule"].items():
        lines.append(
            f"latency of {rule}: p50 {latency['p50']:.2f} s, p95 {latency['p95']:.2f} s, "
            f"p99 {latency['p99']:.2f} s over {counted(latency['matches'], 'match')}"
        )
    if result["burst"]:
        lines.append(
            "burst: "
            + ", ".join(f"{name.replace('_', ' ')} {value:,.1f}" for name, value in result["burst"].items())
        )
    return "\n".join(lines)
