"""A simulation of instances that work on batches of overlapping windows: latencies, and events sent.

A scheduler decides for each new window whether it joins those of the instance that has the window before. An
event is sent once to each instance that has an open window with it, and is processed there once for each of
these windows, after the events that came before it.

Sources: Mayer, Tariq, Rothermel 2017, section 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from benchmarks.sizing.workloads import Floats, Ints, Workload


@dataclass(frozen=True)
class Costs:
    """What an operator takes for an event of each of the two kinds, in seconds.

    Attributes:
        window: for each open window.
        seen: for each open window and each event of kind 0 that came in this window.
        opening: for the window that the event opens, besides.
    """

    window: tuple[float, float] = (0.0, 0.0)
    seen: tuple[float, float] = (0.0, 0.0)
    opening: tuple[float, float] = (0.0, 0.0)


TRAFFIC = Costs(window=(1e-7, 1e-7), seen=(0.0, 1.5e-7))  # L2 is compared with every L1 of its window
FACES = Costs(window=(0.2, 0.0), opening=(0.0, 0.5))  # a query builds a model, each face is compared with it


class State:
    """The instances at the time of a decision, as far as it may know them.

    Attributes:
        workload: all events; a decision may look at rows below `row` only.
        row: the event that opens the new window.
        time: when it comes.
        instance: the instance that has the window before.
        open: int64[c], the windows that are open in each instance.
        processing: float64[n, c], how long each event took in each instance; NaN where it was not sent.
        squares: float64[n, c], the sum of the squares of how long it took in each window there.
        overlap: int64[n, c], in how many windows it was there.
        finish: float64[n, c], when it was done; NaN where it was not sent.
    """

    def __init__(self, workload: Workload, instances: int) -> None:
        """Begin with nothing open."""
        events = len(workload.time)
        self.workload = workload
        self.row = 0
        self.time = 0.0
        self.instance = -1
        self.open = np.zeros(instances, np.int64)
        self.processing = np.full((events, instances), np.nan)
        self.squares = np.full((events, instances), np.nan)
        self.finish = np.full((events, instances), np.nan)
        self.overlap = np.zeros((events, instances), np.int64)
        # of the open windows: how many events of kind 0 came before each, summed, and as squares
        self._before = np.zeros(instances)
        self._before_squares = np.zeros(instances)
        self._seen = 0
        self._free_at = np.zeros(instances)
        self._done = [0] * instances  # rows below are finished, or were not sent

    def done(self) -> int:
        """The first row that the instance has not finished, or the row of the decision."""
        row = self._done[self.instance]
        finish = self.finish[:, self.instance]
        while row < self.row and not finish[row] > self.time:
            row += 1
        self._done[self.instance] = row
        return row

    def latency(self) -> float:
        """The operational latency of the event that the instance has finished last; 0 if there is none."""
        for row in range(self.done() - 1, -1, -1):
            finish = float(self.finish[row, self.instance])
            if finish == finish:  # it was sent there
                return finish - float(self.workload.time[row])
        return 0.0

    def add_window(self, instance: int) -> None:
        """Open a window in an instance."""
        self.instance = instance
        self.open[instance] += 1
        self._before[instance] += self._seen
        self._before_squares[instance] += self._seen**2

    def close_window(self, instance: int, seen_before: int) -> None:
        """Close a window, before which so many events of kind 0 came."""
        self.open[instance] -= 1
        self._before[instance] -= seen_before
        self._before_squares[instance] -= seen_before**2

    def process(self, costs: Costs, opened: int | None) -> None:
        """Send the event at `row` to all instances with open windows; `opened` has the one that it opens."""
        kind = int(self.workload.kind[self.row])
        window, by_seen = costs.window[kind], costs.seen[kind]
        seen = self.open * self._seen - self._before
        squares = seen * self._seen - self._before * self._seen + self._before_squares
        took = window * self.open + by_seen * seen
        squares = window**2 * self.open + 2 * window * by_seen * seen + by_seen**2 * squares
        if opened is not None:
            took[opened] += costs.opening[kind]
            squares[opened] += costs.opening[kind] ** 2
        sent = self.open > 0
        self._free_at = np.where(sent, np.maximum(self._free_at, self.time) + took, self._free_at)
        self.processing[self.row, sent] = took[sent]
        self.squares[self.row, sent] = squares[sent]
        self.finish[self.row, sent] = self._free_at[sent]
        self.overlap[self.row] = self.open
        self._seen += kind == 0

    @property
    def seen(self) -> int:
        """How many events of kind 0 have come."""
        return self._seen


class Scheduler(Protocol):
    """Decides where windows go."""

    def stays(self, state: State) -> bool:
        """Tell whether the new window joins those of the instance that has the window before."""


@dataclass(frozen=True)
class Outcome:
    """What a simulation found.

    Attributes:
        latency: float64[n, c], the operational latency of each event in each instance; NaN where not sent.
        instance: int64[w], where each window was.
    """

    latency: Floats
    instance: Ints

    @property
    def sent(self) -> int:
        """How many events were sent, counted once for each instance: the communication."""
        return int((~np.isnan(self.latency)).sum())

    @property
    def peak(self) -> float:
        """The greatest operational latency, in seconds."""
        return float(np.nanmax(self.latency))

    def quantile(self, share: float) -> float:
        """The latency that this share of the events stays below, in seconds."""
        return float(np.nanquantile(self.latency, share))

    def saved(self, other: Outcome) -> float:
        """The share of another outcome's communication that this one saves."""
        return 1 - self.sent / other.sent


def simulate(workload: Workload, costs: Costs, instances: int, scheduler: Scheduler) -> Outcome:
    """Process all events. A loop goes over them, for each decision rests on those before."""
    state = State(workload, instances)
    closing = np.argsort(workload.close, kind="stable")
    close = workload.close[closing].tolist()
    window_at = dict(zip(workload.opening.tolist(), range(len(workload.opening)), strict=True))
    placed = np.full(len(workload.opening), -1)
    before: list[int] = []  # events of kind 0 before each window
    closed = 0
    for row, time in enumerate(workload.time.tolist()):
        state.row, state.time = row, time
        while closed < len(close) and close[closed] <= row:
            window = closing[closed]
            state.close_window(int(placed[window]), before[window])
            closed += 1
        window = window_at.get(row)
        opened = None
        if window is not None:
            stays = state.instance >= 0 and scheduler.stays(state)
            opened = state.instance if stays else (state.instance + 1) % instances
            placed[window] = opened
            before.append(state.seen)
            state.add_window(opened)
        state.process(costs, opened)
    latency = state.finish - workload.time[:, np.newaxis]
    return Outcome(latency, placed)
