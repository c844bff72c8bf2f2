"""How a batch grows: for each stage, seconds = fixed + per event + per carried event + per match.

The bytes that a cluster moves for a batch grow in the same terms.

Fitted by least squares to the rows of the measurement `growth`. Each point counts by its relative error, so
that small batches say as much as large ones. No cost is negative: where one would be, it is 0 and the others
are fitted anew.
"""

from __future__ import annotations

import math
import re
from collections import Counter
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
        costs: seconds, or bytes, of each of `TERMS`.
        residual: the root of the mean square of the relative errors.
        worst: the greatest relative error.
        points: how many there were.
    """

    costs: tuple[float, ...]
    residual: float
    worst: float
    points: int

    def of(self, events: float, carried: float, matches: float) -> float:
        """The seconds that the stage takes for such a batch, or the bytes."""
        return float(np.dot(self.costs, (1.0, events, carried, matches)))


@dataclass(frozen=True)
class Place:
    """Where executors of one core each run, each on a machine of its own.

    Attributes:
        executors: how many.
        network: bytes a second of a machine.
        store: bytes a second that one process writes to the store or to the file system.
        waits: seconds that a batch waits for answers of the store, one after the other.
        per_task: seconds of the driver to schedule a task.
        is_packed: whether the state's chunks are packed, as in a store.
    """

    executors: int
    network: float = math.inf
    store: float = math.inf
    waits: float = 0
    per_task: float = 0
    is_packed: bool = False


def fits(rows: Iterable[Row], unit: str = "s") -> dict[str, Fit]:
    """The model of each stage, by name; with the unit ``bytes``, of what is moved."""
    points: dict[str, list[tuple[tuple[float, ...], float]]] = {}
    for row in rows:
        found = POINT.search(row.case) if (row.measurement, row.unit) == ("growth", unit) else None
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
    """Seconds of a batch on so many executors of one core each, as computed, without what lies between them.

    Args:
        models: of each stage.
        batch: its events, carried events and matches.
        executors: that share the stages of `SHARED` evenly; the other stages do not get quicker.
        fixed: what Spark takes for a batch without events, in seconds.
    """
    return fixed + sum(of_stages(models, batch, executors).values())


def of_stages(
    models: Mapping[str, Fit], batch: tuple[float, float, float], executors: int
) -> dict[str, float]:
    """Seconds of each stage of a batch, by name; see `computed`."""
    return {
        stage: model.of(*batch) / (executors if stage in SHARED else 1) for stage, model in models.items()
    }


def between(moved: Mapping[str, Fit], batch: tuple[float, float, float], place: Place) -> dict[str, float]:
    """Seconds that a batch takes between machines, as computed.

    The file is read by all executors at once. Frames all go to the machine of the splitter, lanes all leave
    it, and results all go to the driver: one machine's network takes each of these. The splitter writes its
    state by itself, and the driver the table. There are two stages with a task for each executor: intake and
    operators.

    Args:
        moved: the bytes, as `fits` gives them.
        batch: its events, carried events and matches.
        place: where it runs.
    """
    size = Counter({what: of.of(*batch) for what, of in moved.items()})
    state = "state, packed" if place.is_packed else "state"
    far = 1 - 1 / place.executors  # the share that is not of the same machine
    through_one = far * (size["frames"] + size["lanes"] + size["results"])
    return {
        "network": size["file"] / place.executors / place.network + through_one / place.network,
        "checkpoint and tables": place.waits + (size[state] + size["table"]) / place.store,
        "scheduling": 2 * place.executors * place.per_task,
    }
