"""The figures of a run, as JSON has them: by phase, over all that was measured, over time, and of a burst."""

from __future__ import annotations

import os
from datetime import datetime, timezone
from typing import Any

import numpy as np
import numpy.typing as npt

from spark_pace.errors import counted
from spark_pace.job_file import KafkaSource
from spark_pace_bench.drive import Driven
from spark_pace_bench.latency import KINDS, percentiles
from spark_pace_bench.schedule import Floats
from spark_pace_bench.spec import Phase
from spark_pace_bench.trend import trend_of
from spark_pace_bench.watch import worked

SLACK_SECONDS = 0.1  # a record that goes later than this (and than files come) counts as sent late
FALLS_BEHIND = 0.1  # a job whose lag grows by more than this share of the rate is saturated
_FEWEST_BATCHES = 3  # that make a trend
_BINS_A_DECADE = 12

Figures = dict[str, Any]
Bools = npt.NDArray[np.bool_]


def summarize(driven: Driven) -> Figures:
    """Everything that the reports show; times are seconds since the first event of the schedule."""
    run, found = driven.run, driven.latencies
    bounds = np.cumsum([0.0, *(phase.seconds for phase in run.phases)]) + driven.began
    phases = [_phase(driven, number, bounds) for number in range(len(run.phases))]
    roles = np.array([phase.role for phase in run.phases])
    measured = (found.phase >= 0) & (roles[np.clip(found.phase, 0, None)] != "warm_up")
    rules = sorted({rule for rule, counts in zip(found.rule, measured, strict=True) if counts})
    of_rule = np.array(found.rule, object)
    return {
        "name": run.name,
        "variant": run.variant,
        "job": str(run.job_file),
        "rules": len(run.rules or run.job.rules) * run.copies,
        "seed": run.seed,
        "began": datetime.fromtimestamp(driven.began, timezone.utc).isoformat(timespec="seconds"),
        "cores": os.cpu_count(),
        "delay_seconds": run.job.events.order.delay_us / 1e6,
        "phases": phases,
        "measured": _latencies(driven, measured),
        "by_rule": {rule: _latencies(driven, measured & (of_rule == rule)) for rule in rules},
        "matches": driven.matches,
        "expected": driven.expected,
        "at_the_end": driven.matches - len(found.rule),
        "differences": driven.differences,
        "unread": max(0, len(driven.sent.at) - int(np.isnan(driven.sent.at).sum()) - driven.watched.records),
        "burst": _burst(driven, bounds),
        "histogram": _histogram(driven, measured),
        "series": series(driven),
        "saturation": _saturation(run.phases, phases),
        "notes": _notes(phases),
    }


def _latencies(driven: Driven, which: Bools) -> Figures:
    return {
        "matches": int(which.sum()),
        **{kind: percentiles(driven.latencies.seconds[kind][which]) for kind in KINDS},
    }


def _phase(driven: Driven, number: int, bounds: Floats) -> Figures:
    phase, sent = driven.run.phases[number], driven.sent
    begin, end = bounds[number : number + 2]
    own = sent.phase == number
    late = sent.at[own] - sent.due[own]
    gone = ~np.isnan(late)
    batches = [row for row in driven.watched.rows if begin <= row["committed"] < end]
    lag = [lag_at(driven, row["committed"]) for row in batches]
    trend = trend_of([row["committed"] for row in batches], lag, begin)
    rate = own.sum() / phase.seconds
    slope = None if trend is None else trend.slope_per_hour / 3600
    cores = worked(driven.watched.samples, begin, end)
    matches = driven.latencies.phase == number
    return {
        "name": phase.name,
        "role": phase.role,
        "begins": float(begin - driven.began),
        "seconds": phase.seconds,
        "arrivals": phase.arrivals,
        "events": int(own.sum()),
        "rate": float(rate),
        "sent_per_second": _sent_in(driven, begin, end) / phase.seconds,
        "sent_late": int((late[gone] > SLACK_SECONDS + _tick(driven)).sum()),
        "unsent": int((~gone).sum()),
        "latest_send": float(late[gone].max()) if gone.any() else 0.0,
        "read_per_second": sum(row["records"] for row in batches) / phase.seconds,
        "batches": len(batches),
        "lag_most": max(lag, default=None),
        "lag_slope": slope,
        "falls_behind": slope is not None and bool(slope > FALLS_BEHIND * rate),
        "cores": cores,
        **_latencies(driven, matches),
        "matches_per_second": int(matches.sum()) / phase.seconds,
    }


def _tick(driven: Driven) -> float:
    """How late a record may be because files come only every few tenths of a second."""
    return 0.0 if isinstance(driven.run.job.source, KafkaSource) else driven.run.file_seconds


def _sent_in(driven: Driven, begin: float, end: float) -> int:
    return int(((driven.sent.at >= begin) & (driven.sent.at < end)).sum())


def lag_at(driven: Driven, second: float) -> int:
    """The records that were sent by a time but are in no batch that is done by then."""
    read = sum(row["records"] for row in driven.watched.rows if row["committed"] <= second)
    return int((driven.sent.at <= second).sum()) - int(read)


def _notes(phases: list[Figures]) -> list[str]:
    """What the figures do not tell, in sentences."""
    return [
        f"phase {phase['name']}: {counted(phase['batches'], 'batch')} ended in it, too few to tell whether "
        "the job keeps up; lengthen the phase, or lower the rate"
        for phase in phases
        if phase["role"] == "steady" and phase["batches"] < _FEWEST_BATCHES
    ]


def _saturation(phases: tuple[Phase, ...], figures: list[Figures]) -> list[str]:
    """What was too much, in sentences: for the driver, and for the job."""
    told = []
    for phase, found in zip(phases, figures, strict=True):
        if found["sent_late"] or found["unsent"]:
            share = (found["sent_late"] + found["unsent"]) / max(1, found["events"])
            told.append(
                f"driver, phase {phase.name}: {share:.1%} of the events were sent late, the latest by "
                f"{found['latest_send']:.2f} s, and {found['unsent']:,} not at all; latencies from the "
                "scheduled time count this, those from sending do not"
            )
        if found["falls_behind"] and phase.role != "peak":
            told.append(
                f"job, phase {phase.name}: its lag grew by {found['lag_slope']:,.0f} records a second, "
                f"of {found['rate']:,.0f} that came; this rate is more than it can read"
            )
    return told


def _histogram(driven: Driven, which: Bools) -> Figures:
    """How many matches took how long: bins of equal width on a logarithmic scale, the same for all kinds."""
    kinds = {kind: values[which] for kind, values in driven.latencies.seconds.items()}
    kinds = {kind: values[values > 0] for kind, values in kinds.items()}
    everything = np.concatenate(list(kinds.values()))
    if not len(everything):
        return {}
    least, greatest = np.log10([everything.min(), everything.max()]) * _BINS_A_DECADE
    edges = 10 ** (np.arange(np.floor(least), np.floor(greatest) + 2) / _BINS_A_DECADE)
    counts = {kind: np.histogram(values, edges)[0].tolist() for kind, values in kinds.items()}
    return {"edges": edges.tolist(), **counts}


def series(driven: Driven) -> Figures:
    """Curves over time: a value for each second of the run, None where there is none."""
    found, sent, watched = driven.latencies, driven.sent, driven.watched
    seconds = np.arange(max(1, int(np.ceil(driven.stopped - driven.began))))
    times: Floats = driven.began + seconds.astype(np.float64)
    curves: dict[str, list[float | None]] = {
        "due": _counted(sent.due[sent.phase >= 0], times),
        "sent": _counted(sent.at[sent.phase >= 0], times),
        "matches": _counted(found.committed, times),
        "lag": [float(lag_at(driven, time)) for time in times],
        "read": _read(driven, times),
        "rss": _sampled([sample["time"] for sample in watched.samples], watched.samples, times),
        "cores": [worked(watched.samples, time - 1.5, time + 1.5) for time in times],
    }
    place = np.floor(found.due - driven.began)
    for kind in KINDS:
        for percent in (50, 99):
            curves[f"{kind} p{percent}"] = [
                percentiles(found.seconds[kind][place == second]).get(f"p{percent}") for second in seconds
            ]
    return {"second": seconds.tolist(), **curves}


def _counted(values: Floats, times: Floats) -> list[float | None]:
    """How many values are in the second that begins at each of `times`."""
    counts = np.histogram(values[~np.isnan(values)], np.append(times, times[-1] + 1))[0]
    return [float(count) for count in counts]


def _read(driven: Driven, times: Floats) -> list[float | None]:
    """Records a second that the job read: each batch's, spread over the time since the batch before."""
    rows = sorted(driven.watched.rows, key=lambda row: row["committed"])
    ends = np.array([row["committed"] for row in rows])
    total = np.cumsum([row["records"] for row in rows])
    after = np.interp(np.append(times, times[-1] + 1), ends, total)
    return [float(count) for count in np.diff(after)]


def _sampled(at: list[float], samples: list[dict[str, float]], times: Floats) -> list[float | None]:
    values = [sample["rss"] for sample in samples]
    return [float(value) for value in np.interp(times, at, values)]


def _burst(driven: Driven, bounds: Floats) -> dict[str, Any] | None:
    """The figures of the run's first peak; None without one, or without matches before or in it.

    They are those of Mendes 2013, section 4.5.5, from latencies against the scheduled time. A batch shows all
    its matches at once, and those that came just before it began are quick even where the job lags; so
    recovery is told by the mean over the matches of a batch, where the thesis looks at one output.

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
