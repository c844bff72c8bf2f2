"""Predicts the peak latency in an instance if one more window joins the batch of windows that it has.

Times are of one unit throughout. A gain of an event is how much longer it takes than the next event takes to
come: a negative gain (a number above 0) makes the queue longer, a positive one (below 0) shorter.

Sources: Mayer, Tariq, Rothermel 2017, section 4 (figures 6, 8, 9). Where the paper leaves a case open, a
docstring says what is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Bins:
    """A distribution of values: bins that hold some.

    Attributes:
        mean: float64[k], what is expected of the values in each bin.
        weight: float64[k], the share of the values that it holds.
    """

    mean: Floats
    weight: Floats

    @property
    def average(self) -> float:
        """The mean over all bins."""
        return float(self.mean @ self.weight)


def binned(values: Floats, bins: int, deviations: float) -> Bins:
    """Sort values into bins.

    Args:
        values: float64[n], at least one.
        bins: how many bins of equal width the range of the values is cut into.
        deviations: so many standard deviations of all values are added to each mean, so that the prediction
            is pessimistic: above 0 for latencies, below 0 for inter-arrival times. No mean falls below 0.
    """
    low, high = float(values.min()), float(values.max())
    width = (high - low) / bins
    place = np.zeros(len(values), np.int64)
    if width > 0:
        place = np.minimum((values - low) // width, bins - 1).astype(np.int64)
    count = np.bincount(place, minlength=bins)
    there = count > 0
    count = count[there]
    mean = np.bincount(place, values, bins)[there] / count
    return Bins(np.maximum(mean + deviations * float(values.std()), 0), count / len(values))


def average_overlap(scope: float, shift: float, overlap: int) -> float:
    """In how many windows of the batch an event of the new window is, on average (Θ̄).

    Args:
        scope: how long a window lasts (ws).
        shift: from one window's start to the next one's (Δ).
        overlap: how many windows of the batch are open once the new one is (Θ̂).

    The oldest window cannot have been open for longer than a window lasts; measured values may say so, for
    windows are not equal. Then it is taken to close now.
    """
    closing = min((overlap - 1) * shift, scope)
    return ((scope - closing) * overlap + closing * overlap / 2) / scope


def predicted_events(scope: float, gaps: Floats, deviations: float) -> float:
    """How many events the new window will have (n).

    Args:
        scope: how long a window lasts.
        gaps: float64[n], measured inter-arrival times, at least one.
        deviations: so many standard deviations are taken off their mean (δ_iat).

    Where this leaves less than a quarter of the mean, a quarter is taken: the paper leaves open what to do
    with a mean at or below 0, which bursts have. (0.75 deviations off an exponential mean leave a quarter.)
    """
    mean = float(gaps.mean())
    return scope / max(mean - deviations * float(gaps.std()), mean / 4)


@dataclass(frozen=True)
class Pairs:
    """Which latencies meet which inter-arrival times: predictGains up to the overlap.

    Attributes:
        share: float64[s], the shares of the events, which sum to 1.
        latency: float64[s], how long an event of each share takes in one window.
        gap: float64[s], how long after it the next one comes.
    """

    share: Floats
    latency: Floats
    gap: Floats


def paired(latency: Bins, gap: Bins) -> Pairs:
    """Pair latencies with inter-arrival times: the most expensive events come in the shortest distances.

    Args:
        latency: how long events of all types take in one window.
        gap: inter-arrival times, ascending.
    """
    dearest = np.argsort(-latency.mean, kind="stable")
    ends_latency, ends_gap = np.cumsum(latency.weight[dearest]), np.cumsum(gap.weight)
    ends_latency[-1] = ends_gap[-1] = 1.0
    ends = np.union1d(ends_latency, ends_gap)
    took = latency.mean[dearest][np.searchsorted(ends_latency, ends)]
    return Pairs(np.diff(ends, prepend=0.0), took, gap.mean[np.searchsorted(ends_gap, ends)])


def gains(pairs: Pairs, overlap: float, events: float) -> tuple[float, float]:
    """The sums of negative and of positive gains of a window's events (Γ⁻, Γ⁺).

    Args:
        pairs: what `paired` gives.
        overlap: in how many windows an event is, on average.
        events: how many events there are.
    """
    gain = events * pairs.share * (overlap * pairs.latency - pairs.gap)
    return float(gain[gain > 0].sum()), float(gain[gain <= 0].sum())


def of_all_types(types: Sequence[tuple[float, Bins]]) -> Bins:
    """The latencies of events of all types in one window, of each its share and its own latencies."""
    means = [latency.mean for _, latency in types]
    weights = [share * latency.weight for share, latency in types]
    return Bins(np.concatenate(means), np.concatenate(weights))


def compensation(dear: Bools) -> float:
    """How much of the positive gains comes in between negative ones: T-COUNT (α).

    Args:
        dear: bool[n], of the monitored events in order, whether each is of a dear type.

    It is 0 where no events of one kind came, which the paper leaves open, and 1 at most.
    """
    fewer = int(min(dear.sum(), (~dear).sum()))
    transitions = int((dear[1:] != dear[:-1]).sum())
    return min(max((transitions - 1) / (2 * fewer), 0.0), 1.0) if fewer else 0.0


def dear_types(latencies: Sequence[float]) -> Bools:
    """bool[t], which types are in the half that takes longer; of an odd number the smaller half."""
    dear = np.zeros(len(latencies), np.bool_)
    dear[np.argsort(latencies, kind="stable")[(len(latencies) + 1) // 2 :]] = True
    return dear


def queue_peak(initial: float, negative: float, positive: float, alpha: float) -> float:
    """The longest wait in the queue: λq_init + Γ⁻ + α Γ⁺, and no less than what waits already."""
    return initial + max(negative + alpha * positive, 0.0)


def latency_peak(queued: float, latency: Bins, overlap: float) -> float:
    """The greatest operational latency: the longest wait, and then the event that takes longest.

    Args:
        queued: the longest wait.
        latency: how long events of all types take in one window.
        overlap: in how many windows an event is, on average.
    """
    return queued + overlap * float(latency.mean.max())
