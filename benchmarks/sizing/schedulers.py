"""The schedulers of batches: round robin, fixed batches, by latest latencies, and by the latency model.

Sources: Mayer, Tariq, Rothermel 2017, sections 3.2, 4.2 and 4.3.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from benchmarks.sizing.batches import State
from benchmarks.sizing.latency import (
    Bins,
    Bools,
    Pairs,
    average_overlap,
    binned,
    compensation,
    dear_types,
    gains,
    latency_peak,
    paired,
    predicted_events,
    queue_peak,
)

_KINDS = 2


class RoundRobin:
    """Each window goes to the next instance."""

    def stays(self, state: State) -> bool:
        """Never."""
        return False


@dataclass
class FixedBatches:
    """So many windows in turn go to one instance."""

    windows: int
    _given: int = 1

    def stays(self, state: State) -> bool:
        """Until the batch is full."""
        self._given = self._given % self.windows + 1
        return self._given > 1


@dataclass(frozen=True)
class Reactive:
    """Windows go to one instance until it reports that an event took longer than the threshold."""

    threshold: float  # seconds

    def stays(self, state: State) -> bool:
        """While the latest report is not above the threshold."""
        return state.latency() <= self.threshold


@dataclass(frozen=True)
class Settings:
    """The settings of the model.

    Attributes:
        monitoring: seconds of the windows, one after another, in which the stream is measured (mtime).
        gap_bins: bins of inter-arrival times.
        gap_deviations: taken off inter-arrival times (δ_iat).
        latency_deviations: added to processing latencies (δ_λp).
        alpha: the share of positive gains that compensates; None: T-COUNT.
    """

    monitoring: float
    gap_bins: int
    gap_deviations: float
    latency_deviations: float = 0.0
    alpha: float | None = None


@dataclass(frozen=True)
class Monitored:
    """What was measured in a monitoring window.

    Attributes:
        latency: how long an event of each kind takes in one window; a bin for each kind.
        pairs: how these meet inter-arrival times.
        events: how many events a window has, as the model predicts it.
        shift: seconds between the starts of windows.
        scope: how long windows last, in seconds.
        alpha: the share of positive gains that compensates.
    """

    latency: Bins
    pairs: Pairs
    events: float
    shift: float
    scope: float
    alpha: float


@dataclass
class ModelBased:
    """Windows go to one instance until the model predicts a peak above the bound.

    As long as nothing is measured it deals round robin.
    """

    bound: float  # LB, seconds
    settings: Settings
    predicted: list[float] = field(default_factory=list)  # the peak for each decision since it is measured
    _measured_at: float = 0.0
    _monitored: Monitored | None = None

    def stays(self, state: State) -> bool:
        """Tell whether the prediction is within the bound."""
        since = state.time // self.settings.monitoring * self.settings.monitoring
        if since > self._measured_at:
            self._measured_at = since
            self._monitored = monitor(state, since, self.settings) or self._monitored
        if self._monitored is None:
            return False
        self.predicted.append(predict(state, self._monitored))
        return self.predicted[-1] <= self.bound


def monitor(state: State, until: float, settings: Settings) -> Monitored | None:
    """What was measured in the monitoring window that ended then; None if some of it is missing."""
    stream = state.workload
    first, last = np.searchsorted(stream.time[: state.row], [until - settings.monitoring, until])
    starts = stream.time[stream.opening[(stream.opening >= first) & (stream.opening < last)]]
    closed = np.flatnonzero((stream.end < until) & (stream.opening < last))[-len(starts) - 1 :]
    if last - first < _KINDS + 1 or len(starts) < 2:
        return None
    kind = stream.kind[first:last]
    done = state.finish[first:last] <= until
    known = [done & (kind == one)[:, np.newaxis] for one in range(_KINDS)]
    if not all(one.any() for one in known):
        return None
    latencies = [_in_one_window(state, slice(first, last), one) for one in known]
    biased = np.array([mean + settings.latency_deviations * deviation for mean, deviation in latencies])
    latency = Bins(biased, np.bincount(kind, minlength=_KINDS) / len(kind))
    gaps = np.diff(stream.time[first:last])
    dear = dear_types([mean for mean, _ in latencies])
    alpha = compensation(dear[kind]) if settings.alpha is None else settings.alpha
    begun = stream.time[stream.opening]
    # before the first window has closed, they last as long as the oldest that is open, at least
    scope = float((stream.end - begun)[closed].mean()) if len(closed) else until - float(begun[0])
    events = predicted_events(scope, gaps, settings.gap_deviations)
    pairs = paired(latency, binned(gaps, settings.gap_bins, -settings.gap_deviations))
    return Monitored(latency, pairs, events, float(np.diff(starts).mean()), scope, alpha)


def _in_one_window(state: State, rows: slice, known: Bools) -> tuple[float, float]:
    """Mean and standard deviation of the latencies of events in one window (λ_p^w).

    Args:
        state: the state.
        rows: the rows that are monitored.
        known: bool[r, c], the events and instances to look at.
    """
    windows = state.overlap[rows][known].sum()
    mean = float(state.processing[rows][known].sum() / windows)
    square = float(state.squares[rows][known].sum() / windows)
    return mean, max(square - mean**2, 0.0) ** 0.5


def predict(state: State, monitored: Monitored) -> float:
    """The peak latency in the instance that has the window before, if the new one joins its windows."""
    overlap = average_overlap(monitored.scope, monitored.shift, int(state.open[state.instance]) + 1)
    negative, positive = gains(monitored.pairs, overlap, monitored.events)
    queued = slice(state.done(), state.row)
    alone = monitored.latency.mean[state.workload.kind[queued]]
    initial = float(state.overlap[queued, state.instance] @ alone)
    waits = queue_peak(initial, negative, positive, monitored.alpha)
    return latency_peak(waits, monitored.latency, overlap)
