"""A share and its batch, lanes, and the arguments and the result of every way to split a stream.

A share is what a slot keeps and splits together: one rule in one bucket of keys, or several that share panes.
Rules share panes if their filters, keys, lengths of panes and sketches are equal, and if they began with the
same batch. The rows of panes are kept once for all of them, with all columns that any of them needs, as long
as their longest span needs them. Each rule has only the numbers of its windows for itself.

A lane has neighbouring selections for one operator, with each of their events once. It is complete: any
operator process can work on it, repeatedly, with the same result.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa

from spark_pace.core.expr import Expr
from spark_pace.core.frames import decode_parcel, encode_parcel
from spark_pace.core.match.method import Method
from spark_pace.core.match.release import NOTHING_WAITS, Resolution, Waiting
from spark_pace.core.match.stream import Horizon, Positions, Stream, starts_of_streams
from spark_pace.core.plan.plan import Panes, Plan, RulePlan, Unit, sharing, united
from spark_pace.core.plan.price import Price
from spark_pace.core.plan.rule import GridSpan, Pattern
from spark_pace.core.python_functions import FoldRuns, fold_here
from spark_pace.core.tables import JOIN, SEQ, UNKNOWN_CODE, UNKNOWN_TIME, Bools, Ints, array, numbers


@dataclass(frozen=True)
class Share:
    """The rules that share a carry in one bucket of keys: most often one rule.

    Attributes:
        rules: the rules; the first one stands for all.
        bucket: the bucket.
        grids: the distinct spans of rules that share panes, perhaps also those of removed rules; else empty.
    """

    rules: tuple[RulePlan, ...]
    bucket: int
    grids: tuple[GridSpan, ...] = ()

    @staticmethod
    def of(rules: Sequence[RulePlan], bucket: int, grids: Sequence[GridSpan] = ()) -> Share:
        """Make a share of these rules; `grids` are the ones that it had before, in their order."""
        spans = [planned.rule.span for planned in rules if planned.panes is not None]
        known = dict.fromkeys([*grids, *(span for span in spans if isinstance(span, GridSpan))])
        return Share(tuple(rules), bucket, tuple(known))

    @cached_property
    def places(self) -> tuple[int, ...]:
        """The place of each rule's span among `grids`."""
        return tuple(self.grids.index(planned.rule.span) for planned in self.rules)

    @cached_property
    def panes(self) -> Panes | None:
        """The columns kept for each pane, for all rules together; None if events are kept."""
        panes = [planned.panes for planned in self.rules if planned.panes is not None]
        return united(panes) if panes else None

    @cached_property
    def computed(self) -> dict[str, Expr]:
        """The expressions inside aggregates of the rules, by the names of their columns."""
        return {name: expr for planned in self.rules for name, expr in planned.computed}

    @property
    def counters(self) -> pa.Schema:
        """The schema of the numbers of a key's next windows, with a column for each grid but the first."""
        return pa.schema([
            (f"next_selection {grid.every_us} {grid.size_us}", pa.int64()) for grid in self.grids[1:]
        ])  # fmt: skip


def shares_of(plan: Plan, units: Iterable[Unit]) -> list[Share]:
    """Make the shares of units of a slot that have no carry yet."""
    alike: dict[tuple[int, Hashable], list[RulePlan]] = {}
    for unit in units:
        planned = plan.rules[unit.rule_index]
        alone = planned.index if planned.panes is None else None
        stream = (planned.since, sharing(planned.rule), alone)
        alike.setdefault((unit.bucket, stream), []).append(planned)
    return [Share.of(rules, bucket) for (bucket, _), rules in alike.items()]


@dataclass(frozen=True)
class Batch:
    """The events that a batch has released, with the frontier, the prices and the caller of folds.

    Attributes:
        released: events in stream order; None if there are none.
        passed_us: the frontier before the batch.
        frontier_us: the frontier now.
        seen_us: the greatest event time seen so far.
        prices: the predicted prices of operators, by the rule's place in the plan.
        fold: calls a fold's Python function.
    """

    released: pa.Table | None
    passed_us: int
    frontier_us: int
    seen_us: int
    prices: Mapping[int, Price] = field(default_factory=dict)
    fold: FoldRuns = fold_here

    @property
    def ends(self) -> bool:
        """True if the input has ended."""
        return self.frontier_us == UNKNOWN_TIME


Work = Literal["free", "closed", "matched", "spans"]


@dataclass(frozen=True)
class LaneHeader:
    """The description of a lane for operators.

    Attributes:
        rule_index: place of the rule in the plan.
        bucket: the bucket of partition keys; 0 without `partition_by`.
        number: place among the lanes of this unit and batch.
        work: "free": match the initiators or terminators in `owned`; "closed": find the matches of closed
            selections; "matched": compute the fields of matches that are found; "spans": work on spans.
        owned: the range of rows of the lane whose matches it finds; matches may also include other rows.
        passed_us: the frontier before the batch; matches that were releasable then have been sent.
        frontier_us: the frontier now.
        exact: True if the lane has every selection that its matches wait for; if not, the merger has them.
        resolved: the `before` and `first` of the rule's `Resolution`, if the lane has only some join values
            of the rule's stream and matches wait; else None.
        weight: the number of events, summed over the lane's own selections (`Piece.rows`).
        predicted_seconds: the time that an operator is predicted to take for it; None without a bound or a
            price.
        sharers: for each of several rules that share panes its place in the plan and the place of its grid.
            Its selections have the latter in the column ``grid``, which ascends. Else empty.
    """

    rule_index: int
    bucket: int
    number: int
    work: Work
    owned: tuple[int, int]
    passed_us: int
    frontier_us: int
    exact: bool = True
    resolved: tuple[int, int] | None = None
    weight: int = 0
    predicted_seconds: float | None = None
    sharers: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Lane:
    """A lane: a header, events and selections.

    Attributes:
        header: the description of the lane.
        events: the events.
        selections: int64 columns with rows of `events`. For "free" work the selections are not known; then
            the column ``ends_us`` has the `Horizon.ends_us` of each stream, if streams end before the input.
        held: the rows of the split stream that `events` are; None in an operator.
        new_rows: the number of these rows that no earlier lane holds; 0 in an operator.
    """

    header: LaneHeader
    events: pa.Table
    selections: pa.Table | None = None
    held: slice | Ints | None = None
    new_rows: int = 0

    def encode(self) -> bytes:
        """The lane as bytes."""
        tables = [self.events] if self.selections is None else [self.events, self.selections]
        return encode_parcel(vars(self.header), tables)

    def in_one_chunk(self) -> Lane:
        """The lane with columns of one chunk each, like the lanes of `decode_lane`."""
        return replace(self, events=self.events.combine_chunks())

    def stream(self, key_column: str | None) -> Stream:
        """The lane's events as a stream with a segment for each partition key or join value."""
        column = JOIN if JOIN in self.events.column_names else key_column
        if column is None:
            return Stream(self.events, np.zeros(min(1, self.events.num_rows), np.int64))
        codes = array(self.events, column).indices.to_numpy()
        return Stream(self.events, starts_of_streams(codes, numbers(self.events, SEQ)))

    def column(self, name: str) -> Ints:
        """int64[selections], a column of the selections."""
        assert self.selections is not None
        return numbers(self.selections, name)

    def positions(self, name: str) -> Positions:
        """The positions in the two columns of `position_columns`."""
        return Positions(self.column(f"{name}_code"), self.column(f"{name}_us"))


def decode_lane(parcel: bytes | memoryview) -> Lane:
    """The reverse of `Lane.encode`."""
    header, tables = decode_parcel(parcel)
    header.pop("frame_bytes")
    return Lane(header_of(header), tables[0], tables[1] if len(tables) > 1 else None)


def header_of(fields: dict[str, Any]) -> LaneHeader:
    """A header from the dictionary of its fields, after a way through JSON."""
    sharers = tuple((index, span) for index, span in fields["sharers"])
    return LaneHeader(**{**fields, "owned": tuple(fields["owned"]), "sharers": sharers})


class Piece(NamedTuple):
    """The things of one lane (rows, streams of keys or selections): those from `first` to `last` - 1.

    Attributes:
        first: the first thing.
        last: the first thing of the next lane.
        rows: the number of rows, summed over the things.
        seconds: the predicted time; None without a price or a bound.
    """

    first: int
    last: int
    rows: int
    seconds: float | None


def position_columns(name: str, positions: Positions, shift: int) -> dict[str, Ints]:
    """Convert positions to two columns, relative to a lane that begins at row `shift`."""
    code = np.where(positions.code == UNKNOWN_CODE, UNKNOWN_CODE, np.maximum(positions.code - 2 * shift, -1))
    return {f"{name}_code": code, f"{name}_us": positions.time}


def with_new_rows(lanes: list[Lane], rows: int) -> list[Lane]:
    """Set in each lane of a split the number of its rows that no earlier lane holds.

    Args:
        lanes: all lanes of the split.
        rows: the number of rows of the stream.
    """
    if len(lanes) < 2:
        return [replace(lane, new_rows=lane.events.num_rows) for lane in lanes]
    held, counted = np.zeros(rows, np.bool_), []
    for lane in lanes:
        assert lane.held is not None
        counted.append(replace(lane, new_rows=lane.events.num_rows - int(held[lane.held].sum())))
        held[lane.held] = True
    return counted


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

    def header(self, work: Work, owned: tuple[int, int], piece: Piece, *, exact: bool = True) -> LaneHeader:
        """The header of a lane, which gets its number with the others of its unit and batch."""
        resolved = None if self.resolution is None else (self.resolution.before, self.resolution.first)
        return LaneHeader(
            self.planned.index, self.share.bucket, 0, work, owned, self.passed_us,
            self.horizon.frontier_us, exact, resolved, piece.rows, piece.seconds,
        )  # fmt: skip


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
