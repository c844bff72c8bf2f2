"""The tables of matches that operators give to the merger, and their encoding as few bytes, quickly made.

The merger orders matches by the columns with "@", which no user sees: ``@release_us``; ``@phase``, 0 at an
event and 1 directly after all events of that time; ``@tie0…``, which order the releasing event among those of
its time. Matches that are equal in these and in their selection are ordered by their ``events``; rows of a
Python operator, which may have no events, stay in their order. Texts that repeat (keys, components and
sources) are dictionaries here, and texts after the merger.

Whole numbers of matches change little from row to row. They are stored as differences, in as few bytes as
these need; the rest is compressed by the fastest codec.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace import ways
from spark_pace.core.expr import ARROW_TYPES, Aggregate, EventColumns, Previous, evaluate
from spark_pace.core.frames import decode_parcel, encode, encode_parcel
from spark_pace.core.match.release import NOTHING_WAITS, Waiting
from spark_pace.core.match.search.groups import aggregated, roles_by_name
from spark_pace.core.match.stream import Found, Positions, Stream
from spark_pace.core.plan.conditions import OPENING_EVENT
from spark_pace.core.plan.meaning import previous_of
from spark_pace.core.plan.plan import Plan, RulePlan
from spark_pace.core.plan.rule import STATE_AFTER, STATE_BEFORE, STATE_SINCE, Rule, StateMachine, column_name
from spark_pace.core.split.task import Lane, LaneHeader
from spark_pace.core.tables import (
    NOTHING_US,
    OFFSET,
    SOURCE,
    UTC_TIME,
    Bools,
    Ints,
    array,
    compacted,
    with_column,
)

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
        matches: a table as in `match_table`.
        selections: the number of selections that the operator worked on, decided or not.
        resolved_us: when the last of the lane's selections is resolved, if later lanes may wait for that;
            else `NOTHING_US`.
        failed: the selections on which a Python operator failed, as a table of `FAILED_SCHEMA`. `source` and
            `offset` are those of the first event, `raw` has events as lines of JSON.
        waiting: how the matches that wait have changed, apart from those that go out; empty if no rule reads
            them.
    """

    header: LaneHeader
    matches: pa.Table
    selections: int
    resolved_us: int = NOTHING_US
    failed: pa.Table = field(default_factory=FAILED_SCHEMA.empty_table)
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
    return Result(LaneHeader(**header), matches, selections, resolved_us, failures, waiting)


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


@dataclass(frozen=True)
class MatchColumns:
    """The columns of matches that the expressions of `emit` read.

    Attributes:
        stream: the stream.
        found: the matches in it, with the roles of `roles_by_name`.
        roles: the roles of each component and of each member of a disjunction.
        previous: in spans the attributes of earlier events that expressions read, by the names of columns.
    """

    stream: Stream
    found: Found
    roles: Mapping[str | None, tuple[int, ...]]
    previous: Mapping[str, Previous]

    @property
    def rows(self) -> int:
        """The number of matches."""
        return self.found.matches

    def column(self, component: str | None, attribute: str) -> pa.Array:
        """An attribute of each match's event of a component; for None, of its first event.

        The component ``open`` is the event that opened the match's span. Null where a match has no event of
        the component, because the event in its place stands for another member of the disjunction.
        """
        absent = None
        if component is None:
            rows = self.found.first
        elif component == OPENING_EVENT and component not in self.roles:
            rows = self.found.openings[self.found.selection]
        else:  # a component with at most one event in each match
            mine = self._standing(component)
            rows = self.found.members[mine]
            if len(rows) < self.rows:
                owner = np.searchsorted(self.found.offsets, np.flatnonzero(mine), "right") - 1
                absent, present = np.ones(self.rows, np.bool_), rows
                absent[owner], rows = False, np.zeros(self.rows, np.int64)
                rows[owner] = present
        if attribute in self.previous:
            node = self.previous[attribute]
            rows, attribute = rows - node.back, node.attribute
            before = rows < self.found.openings[self.found.selection]  # there the span begins
            absent = before if absent is None else before | absent
            rows = np.maximum(rows, 0)
        return self.stream.attribute(attribute).take(pa.array(rows, mask=absent))

    def _standing(self, component: str) -> Bools:
        """bool[], which of the matches' events stand for a component or member."""
        roles = self.roles[component]
        found: Bools = self.found.roles == roles[0] if len(roles) == 1 else np.isin(self.found.roles, roles)
        return found

    def aggregate(self, one: Aggregate) -> pa.Array:
        """An aggregate over each match's events of a component; see `aggregated`."""
        assert one.component is not None
        owner = np.repeat(np.arange(self.rows), np.diff(self.found.offsets))
        mine = self._standing(one.component)
        owner, rows = owner[mine], self.found.members[mine]
        values = None if one.attribute is None else self.stream.attribute(one.attribute).take(pa.array(rows))
        return aggregated(one, values, owner, self.rows)


def emit_fields(rule: Rule, stream: Stream, found: Found) -> dict[str, pa.Array]:
    """The fields of all matches of a rule with a pattern, as columns by name."""
    assert rule.pattern is not None
    exprs = [field.expr for field in rule.emit if field.expr is not None]
    previous = {} if rule.span is None else previous_of(exprs)
    columns = MatchColumns(stream, found, roles_by_name(rule.pattern), previous)
    return {field.name: evaluate(field.expr, columns) for field in rule.emit if field.expr is not None}


EVENTS_TYPE = pa.list_(
    pa.struct([
        ("component", pa.string()),
        ("seq", pa.int64()),
        ("event_time", UTC_TIME),
        ("source", pa.string()),
        ("offset", pa.int64()),
    ])
)  # fmt: skip
# The columns of every match. The merger fills `rule` and `out_seq`, the functions below fill the others.
# Partition columns and fields of `emit` come before `events`, and may not have names of `TAKEN_COLUMNS`.
FIXED_COLUMNS: dict[str, pa.DataType] = {
    "rule": pa.string(),
    "key": pa.string(),  # null without partition_by
    "out_seq": pa.int64(),
    "selection_id": pa.int64(),
    "seq": pa.int64(),
    "opened_at": UTC_TIME,
    "matched_at": UTC_TIME,
    "events": EVENTS_TYPE,
}
TAKEN_COLUMNS = (*FIXED_COLUMNS, "batch_id")  # the last only tables of a job have


THE_EVENT = "event"  # the component of the event that gives a fold's match


@dataclass(frozen=True)
class Labels:
    """The columns that m matches get from their selections.

    Attributes:
        selection_id: int64[m].
        opened_us: int64[m], the time of the opening event; for a grid span, the window's start.
        matched_us: int64[m], the time of the match's last event, or the end of the window that decided it.
        release: m positions, at which each match may go out.
    """

    selection_id: Ints
    opened_us: Ints
    matched_us: Ints
    release: Positions


def matched_us(matches: pa.Table) -> Ints:
    """int64[m], the column `matched_at` of matches, in microseconds since 1970."""
    return array(matches, "matched_at").view(pa.int64()).to_numpy()  # type: ignore[no-any-return]


def match_table(
    plan: Plan,
    planned: RulePlan,
    stream: Stream,
    labels: Labels,
    ends: tuple[Ints, Ints],
    fields: Mapping[str, pa.Array],
    events: pa.Array,
) -> pa.Table:
    """The table of matches for the merger.

    Args:
        plan: the plan.
        planned: the rule.
        stream: the lane's stream.
        labels: the labels of the m matches.
        ends: int64[m] each, a row of each match, and that of its last event, or of its selection's last one.
        fields: the fields of ``emit``.
        events: see `production_sets`.
    """
    columns = _head(plan, planned, stream, labels, ends[0])
    columns["seq"] = pa.array(stream.seq[ends[1]])
    columns["matched_at"] = _utc(labels.matched_us)
    return pa.table(columns | {**fields, "events": events})


def no_events(matches: int) -> pa.Array:
    """The production sets of matches that whole spans give: they have none."""
    offsets = pa.array(np.zeros(matches + 1, np.int32))
    return pa.ListArray.from_arrays(offsets, pa.array([], EVENTS_TYPE.value_type), type=EVENTS_TYPE)


def _utc(times: Ints) -> pa.Array:
    return pa.array(times).view(UTC_TIME)


def _head(plan: Plan, planned: RulePlan, stream: Stream, labels: Labels, member: Ints) -> dict[str, pa.Array]:
    """The columns for order, key, selection and partition; `member` has a row of each match."""
    columns = {"@release_us": pa.array(labels.release.time), "@phase": pa.array(labels.release.code & 1)}
    columns |= _ties(plan, planned, stream, labels.release)
    if planned.key_column is None:
        columns["key"] = pa.nulls(len(member), pa.string())
    else:
        columns["key"] = _codes(stream, planned.key_column, pa.array(member))
    columns["selection_id"] = pa.array(labels.selection_id)
    columns["opened_at"] = _utc(labels.opened_us)
    for name in planned.rule.partition_by:
        columns[column_name(name)] = stream.attribute(name).take(pa.array(member))
    return columns


def _ties(plan: Plan, planned: RulePlan, stream: Stream, release: Positions) -> dict[str, pa.Array]:
    """The columns ``@tie…``; null where a match goes out after all events of its time."""
    at_event = release.code & 1 == 0
    rows = np.where(at_event, release.code // 2, 0)
    index = pa.array(rows, mask=~at_event)
    if planned.panes is not None:  # their matches never go out at an event
        return {}
    if planned.key_column is None:
        return {"@tie0": pa.array(stream.seq).take(index)}
    ties = {}
    for number, name in enumerate(plan.tie_columns):
        taken = _codes(stream, name, index) if name == SOURCE else stream.attribute(name).take(index)
        ties[f"@tie{number}"] = taken
    return ties


def _codes(stream: Stream, name: str, rows: pa.Array) -> pa.DictionaryArray:
    """A column of texts at these rows, as a dictionary with few values that they do not use."""
    taken = stream.attribute(name).take(rows)
    if ways.is_compacted(len(taken.dictionary), len(rows)):
        return array(compacted(pa.table({name: taken})), name)
    return taken


def production_sets(components: Sequence[str], stream: Stream, found: Found) -> pa.Array:
    """The production set of each match, in stream order, with texts as dictionaries."""
    names, index = pa.array(components, pa.string()), pa.array(found.members)
    events = pa.StructArray.from_arrays(
        [
            pa.DictionaryArray.from_arrays(pa.array(found.roles), names),
            pa.array(stream.seq[found.members]),
            _utc(stream.time[found.members]),
            _codes(stream, SOURCE, index),
            array(stream.events, OFFSET).take(index),
        ],
        names=[field.name for field in EVENTS_TYPE.value_type],
    )
    return pa.ListArray.from_arrays(pa.array(found.offsets, pa.int32()), events)


def fields_of_found(rule: Rule, lane: Lane, stream: Stream) -> dict[str, pa.Array]:
    """The fields of matches of a fold or a row pattern, which the lane has, but not of state machines."""
    assert lane.selections is not None
    if not isinstance(rule.fold, StateMachine):
        return {field.name: array(lane.selections, field.name) for field in rule.emit}
    moves = stream.events.take(pa.array(lane.column("@first")))
    for name in (STATE_BEFORE, STATE_AFTER):
        states = pa.array(rule.fold.states, pa.string()).take(array(lane.selections, name))
        moves = with_column(moves, name, states)
    since = lane.column(STATE_SINCE)
    known = pa.array(since, mask=np.equal(since, NOTHING_US)).cast(ARROW_TYPES["TIMESTAMP"])
    columns = EventColumns(with_column(moves, STATE_SINCE, known))
    return {field.name: evaluate(field.expr, columns) for field in rule.emit if field.expr is not None}
