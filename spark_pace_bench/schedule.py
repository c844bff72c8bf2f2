"""When events are due: times of phases with constant, rising or falling rates, evenly or by chance.

The events up to second t of a phase are Λ(t) = r₀ t + (r₁ - r₀) t² / 2T. Evenly, event k is due where Λ is k;
a Poisson process has its events where Λ is the sum of k exponential distances of mean 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from spark_pace_bench.spec import Phase

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Schedule:
    """The events of a run.

    Attributes:
        due: float64[n], seconds since the begin, ascending.
        phase: int64[n], the number of the phase.
    """

    due: Floats
    phase: Ints


def schedule(phases: Sequence[Phase], seed: int) -> Schedule:
    """The times of all events; the same for the same seed."""
    begins = np.cumsum([0.0, *(phase.seconds for phase in phases)])
    parts = [
        begins[number] + _times(phase, np.random.default_rng([seed, number]))
        for number, phase in enumerate(phases)
    ]
    numbers = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    return Schedule(np.concatenate(parts), numbers)


def _times(phase: Phase, random: np.random.Generator) -> Floats:
    first, last = phase.rate
    total = phase.seconds * (first + last) / 2
    if phase.arrivals == "constant":
        counts = np.arange(np.floor(total + 1e-9))  # the rates are decimal, so the total may miss by a little
    else:
        # enough for all but one of a billion runs; what lies behind the end is cut
        many = int(total + 6 * np.sqrt(total) + 20)
        counts = np.cumsum(random.exponential(size=many))
        counts = counts[counts < total]
    root = np.sqrt(first**2 + 2 * counts * (last - first) / phase.seconds)
    times: Floats = np.divide(2 * counts, first + root, out=np.zeros(len(counts)), where=counts > 0)
    return times
