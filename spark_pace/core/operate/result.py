"""The result that an operator gives to the merger, and its encoding as few bytes, quickly made.

Whole numbers of matches change little from row to row. They are stored as differences, in as few bytes as
these need; the rest is compressed by the fastest codec.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.frames import decode_parcel, encode, encode_parcel
from spark_pace.core.match.release import NOTHING_WAITS, Waiting
from spark_pace.core.split.task import LaneHeader
from spark_pace.core.tables import UTC_TIME, array, with_column

FAILED_SCHEMA = pa.schema([
    ("rule", pa.string()), ("key", pa.string()), ("selection_id", pa.int64()), ("reason", pa.string()),
    ("source", pa.string()), ("offset", pa.int64()), ("raw", pa.binary()),
])  # fmt: skip
_SMALL = (np.int8, np.int16, np.int32)
_LONG = {str(kind): kind for kind in (pa.int64(), pa.timestamp("us"), UTC_TIME)}

Firsts: TypeAlias = Mapping[str, tuple[str, int]]  # the type and first value of each column of differences


@dataclass(frozen=True)
class Result:
    """The result of a lane.

    Attributes:
        header: the header of the lane.
        resolved_us: when the last of the lane's selections is resolved, if later lanes may wait for that;
            else `NOTHING_US`.
        matches: a table as in `match_table`.
        failed: the selections on which a Python operator failed, as a table of `FAILED_SCHEMA`. `source` and
            `offset` are those of the first event, `raw` has events as lines of JSON.
        selections: the number of selections that the operator worked on, decided or not.
        waiting: how the matches that wait have changed, apart from those that go out; empty if no rule reads
            them.
    """

    header: LaneHeader
    resolved_us: int
    matches: pa.Table
    failed: pa.Table
    selections: int
    waiting: Waiting = NOTHING_WAITS

    def encode(self) -> bytes:
        """Encode the result."""
        told = {
            "resolved_us": self.resolved_us,
            "selections": self.selections,
            "waiting": self.waiting.stored(),
        }
        events = array(self.matches, "events")
        counts = pc.list_value_length(events).cast(pa.int64())
        rows, of_rows = _small(with_column(self.matches.drop_columns(["events"]), "@events", counts))
        members, of_members = _small(pa.Table.from_struct_array(events.flatten()))
        parts = [rows, members, *([self.failed] if self.failed.num_rows else [])]
        header = {**vars(self.header), **told, "firsts": [of_rows, of_members]}
        return encode_parcel(header, [encode(part, "lz4") for part in parts])


def decode_result(parcel: bytes | memoryview) -> Result:
    """Decode a result."""
    header, (rows, events, *failed) = decode_parcel(parcel)
    header.pop("frame_bytes")
    resolved_us, selections = header.pop("resolved_us"), header.pop("selections")
    waiting = Waiting.of(header.pop("waiting"))
    matches, members = map(_wide, (rows, events), header.pop("firsts"))
    ends = np.cumsum(array(matches, "@events").to_numpy(), dtype=np.int32)
    names = members.column_names
    structs = pa.StructArray.from_arrays([array(members, name) for name in names], names=names)
    lists = pa.ListArray.from_arrays(pa.array(np.append(np.int32(0), ends)), structs)
    matches = matches.drop_columns(["@events"]).append_column("events", lists)
    failures = failed[0] if failed else FAILED_SCHEMA.empty_table()
    return Result(LaneHeader(**header), resolved_us, matches, failures, selections, waiting)


def _small(table: pa.Table) -> tuple[pa.Table, Firsts]:
    """Replace whole numbers by differences; return the table, and the columns' types and first values."""
    small = {name: _differences(array(table, name)) for name in table.column_names}
    made = {name: table[name] if column is None else pa.array(column) for name, column in small.items()}
    changed = {name: array(table, name) for name, column in small.items() if column is not None}
    firsts = {
        name: (str(column.type), column[0].cast(pa.int64()).as_py()) for name, column in changed.items()
    }
    return pa.table(made), firsts


def _differences(column: pa.Array) -> npt.NDArray[np.signedinteger] | None:
    """Each value minus the one before it, 0 for the first; None if that saves nothing.

    That is so if a difference needs 8 bytes, and for columns that are empty, have nulls, or are not 8-byte
    whole numbers. All is computed modulo 2**64, so that the sums of the differences are the values again.
    """
    if not len(column) or column.null_count or str(column.type) not in _LONG:
        return None
    values = column.view(pa.int64()).to_numpy()
    differences = np.diff(values, prepend=values[:1])
    least, most = differences.min(), differences.max()
    for kind in _SMALL:
        if np.iinfo(kind).min <= least and most <= np.iinfo(kind).max:
            small: npt.NDArray[np.signedinteger] = differences.astype(kind)
            return small
    return None


def _wide(small: pa.Table, firsts: Firsts) -> pa.Table:
    """Undo `_small`."""
    for name, (kind, first) in firsts.items():
        values = np.cumsum(array(small, name).to_numpy(), dtype=np.int64)
        values += first
        small = with_column(small, name, pa.array(values).view(_LONG[kind]))
    return small
