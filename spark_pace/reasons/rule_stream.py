"""Runs the engine to get a rule's whole stream and its matches, and finds an event in them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.columns import NO_FRONTIER, OFFSET, SOURCE, UNKNOWN_TIME, Bools, Ints
from spark_pace.core.intake.pack import pack
from spark_pace.core.intake.sift import Past, sift
from spark_pace.core.local_run import run
from spark_pace.core.match.stream import Stream
from spark_pace.core.match.window import Horizon
from spark_pace.core.order.order import Order
from spark_pace.core.plan.plan import Plan
from spark_pace.core.plan.rule import Pattern, Rule
from spark_pace.core.plan.shape import optional_last_of
from spark_pace.core.split.batch import Batch
from spark_pace.core.split.task import SplitTask
from spark_pace.core.split.unit import whole_task
from spark_pace.core.tables import array
from spark_pace.errors import ConfigError, one_line
from spark_pace.reasons.answer_parts import EventRef, Match, Member
from spark_pace.reasons.stretch import Taken
from spark_pace.reasons.wording import iso_of

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


def matches_of(plan: Plan, records: pa.Table, own: OfKey) -> tuple[pa.Table, list[Taken]]:
    """The engine's matches in the stream of a key: the table, and the rows of each."""
    matches = matches_of_key(plan, records, own)
    matches = matches.filter(pc.greater(pc.list_value_length(matches["events"]), 0))
    if not matches.num_rows:
        return matches, []
    events = matches["events"].combine_chunks()
    offsets = events.offsets.to_numpy().astype(np.int64)
    flat = events.values
    seq, time = flat.field("seq").to_numpy(), flat.field("event_time").cast(pa.int64()).to_numpy()
    first = np.minimum(seq[offsets[:-1]], own.stream.rows - 1)
    here = (first == seq[offsets[:-1]]) & (own.stream.time[first] == time[offsets[:-1]])
    here &= own.stream.seq[first] == first
    matches = matches.filter(pa.array(here))
    completed = offsets[1:] - 1 - _behind(plan.rules[0].rule.pattern, flat, offsets)
    rows = [seq[lo:hi] for lo, hi, kept in zip(offsets[:-1], offsets[1:], here, strict=True) if kept]
    numbers: Ints = matches["out_seq"].to_numpy()
    told = zip(numbers.tolist(), rows, seq[completed[here]].tolist(), strict=True)
    return matches, [Taken(number, taken, end) for number, taken, end in told]


def _behind(pattern: Pattern | None, events: pa.StructArray, offsets: Ints) -> Ints:
    """int64[m], how many events of an optional component in last place each match has."""
    component = None if pattern is None else optional_last_of(pattern)
    if pattern is None or component is None:
        return np.zeros(len(offsets) - 1, np.int64)
    name = pattern.components[component].name
    own = pc.equal(events.field("component").cast(pa.string()), name).to_numpy(zero_copy_only=False)
    return np.diff(np.append(0, np.cumsum(own))[offsets])


def match_told(row: dict[str, Any]) -> Match:
    """A row of the table of matches as a `Match` of the answer."""
    members = [
        Member(
            one["component"], EventRef(one["seq"], iso_of(one["event_time"]), one["source"], one["offset"])
        )
        for one in row["events"]
    ]
    return Match(row["out_seq"], row["selection_id"], iso_of(row["matched_at"]), tuple(members))
