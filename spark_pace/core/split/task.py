"""What every way of splitting takes and returns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from spark_pace.core.columns import Bools, Ints
from spark_pace.core.match.stream import Stream
from spark_pace.core.match.window import Horizon
from spark_pace.core.plan.plan import Plan, RulePlan
from spark_pace.core.split.lanes import Lane, LaneHeader, Work


@dataclass(frozen=True)
class SplitTask:
    """One unit's events of one batch.

    Attributes:
        plan: the plan.
        planned: the rule.
        bucket: the unit's bucket.
        stream: carried and new events, with a segment for each partition key.
        horizon: what is known of the future.
        passed_us: the frontier before the batch.
        next_selection: int64[segments], the number of each key's next selection.
    """

    plan: Plan
    planned: RulePlan
    bucket: int
    stream: Stream
    horizon: Horizon
    passed_us: int
    next_selection: Ints

    def header(self, work: Work, *, exact: bool = True) -> LaneHeader:
        """The header of a lane that holds all rows."""
        owned = (0, self.stream.rows)
        return LaneHeader(
            self.planned.index, self.bucket, 0, work, owned, self.passed_us, self.horizon.frontier_us, exact
        )


@dataclass(frozen=True)
class Split:
    """The splitter's decisions.

    Attributes:
        lanes: work for the operators.
        keep: bool[n], the events to carry on.
        open: int64[segments], how many selections are still open.
        next_selection: int64[segments], the number of each key's next selection; None where numbering the
            events has set it already.
        events: the events of which `keep` chooses; None: those of the task.
    """

    lanes: list[Lane]
    keep: Bools
    open: Ints
    next_selection: Ints | None = None
    events: pa.Table | None = None


def from_first(stream: Stream, rows: Ints) -> Bools:
    """bool[n], the rows of each segment from its first one of `rows` (ascending) on; none if it has none."""
    segments, first = np.unique(stream.segment[rows], return_index=True)
    start = np.full(len(stream.starts), stream.rows, np.int64)
    start[segments] = rows[first]
    return np.arange(stream.rows) >= start[stream.segment]


def count_in_segments(stream: Stream, rows: Ints) -> Ints:
    """int64[segments], how many of `rows` are in each segment."""
    return np.bincount(stream.segment[rows], minlength=len(stream.starts))
