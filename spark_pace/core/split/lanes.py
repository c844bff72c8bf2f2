"""A lane: a run of neighbouring selections for one operator instance, with each of their events once.

A lane needs nothing else: any instance can work on it, as often as it has to, with the same result.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa

from spark_pace.core.columns import JOIN, SEQ, UNKNOWN_CODE, Ints
from spark_pace.core.frames import decode_parcel, encode_parcel
from spark_pace.core.match.stream import Positions, Stream, starts_of_streams
from spark_pace.core.tables import array, numbers

Work = Literal["free", "closed", "matched", "spans", "folded"]


@dataclass(frozen=True)
class LaneHeader:
    """What an operator must know about its lane.

    Attributes:
        rule_index: place of the rule in the plan.
        bucket: the bucket of partition keys; 0 without `partition_by`.
        number: place among the lanes of this unit and batch.
        work: "free": match the initiators or terminators in `owned`; "closed": find the matches of closed
            selections; "matched": compute the fields of matches that are found; "spans": work on spans;
            "folded": compute the fields of a fold's matches.
        owned: range of rows of the lane whose matches it finds; the other rows are only reached.
        passed_us: the frontier before the batch; what was releasable then is out.
        frontier_us: the frontier now.
        exact: whether the lane knows every selection that its matches wait for; if not, the merger does.
        resolved: where it has some join values of a rule's stream, the `before` and `first` of the stream's
            `Resolution`, if matches wait; else None.
        weight: the events of the lane's own selections, of each its own; see `Piece.rows`.
        predicted_seconds: what an operator is predicted to take for it; None without a bound, or where
            nothing is known.
        sharers: where rules share panes, the place of each in the plan, and that of its grid: its
            selections are those with the latter in the column ``grid``, which ascends; else empty.
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
    """A lane: its events and its selections, as int64 columns by rows of the lane.

    For "free" work these are not known; instead, where streams end before the input does, the column
    ``ends_us`` has the `Horizon.ends_us` of each stream.

    Attributes:
        header: what an operator must know about it.
        events: its events.
        selections: its selections.
        held: which rows of the stream that was split its events are; known only where it was split.
        new_rows: how many of these no lane before it holds; likewise.
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
        """The lane with columns of one chunk each, as `decode_lane` gives them."""
        return replace(self, events=self.events.combine_chunks())

    @property
    def by_join_value(self) -> bool:
        """True if the lane's events are in the order of their join values first."""
        return JOIN in self.events.column_names

    def stream(self, key_column: str | None) -> Stream:
        """The lane's events as a stream with a segment for each partition key or join value."""
        column = JOIN if self.by_join_value else key_column
        if column is None:
            return Stream(self.events, np.zeros(min(1, self.events.num_rows), np.int64))
        codes = array(self.events, column).indices.to_numpy()
        return Stream(self.events, starts_of_streams(codes, numbers(self.events, SEQ)))

    def column(self, name: str) -> Ints:
        """The column of that name of the selections."""
        assert self.selections is not None
        return numbers(self.selections, name)

    def positions(self, name: str) -> Positions:
        """The pair of columns that `position_columns` has made of positions."""
        return Positions(self.column(f"{name}_code"), self.column(f"{name}_us"))


def decode_lane(parcel: bytes | memoryview) -> Lane:
    """The lane of these bytes."""
    header, tables = decode_parcel(parcel)
    header.pop("frame_bytes")
    return Lane(header_of(header), tables[0], tables[1] if len(tables) > 1 else None)


def header_of(fields: dict[str, Any]) -> LaneHeader:
    """The header of what `vars` gave of it, which has travelled as JSON."""
    sharers = tuple((index, span) for index, span in fields["sharers"])
    return LaneHeader(**{**fields, "owned": tuple(fields["owned"]), "sharers": sharers})


class Piece(NamedTuple):
    """The things of one lane: those from `first` to the one before `last`.

    Attributes:
        first: the first of them.
        last: the one behind the last.
        rows: how many rows they have, of each its own.
        seconds: what they are predicted to take; None where nothing is known, or there is no bound.
    """

    first: int
    last: int
    rows: int
    seconds: float | None


def position_columns(name: str, positions: Positions, shift: int) -> dict[str, Ints]:
    """Positions as two columns, relative to a lane that begins at row `shift`."""
    code = np.where(positions.code == UNKNOWN_CODE, UNKNOWN_CODE, np.maximum(positions.code - 2 * shift, -1))
    return {f"{name}_code": code, f"{name}_us": positions.time}


def numbered(header: LaneHeader, number: int, owned: tuple[int, int], piece: Piece) -> LaneHeader:
    """The header of another lane of the same unit and batch."""
    return replace(header, number=number, owned=owned, weight=piece.rows, predicted_seconds=piece.seconds)


def with_new_rows(lanes: list[Lane], rows: int) -> list[Lane]:
    """The lanes of one split, each with the number of its rows that no lane before it holds.

    Args:
        lanes: all lanes of a split.
        rows: how many rows the stream has.
    """
    if len(lanes) < 2:
        return [replace(lane, new_rows=lane.events.num_rows) for lane in lanes]
    held, counted = np.zeros(rows, np.bool_), []
    for lane in lanes:
        assert lane.held is not None
        counted.append(replace(lane, new_rows=lane.events.num_rows - int(held[lane.held].sum())))
        held[lane.held] = True
    return counted
