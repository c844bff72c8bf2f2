"""Runs the engine to get a rule's whole stream, its matches, and those of the rules below it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.columns import NO_FRONTIER, OFFSET, SOURCE, TIME, UNKNOWN_TIME, Bools, Ints
from spark_pace.core.expr import ARROW_TYPES
from spark_pace.core.intake.pack import pack
from spark_pace.core.intake.sift import Past, sift
from spark_pace.core.levels import matches_as_events
from spark_pace.core.local_run import LocalRun, run
from spark_pace.core.match.stream import Stream
from spark_pace.core.match.window import Horizon
from spark_pace.core.order.order import Order
from spark_pace.core.plan.lower_rules import every_rule, handing_on
from spark_pace.core.plan.plan import Level, Plan
from spark_pace.core.plan.rule import Rule
from spark_pace.core.split.batch import Batch
from spark_pace.core.split.task import SplitTask
from spark_pace.core.split.unit import whole_task
from spark_pace.core.tables import array
from spark_pace.errors import ConfigError, one_line
from spark_pace.reasons.answer import EventRef, LowerMatch, Match, Member, iso_of

MOST_MATCHES = 100  # matches in the answer


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
    offsets = events.offsets.to_numpy().astype(np.int64)
    seq, time = (
        events.values.field(name).cast(pa.int64()).to_numpy()[offsets[0] : offsets[-1]]
        for name in ("seq", "event_time")
    )
    with_it = (seq == own.stream.seq[own.row]) & (time == own.stream.time[own.row])
    return np.unique(np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))[with_it])


def match_told(row: dict[str, Any]) -> Match:
    """A row of the table of matches as a `Match` of the answer."""
    members = [
        Member(
            one["component"], EventRef(one["seq"], iso_of(one["event_time"]), one["source"], one["offset"])
        )
        for one in row["events"]
    ]
    return Match(row["out_seq"], row["selection_id"], iso_of(row["matched_at"]), tuple(members))


MOST_LOWER = 100  # matches in the answer


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
    for lower in every_rule(rule.reads):
        if lower.function is not None:
            what = "operator" if lower.operator is not None else "fold"
            must = f"must stand above rules without a Python {what}, for none is called here"
            raise ConfigError.of(
                "--rule", must, f"{rule.name} above {lower.name}", f"Ask about {lower.name}."
            )
    if rule.reads and rule.function is not None:
        must, got = "must have no Python fold above other rules, for none is called here", f"{rule.name}"
        raise ConfigError.of("--rule", must, got, f"Ask about {rule.reads[0].name}.")
    reads = (handing_on(rule.name, one.schema) if one.hands_on else one for one in rule.reads)
    return replace(rule, reads=tuple(reads))
