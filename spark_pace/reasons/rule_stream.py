"""Runs the engine to get a rule's whole stream, its matches, those of the rules below it, and its selections.

A stretch is a part of the stream in which a pattern is searched: the stream of a key, or a span of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.expr import ARROW_TYPES, Aggregate, Columns, Expr, Previous, evaluate, walk
from spark_pace.core.expr.canonical_text import canonical_text
from spark_pace.core.expr.nodes import Column
from spark_pace.core.intake.pack import pack
from spark_pace.core.intake.sift import Past, sift
from spark_pace.core.levels import matches_as_events
from spark_pace.core.local_run import LocalRun, run
from spark_pace.core.match.contexts import context_of
from spark_pace.core.match.contexts.contexts import match_bounded
from spark_pace.core.match.search.any_order import Alternatives
from spark_pace.core.match.search.groups import with_members
from spark_pace.core.match.spans import session_ends_us, spans_of
from spark_pace.core.match.stream import Found, Horizon, Stream, end_times, window_end
from spark_pace.core.operate.match_table import MatchColumns, matched_us
from spark_pace.core.order import Order
from spark_pace.core.plan.conditions import with_opening_columns
from spark_pace.core.plan.lower_rules import every_rule, handing_on
from spark_pace.core.plan.plan import Level, Plan
from spark_pace.core.plan.rule import GridSpan, Pattern, PredicateSpan, Rule, SessionSpan
from spark_pace.core.plan.shape import alternative
from spark_pace.core.split.task import Batch, SplitTask
from spark_pace.core.split.unit import whole_task
from spark_pace.core.tables import (
    NO_FRONTIER,
    OFFSET,
    OPENING,
    SOURCE,
    TIME,
    UNKNOWN_TIME,
    Bools,
    Ints,
    array,
    has_bit,
    numbers,
)
from spark_pace.errors import ConfigError, one_line
from spark_pace.reasons.answer import (
    EventRef,
    LowerMatch,
    Match,
    Member,
    Selection,
    iso,
    iso_of,
    iso_or_none,
    plain,
    shown,
)

MOST_MATCHES = 100  # matches in the answer
MOST_LOWER = 100  # matches in the answer


@dataclass(frozen=True)
class OfKey:
    """The rule's stream of one key, as one segment, and the row of the event in it."""

    stream: Stream
    horizon: Horizon
    key: str | None
    row: int


def stream_of(plan: Plan, records: pa.Table) -> SplitTask | None:
    """The whole stream of the plan's only rule over these records; None if it has no event.

    It keeps every event and every attribute, also those that are not needed once conditions on earlier events
    have been tested. So an event's row in the stream of its key is its `seq`.
    """
    plan = _of_everything(plan)
    sifted, order = sift(plan, records, Past()), Order()
    frames = [frame for _, frame in pack(plan, sifted.events)]
    released = order.advance(frames, replace(sifted.progress, finish=True), plan.order, plan.tie_columns)
    if released.released is None:
        return None
    batch = Batch(released.released, NO_FRONTIER, UNKNOWN_TIME, order.max_time_us)
    return whole_task(plan, plan.rules[0], batch)


def before_filter(plan: Plan, records: pa.Table, source: str, offset: int) -> OfKey | None:
    """The stream of an event's key before the rule's filter; None if the event is no event of any stream."""
    planned = plan.rules[0]
    every = replace(planned, rule=replace(planned.rule, filter=None), filtering=None, takes_all=True)
    task = stream_of(replace(plan, rules=(every,)), records)
    rows = [] if task is None else np.flatnonzero(at_source(task.stream.events, source, offset)).tolist()
    return None if task is None or not rows else of_key(task, rows[0])


def _of_everything(plan: Plan) -> Plan:
    planned = plan.rules[0]
    names = tuple(field.name for field in planned.rule.schema.fields)
    back, absent = planned.looking_back, planned.absent
    back = None if back is None else replace(back, others_count=True)
    absent = None if absent is None else replace(absent, others_count=True)
    return replace(plan, rules=(replace(planned, columns=names, looking_back=back, absent=absent),))


def at_source(table: pa.Table, source: str, offset: int) -> Bools:
    """bool[n]: which rows have this source and offset."""
    if not table.num_rows:
        return np.zeros(0, np.bool_)
    same = pc.equal(array(table, SOURCE).cast(pa.string()), source).to_numpy(zero_copy_only=False)
    return same & (array(table, OFFSET).to_numpy() == offset)  # type: ignore[no-any-return]


def keys_of(task: SplitTask) -> list[str | None]:
    """The key of each segment of a stream; None for a rule without keys."""
    column = task.planned.key_column
    if column is None:
        return [None]
    texts = array(task.stream.events, column).take(pa.array(task.stream.starts)).cast(pa.string())
    return texts.to_pylist()  # type: ignore[no-any-return]


def places_of(rule: Rule, key: str | None, keys: Sequence[str | None]) -> list[int]:
    """Where among the keys of a stream that one is which a user gives, whatever the spelling of its numbers.

    Raises:
        ConfigError: the rule needs a key and none is given, or must not have one, or `key` is no such object.
    """
    names = ", ".join(rule.partition_by)
    if not rule.partition_by:
        if key is not None:
            do = "Leave --key out."
            raise ConfigError.of(
                "--key", f"must be left out: rule {rule.name} has one stream", one_line(key), do
            )
        return [0]
    example = json.dumps(dict.fromkeys(rule.partition_by, "A"), separators=(",", ":"))
    do = f"Give it as JSON, such as '{example}', or give source:offset."
    must = f"must say of which key the seq is: rule {rule.name} is partitioned by {names}"
    if key is None:
        raise ConfigError.of("--key", must, "nothing", do)
    try:
        wanted = _values(key)
    except ValueError:
        wanted = None
    if not isinstance(wanted, dict) or set(wanted) != set(rule.partition_by):
        raise ConfigError.of("--key", must, one_line(key), do)
    return [place for place, text in enumerate(keys) if text is not None and _values(text) == wanted]


def _values(key: str) -> Any:
    return json.loads(key, parse_float=Decimal, parse_int=Decimal)


def of_key(task: SplitTask, row: int) -> OfKey:
    """The stream of the key that a row of the whole stream has."""
    stream = task.stream
    segment = int(stream.segment[row])
    low, high = int(stream.segment_start[row]), int(stream.segment_end[row])
    events = stream.events.slice(low, high - low).combine_chunks()
    own = Stream(events, np.zeros(1, np.int64))
    horizon = task.horizon.of_segments(np.arange(len(stream.starts)) == segment)
    return OfKey(own, horizon, keys_of(task)[segment], row - low)


def matches_of_key(plan: Plan, records: pa.Table, own: OfKey) -> pa.Table:
    """The engine's matches of a key."""
    matches = run(plan, [records]).matches
    return matches if own.key is None else matches.filter(pc.equal(matches["key"], own.key))


def having(matches: pa.Table, own: OfKey) -> Ints:
    """int64[m], which of the matches of a key have the event."""
    events = matches["events"].combine_chunks()
    rows, inside = pc.list_parent_indices(events).to_numpy(), pc.list_flatten(events)
    seq, time = (inside.field(name).cast(pa.int64()).to_numpy() for name in ("seq", "event_time"))
    return np.unique(rows[(seq == own.stream.seq[own.row]) & (time == own.stream.time[own.row])])


def match_told(row: dict[str, Any]) -> Match:
    """A row of the table of matches as a `Match` of the answer."""
    members = [
        Member(
            one["component"], EventRef(one["seq"], iso_of(one["event_time"]), one["source"], one["offset"])
        )
        for one in row["events"]
    ]
    return Match(row["out_seq"], row["selection_id"], iso_of(row["matched_at"]), tuple(members))


@dataclass(frozen=True)
class LowerMatches:
    """The matches of all rules below a rule over rules.

    Attributes:
        level: the rule, and what it reads.
        of_rules: for each rule with matches, the table of them.
    """

    level: Level
    of_rules: Mapping[str, pa.Table]

    @staticmethod
    def of(level: Level, below: Plan, events: pa.Table) -> LowerMatches:
        """Run the rules below over the events of the input."""
        return LowerMatches(level, LocalRun(below).step(events, finish=True).of_rules)

    def events(self) -> pa.Table:
        """The matches of the rules that the rule reads, as its events."""
        found = matches_as_events(self.level, self.of_rules)
        if found is not None:
            return found
        fields = {
            field.name: pa.array([], ARROW_TYPES[field.type]) for field in self.level.plan.schema.fields
        }
        nowhere = pa.array([], pa.string()).dictionary_encode()
        ours = {TIME: pa.array([], pa.int64()), SOURCE: nowhere, OFFSET: pa.array([], pa.int64())}
        return pa.table({**ours, **fields})

    def made_of(self, source: str, offset: int, matches: tuple[Match, ...]) -> tuple[LowerMatch, ...]:
        """The lower matches that make up an event and these matches, upper levels first."""
        waiting = [(source, offset), *_positions(matches)]
        found: dict[tuple[str, int], LowerMatch] = {}
        for name, number in waiting:
            table = self.of_rules.get(name)
            if table is None or (name, number) in found or len(found) == MOST_LOWER:
                continue
            rows = np.flatnonzero(pc.equal(table["out_seq"], number).to_numpy())
            for row in table.take(pa.array(rows)).to_pylist():
                found[name, number] = LowerMatch(name, match_told(row))
                waiting += _positions([found[name, number].match])
        return tuple(found.values())


def _positions(matches: tuple[Match, ...] | list[Match]) -> Iterator[tuple[str, int]]:
    return ((one.event.source, one.event.offset) for match in matches for one in match.events)


def reading_all(rule: Rule) -> Rule:
    """The rule, changed to read all events of the input if it reads some, so that any can be asked about.

    Raises:
        ConfigError: a rule below has a Python operator, or the rule or one below has a fold in Python.
    """
    for one in [rule, *every_rule(rule.reads)] if rule.reads else []:
        if one.function is not None:
            must = "must neither have nor stand above a Python operator or fold, for none is called here"
            got, do = f"{rule.name}, with that of {one.name}", "Ask about a rule below."
            raise ConfigError.of("--rule", must, got, do)
    reads = (handing_on(rule.name, one.schema) if one.hands_on else one for one in rule.reads)
    return replace(rule, reads=tuple(reads))


@dataclass(frozen=True)
class Opened:
    """Selections, in the order of their ids, by rows of a stream.

    Attributes:
        ids: int64[s].
        openings: int64[s], the first row of each.
        closes: int64[s], the row that closed each; -1 if none did.
        ends: int64[s], the row after the last one of its window.
        over: bool[s], True if its window was over before the input ended.
        opened_us: int64[s].
        window_us: int64[s], when its window ends; beyond all times if no time ends it.
        by_event: True if events open the selections.
        each_opens: True if every initiator opens one.
        found: the matches in them; None for spans.
    """

    ids: Ints
    openings: Ints
    closes: Ints
    ends: Ints
    over: Bools
    opened_us: Ints
    window_us: Ints
    by_event: bool
    each_opens: bool = False
    found: Found | None = None

    def last_row(self) -> Ints:
        """int64[s], the last row at which each is open."""
        return np.where(self.closes >= 0, self.closes, self.ends - 1)

    def at(self, row: int) -> Ints:
        """int64[n], the indices of the selections that are open at a row."""
        return np.flatnonzero((self.openings <= row) & (self.last_row() >= row))

    def of(self, row: int) -> int | None:
        """The index of the selection that a row opened; if not every initiator opens one, that was open."""
        found = np.flatnonzero(self.openings == row) if self.each_opens else self.at(row)
        return int(found[-1]) if len(found) else None

    def before(self, row: int) -> Ints:
        """int64[0 or 1], the index of the last selection that was over before a row."""
        return np.flatnonzero(self.last_row() < row)[-1:]

    def waits(self, index: int) -> bool:
        """True if a selection was still open when the input ended."""
        return bool(self.closes[index] < 0 and not self.over[index])

    def told(self, stream: Stream, index: int, *, there: bool) -> Selection:
        """One selection as the answer has it, without components."""
        close = int(self.closes[index])
        state = "closed" if close >= 0 else "open" if self.waits(index) else "ended"
        return Selection(
            int(self.ids[index]),
            state,
            there,
            iso(self.opened_us[index]),
            ref(stream, int(self.openings[index])) if self.by_event else None,
            iso_or_none(self.window_us[index]),
            ref(stream, close) if close >= 0 else None,
        )


@dataclass(frozen=True)
class OfSpan:
    """The span that a stretch is.

    Attributes:
        selection_id: its number.
        waits: True if it was still open when the input ended.
        delivered: True if what is found in it is a match.
        opened: True if an event opened it: its attributes are columns of every event.
    """

    selection_id: int
    waits: bool
    delivered: bool
    opened: bool


@dataclass(frozen=True)
class Stretch:
    """One segment of a rule's stream, the pattern, and the engine's selections and matches in it.

    Attributes:
        stream: one segment.
        pattern: the pattern as in the rule, or an alternative of it.
        span: the span that the stretch is; None if it is the stream of a key.
        selections: those of the rule's pattern.
    """

    stream: Stream
    pattern: Pattern
    span: OfSpan | None
    selections: Opened

    @staticmethod
    def of(stream: Stream, pattern: Pattern, horizon: Horizon, span: OfSpan | None) -> Stretch:
        """Let the engine find the selections that the pattern's context opens, and the matches."""
        stream = with_members(stream, pattern)
        searched = with_opening_columns(pattern) if span is not None and span.opened else pattern
        way, within = context_of(pattern).way, pattern.within
        found = match_bounded(way, stream, searched, horizon)
        openings = found.openings
        ids = np.arange(len(openings))
        if way.every_initiator_opens and OPENING in stream.events.column_names:
            ids = numbers(stream.events, OPENING)[openings]
        window_us = horizon.segment_ends(stream, openings)
        over = horizon.over_by_itself(stream, openings, within)
        ends = window_end(stream, openings, within)
        if within is not None and within.time_us is not None:
            window_us = np.minimum(window_us, end_times(stream, openings, ends, within, window_us))
        opened = (ids, openings, found.closes, ends, over, stream.time[openings], window_us)
        selections = Opened(*opened, True, way.every_initiator_opens, found)
        return Stretch(stream, pattern, span, selections)

    @property
    def alternatives(self) -> list[tuple[Stretch, Sequence[int]]]:
        """The stretch for each alternative of a disjunction of sequences, with the components of that.

        For other patterns it is the stretch itself.
        """
        if self.pattern.order != "disjunction":
            return [(self, range(len(self.pattern.components)))]
        search = Alternatives(self.stream, self.inside(self.pattern))
        parts = zip(search.components, search.parts, strict=True)
        return [
            (replace(self, stream=part.stream, pattern=alternative(self.pattern, own)), own)
            for own, part in parts
        ]

    def inside(self, pattern: Pattern) -> Pattern:
        """A pattern as it is searched here."""
        return with_opening_columns(pattern) if self.span is not None and self.span.opened else pattern

    def member(self, row: int, component: str = "") -> Member:
        """The event of a row with the name of its component; of a disjunction, with that of its member."""
        members = (one.members for one in self.pattern.components if one.name == component)
        for member in next(members, ()):
            if has_bit(self.stream.mask[row : row + 1], member.bit)[0]:
                component = member.name
        return Member(component, ref(self.stream, row))

    def selection_of(self, row: int) -> int | None:
        """The number of the selection that a row opened, or in which it stands."""
        at = self.selections.of(row)
        return (
            self.span.selection_id
            if self.span is not None
            else None
            if at is None
            else int(self.selections.ids[at])
        )


def ref(stream: Stream, row: int) -> EventRef:
    """The reference to the event of a row of a stream."""
    source, offset = stream.events[SOURCE][row].as_py(), stream.events[OFFSET][row].as_py()
    return EventRef(int(stream.seq[row]), iso(stream.time[row]), source, offset)


def in_values(columns: Columns, expr: Expr, stated: Expr | None = None) -> tuple[str, dict[str, object]]:
    """Describe a false condition: ``b.x = 1 is false with b.x = 2``; and return the values in it.

    Args:
        columns: one row of what the condition reads.
        expr: the condition.
        stated: the same condition as in the rule, where columns may have other names.
    """

    def value(node: Expr) -> object:
        return plain(evaluate(node, columns)[0].as_py())

    told, whole = stated or expr, "null" if value(expr) is None else "false"
    nodes = zip(walk(expr), walk(told), strict=True)
    kinds = Column | Previous | Aggregate
    read = {canonical_text(name): value(node) for node, name in nodes if isinstance(node, kinds)}
    listed = ", ".join(f"{name} = {shown(one)}" for name, one in read.items())
    return f"{canonical_text(told)} is {whole} with {listed}", read


def columns_of(
    stream: Stream, names: Mapping[str | None, tuple[int, ...]], rows: Ints, roles: Ints
) -> MatchColumns:
    """What conditions read of candidates, by the names of roles; `rows` and `roles` are int64[m, n]."""
    none, offsets = np.zeros(len(rows), np.int64), np.arange(len(rows) + 1) * rows.shape[1]
    of = Found(none[:1], none[:1] - 1, none, offsets, rows.ravel(), roles.ravel().astype(np.int8))
    return MatchColumns(stream, of, names, {})


def with_decisions(told: Iterable[Selection], matches: pa.Table, newest_us: int) -> tuple[Selection, ...]:
    """Add to closed selections when the end of a window of time, or of the input, decided their matches.

    Args:
        told: selections of the stream of a key.
        matches: those of the key.
        newest_us: the time of the newest record of the input.
    """
    events = matches["events"].combine_chunks()
    times = events.values.field("event_time").cast(pa.int64()).to_numpy()
    us = matched_us(matches)
    later = us > times[events.offsets.to_numpy()[1:] - 1]  # than the match's last event
    decided: dict[int, int] = {}
    for number, one in zip(
        matches["selection_id"].to_numpy()[later].tolist(), us[later].tolist(), strict=True
    ):
        decided[number] = max(one, decided.get(number, one))
    return tuple(_decided(one, decided.get(one.selection_id), newest_us) for one in told)


def _decided(one: Selection, us: int | None, newest_us: int) -> Selection:
    if us is None or one.closed_by is None or one.window_ends is None:  # no time ends it
        return one
    return replace(one, decided_at=iso(us), decided_by="input" if us > newest_us else "window")


def spans_in(rule: Rule, stream: Stream, horizon: Horizon) -> Opened:
    """The spans of a rule over the stream of a key."""
    spans = spans_of(stream, rule, horizon, NO_FRONTIER, np.zeros(1, np.int64))
    assert horizon.seen_us is not None
    over = spans.resolved_at.time <= horizon.seen_us
    window_us = np.full(len(spans.start), np.iinfo(np.int64).max)
    if isinstance(rule.span, GridSpan):
        window_us = spans.opened_us + rule.span.size_us
    elif isinstance(rule.span, PredicateSpan):
        window_us = spans.opened_us + rule.span.within_us
    elif isinstance(rule.span, SessionSpan):
        window_us = session_ends_us(rule.span, spans.opened_us, stream.time[spans.end - 1])
    grid = isinstance(rule.span, GridSpan)
    return Opened(
        spans.selection_id, spans.start, spans.close, spans.end, over, spans.opened_us, window_us, not grid
    )
