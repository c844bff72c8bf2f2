"""A simulation of instances of which one is lost for a while: how long queues become.

Sources: Trischler 2013, section 6.4 (the set-up) and section 7 (what was observed).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Experiment:
    """Selections of some events each, dealt round robin; one instance is lost. Times are seconds.

    Attributes:
        instances: how many there are.
        completions: events that an instance works off, a second; each takes an exponential time.
        arrivals: events that come in, a second; they come at exponential distances.
        selections: how many selections there are.
        selection_events: how many events one has. It comes when its last event comes.
        losing: the instance that works on this selection is lost when it has worked it off; None: none is.
        lost_seconds: for how long an instance that is lost throws away all that it gets, and, from the time
            when the loss is found, for how long it gets nothing.
        found_after: how long after the loss it is found. All that the instance had, and what it got since,
            is then dealt to the others in turn.
    """

    instances: int
    completions: float = 1.5
    arrivals: float = 10.0
    selections: int = 2_666
    selection_events: int = 3
    losing: int | None = 1_000
    lost_seconds: float = 60.0
    found_after: float = 10.0


@dataclass(frozen=True)
class Outcome:
    """When each selection, as often as it was dealt, was in which instance.

    Attributes:
        instance: int64[n].
        begin: float64[n], when it came to the instance, in seconds, ascending.
        end: float64[n], when it was worked off, or lost with the instance.
        lost_at: when the instance was lost; NaN if none was.
    """

    instance: Ints
    begin: Floats
    end: Floats
    lost_at: float

    def queues(self) -> tuple[Floats, Floats, Ints]:
        """When a queue changes, until when it then stays, and how long it is, the one worked on included."""
        time = np.concatenate([self.begin, self.end])
        step = np.repeat([1, -1], len(self.begin))
        order = np.lexsort((step, time, np.tile(self.instance, 2)))
        time, queued = time[order], np.cumsum(step[order])  # every queue ends empty, so one sum does for all
        return time, np.append(time[1:], time[-1:]), queued

    def longest(self) -> int:
        """The longest queue of any instance."""
        return int(self.queues()[2].max())

    def seconds_above(self, bound: int) -> float:
        """For how long queues were longer than the bound, summed over the instances."""
        time, until, queued = self.queues()
        return float((until - time)[queued > bound].sum())


class _Instances:
    """The queues while they are simulated."""

    def __init__(self, experiment: Experiment, needed: Floats) -> None:
        self._experiment = experiment
        self._needed = needed  # seconds of work of each selection
        self._free_at = [0.0] * experiment.instances
        self._turn = 0
        self.lost: int | None = None
        self.lost_at = float("inf")
        self.back_at = float("inf")
        self.rows: list[list[float]] = []  # selection, instance, begin, end

    def deal(self, selection: int, now: float, avoid_lost: bool) -> None:
        """Give a selection to the next instance."""
        if avoid_lost and self._turn == self.lost:
            self._turn = (self._turn + 1) % len(self._free_at)
        instance, self._turn = self._turn, (self._turn + 1) % len(self._free_at)
        if instance == self.lost and self.lost_at <= now < self.lost_at + self._experiment.lost_seconds:
            self.rows.append([selection, instance, now, now])
            return
        self._free_at[instance] = max(now, self._free_at[instance]) + self._needed[selection]
        self.rows.append([selection, instance, now, self._free_at[instance]])
        if selection == self._experiment.losing and self.lost is None:
            self.lost, self.lost_at = instance, self._free_at[instance]
            self.back_at = self.lost_at + self._experiment.found_after + self._experiment.lost_seconds

    def take_back(self) -> list[int]:
        """The selections that were lost, in order."""
        assert self.lost is not None
        lost = []
        for row in self.rows:
            selection, instance, begin, end = row
            if instance == self.lost and (end > self.lost_at or begin >= self.lost_at):
                row[3] = max(begin, self.lost_at)
                lost.append(int(selection))
        self._free_at[self.lost] = self.lost_at
        return lost


def simulate(experiment: Experiment, seed: int) -> Outcome:
    """Deal and work off all selections. The same seed gives the same outcome."""
    chance = np.random.default_rng(seed)
    shape = (experiment.selections, experiment.selection_events)
    gaps = chance.exponential(1 / experiment.arrivals, shape)
    arrivals = np.cumsum(gaps.sum(axis=1)).tolist()
    instances = _Instances(experiment, chance.exponential(1 / experiment.completions, shape).sum(axis=1))
    found_at, is_found = float("inf"), False
    for selection, now in enumerate(arrivals):
        found_at = instances.lost_at + experiment.found_after
        if not is_found and found_at <= now:
            is_found = True
            for lost in instances.take_back():
                instances.deal(lost, found_at, avoid_lost=True)
        instances.deal(selection, now, avoid_lost=found_at <= now < instances.back_at)
    rows = np.array(instances.rows)
    lost_at = instances.lost_at if instances.lost is not None else float("nan")
    return Outcome(rows[:, 1].astype(np.int64), rows[:, 2], rows[:, 3], lost_at)
