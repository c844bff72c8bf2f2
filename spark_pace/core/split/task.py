"""The arguments and the result of every way to split a unit's stream."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from spark_pace.core.columns import Bools, Ints
from spark_pace.core.functions.python_fold import FoldRuns, fold_here
from spark_pace.core.match.method import Method
from spark_pace.core.match.release import Resolution
from spark_pace.core.match.stream import Stream
from spark_pace.core.match.waiting import NOTHING_WAITS, Waiting
from spark_pace.core.match.window import Horizon
from spark_pace.core.plan.plan import Plan, RulePlan
from spark_pace.core.plan.price import Price
from spark_pace.core.plan.rule import Pattern
from spark_pace.core.split.lanes import Lane, LaneHeader, Work
from spark_pace.core.split.shares import Share


@dataclass(frozen=True)
class SplitTask:
    """One unit's events in one batch, to be split.

    Attributes:
        plan: the plan.
        share: the rules, the first of which stands for all, and their bucket.
        stream: carried and new events, with a segment for each partition key or join value.
        horizon: the bounds on future events.
        passed_us: the frontier before the batch.
        next_selections: int64[segments], the number of each key's next selection; several arrays, one for
            each grid, for rules that share panes.
        method: how the rule's matches are found.
        resolution: the resolved selections of the rule's whole stream, if matches wait for selections that
            are not in `stream`; else None.
        price: the predicted price of the rule's operators; None if it is not known.
        last_values: the values that a fold keeps of each segment's key; null if the segment's stream is new.
        fold: calls a fold's Python function.
    """

    plan: Plan
    share: Share
    stream: Stream
    horizon: Horizon
    passed_us: int
    next_selections: list[Ints]
    method: Method
    resolution: Resolution | None = None
    price: Price | None = None
    last_values: Mapping[str, pa.Array] = field(default_factory=dict)
    fold: FoldRuns = fold_here

    @property
    def planned(self) -> RulePlan:
        """The rule, or the first of those that share panes."""
        return self.share.rules[0]

    @property
    def next_selection(self) -> Ints:
        """int64[segments], the number of each key's next selection."""
        return self.next_selections[0]

    @property
    def pattern(self) -> Pattern | None:
        """The rule's pattern without the equalities by which `stream` is divided; None without a pattern."""
        return self.method.pattern

    def header(self, work: Work, *, exact: bool = True) -> LaneHeader:
        """The header of a lane that holds all rows."""
        owned, frontier_us = (0, self.stream.rows), self.horizon.frontier_us
        resolved = None if self.resolution is None else (self.resolution.before, self.resolution.first)
        return LaneHeader(
            self.planned.index,
            self.share.bucket,
            0,
            work,
            owned,
            self.passed_us,
            frontier_us,
            exact,
            resolved,
        )


@dataclass(frozen=True)
class Split:
    """The splitter's decisions about a task.

    Attributes:
        lanes: the lanes for operators.
        keep: bool[n], the events to carry on.
        open: int64[segments], the number of selections that are still open.
        next_selections: the new `SplitTask.next_selections`; empty if numbering the events has already set
            them.
        events: the events from which `keep` chooses; None: those of the task.
        resolution: the new resolution, if the task has one.
        last_values: the new values that a fold keeps of each segment's key.
        waiting: how the matches that wait have changed, as far as the splitter finds them; empty if no rule
            reads them.
    """

    lanes: list[Lane]
    keep: Bools
    open: Ints
    next_selections: Sequence[Ints] = ()
    events: pa.Table | None = None
    resolution: Resolution | None = None
    last_values: Mapping[str, pa.Array] = field(default_factory=dict)
    waiting: Waiting = NOTHING_WAITS


def from_first(stream: Stream, rows: Ints) -> Bools:
    """bool[n], the rows of each segment from its first row in `rows` (ascending) on."""
    bounds = np.append(stream.starts, stream.rows)
    place = np.searchsorted(rows, bounds)
    start = np.append(rows, stream.rows)[place[:-1]]
    start = np.where(place[:-1] < place[1:], start, stream.rows)
    keep: Bools = np.arange(stream.rows) >= (start if len(start) == 1 else start[stream.segment])
    return keep


def count_in_segments(stream: Stream, rows: Ints) -> Ints:
    """int64[segments], the number of `rows` in each segment."""
    if len(stream.starts) == 1:
        return np.array([len(rows)])
    return np.bincount(stream.segment[rows], minlength=len(stream.starts))


def without_ended(split: Split, task: SplitTask) -> Split:
    """Remove from the decisions what streams that have ended keep: no more events of these can come.

    Selections in streams that only the end of the input has ended still count as open.
    """
    ends_us, horizon = task.horizon.ends_us, task.horizon
    if ends_us is None:
        return split
    ended = ends_us < horizon.frontier_us
    by_itself = ended if horizon.seen_us is None else ends_us <= horizon.seen_us
    keep = split.keep & ~ended[task.stream.segment]
    return replace(split, keep=keep, open=np.where(by_itself, 0, split.open))
