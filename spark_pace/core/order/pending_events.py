"""The events that wait for the frontier: a few runs, each sorted by event time.

A batch adds one run, and releases the beginning of each run. So it sorts and writes only new events and those
of runs that it merges, not all that wait. Neighbouring runs of similar size are merged, up to a size that
fits into memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from spark_pace import ways
from spark_pace.core.columns import HOME, TIME
from spark_pace.core.tables import compacted, concat, numbers


@dataclass
class Run:
    """Events sorted by event time.

    Attributes:
        events: the events; they never change.
        start: the rows before this one have been released.
        name: the name under which `events` are stored; None if they are not.
    """

    events: pa.Table
    start: int = 0
    name: str | None = None

    @property
    def rows(self) -> int:
        """The number of waiting events."""
        return int(self.events.num_rows) - self.start

    def waiting(self) -> pa.Table:
        """The waiting events."""
        return self.events.slice(self.start)

    def release(self, frontier_us: int) -> pa.Table:
        """Release the events below the frontier, and return them."""
        begin, self.start = self.start, int(np.searchsorted(numbers(self.events, TIME), frontier_us))
        return compacted(self.events.slice(begin, self.start - begin))


def run_of(events: pa.Table) -> Run:
    """Make a run of events, which may be in any order."""
    time = numbers(events, TIME)
    if (time[1:] >= time[:-1]).all():
        return Run(compacted(events))
    return Run(compacted(events.take(pa.array(np.argsort(time, kind="stable")))))


@dataclass
class Pending:
    """All waiting events, as runs, the oldest first."""

    runs: list[Run] = field(default_factory=list)

    @property
    def counted(self) -> int:
        """The number of waiting events that this slot counts; an event may wait in several slots."""
        return sum(int(numbers(run.waiting(), HOME).sum()) for run in self.runs)

    def release(self, frontier_us: int) -> Iterator[pa.Table]:
        """Release the events below the frontier, and yield them in pieces."""
        for run in self.runs:
            if (ready := run.release(frontier_us)).num_rows:
                yield ready
        self.runs = [run for run in self.runs if run.rows]

    def add(self, events: pa.Table) -> None:
        """Add waiting events, in any order."""
        self.runs.append(run_of(events))
        runs = self.runs
        for at in range(len(runs) - 2, -1, -1):
            if ways.is_merged(runs[at].rows, runs[at + 1].rows):
                runs[at : at + 2] = [run_of(concat([runs[at].waiting(), runs[at + 1].waiting()]))]
