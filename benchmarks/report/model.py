"""How a batch grows: for each stage, seconds = fixed + per event + per carried event + per match.

Fitted by least squares to the rows of the measurement `growth`. Each point counts by its relative error, so
that small batches say as much as large ones. No cost is negative: where one would be, it is 0 and the others
are fitted anew.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from benchmarks.rows import Row

TERMS = ("fixed", "per event", "per carried event", "per match")
POINT = re.compile(r"([\d,]+) events, ([\d,]+) carried, ([\d,]+) matches")
LEAST_SECONDS = 1e-4  # a time below this is as good as none
# the stages that executors share; the others run in one place, one after the other
SHARED = ("read", "intake", "operators")

Floats = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


@dataclass(frozen=True)
class Fit:
    """The model of one stage.

    Attributes:
        costs: seconds, of each of `TERMS`.
        residual: the root of the mean square of the relative errors.
        worst: the greatest relative error.
        points: how many there were.
    """

    costs: tuple[float, ...]
    residual: float
    worst: float
    points: int

    def seconds(self, events: float, carried: float, matches: float) -> float:
        """What the stage takes for such a batch."""
        return float(np.dot(self.costs, (1.0, events, carried, matches)))


def fits(rows: Iterable[Row]) -> dict[str, Fit]:
    """The model of each stage, by name."""
    points: dict[str, list[tuple[tuple[float, ...], float]]] = {}
    for row in rows:
        found = POINT.search(row.case) if row.measurement == "growth" else None
        if found and row.value:  # there is no append without matches
            sizes = tuple(float(text.replace(",", "")) for text in found.groups())
            points.setdefault(row.case.partition("; ")[0], []).append((sizes, row.value))
    return {stage: fit(*map(np.array, zip(*of, strict=True))) for stage, of in points.items()}


def fit(sizes: Floats, seconds: Floats) -> Fit:
    """The costs that fit best.

    Args:
        sizes: float64[n, 3]: events, carried events and matches of each batch.
        seconds: float64[n].
    """
    weights = 1 / np.maximum(seconds, LEAST_SECONDS)
    terms = np.column_stack([np.ones(len(seconds)), sizes]) * weights[:, None]
    kept = np.flatnonzero(terms.any(axis=0))
    costs = np.zeros(len(TERMS))
    while len(kept):
        solved = np.linalg.lstsq(terms[:, kept], seconds * weights, rcond=None)[0]
        if (solved >= 0).all():
            costs[kept] = solved
            break
        kept = np.delete(kept, np.argmin(solved * terms[:, kept].mean(axis=0)))
    errors = np.abs(terms @ costs - seconds * weights)
    return Fit(tuple(costs.tolist()), float(np.sqrt(np.mean(errors**2))), float(errors.max()), len(seconds))


def computed(
    models: Mapping[str, Fit], batch: tuple[float, float, float], executors: int, fixed: float
) -> float:
    """Seconds of a batch on so many executors of one core each, as computed.

    Args:
        models: of each stage.
        batch: its events, carried events and matches.
        executors: that share the stages of `SHARED` evenly; the other stages do not get quicker.
        fixed: what Spark takes for a batch without events, in seconds.
    """
    shares = (
        model.seconds(*batch) / (executors if stage in SHARED else 1) for stage, model in models.items()
    )
    return fixed + sum(shares)
