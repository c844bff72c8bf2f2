"""One unit, a rule's bucket of partition keys: number its events, decide its selections, cut lanes.

How the unit's stream is split depends on the rule's span or on the way of its context, see `_split`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.columns import (
    MASK,
    OFFSET,
    OPEN_BIT,
    OPENING,
    SEQ,
    SOURCE,
    SPENT,
    TIME,
    UNKNOWN_TIME,
    Bools,
    Ints,
    array,
    chosen,
    concat,
    numbers,
    segments_of,
    with_column,
)
from spark_pace.core.match.contexts import context_of
from spark_pace.core.match.contexts.context import OneOpen, UsingUp, Way
from spark_pace.core.match.stream import Stream
from spark_pace.core.match.window import Horizon
from spark_pace.core.plan.plan import Plan, RulePlan, bits_column, bucket_of
from spark_pace.core.plan.rule import PredicateSpan
from spark_pace.core.split.free import split_free
from spark_pace.core.split.lanes import Lane
from spark_pace.core.split.one_open import split_one_open
from spark_pace.core.split.spans import split_spans
from spark_pace.core.split.task import Split, SplitTask
from spark_pace.core.split.using_up import split_using_up


@dataclass
class UnitState:
    """What a unit keeps between two batches.

    Attributes:
        carry: the events that open selections still need, by (key, stream order); None where there are none.
        keys: string array of the partition keys met so far; one empty text without `partition_by`.
        next_seq: int64[keys], the `seq` of each key's next event.
        next_selection: int64[keys], the number of each key's next selection.
    """

    carry: pa.Table | None
    keys: pa.Array
    next_seq: Ints
    next_selection: Ints


@dataclass(frozen=True)
class Batch:
    """The events that a batch has released.

    Attributes:
        released: events in stream order; None where there are none.
        passed_us: the frontier before.
        frontier_us: the frontier now.
        seen_us: the greatest event time seen.
    """

    released: pa.Table | None
    passed_us: int
    frontier_us: int
    seen_us: int


def new_unit(planned: RulePlan) -> UnitState:
    """The state before the first event."""
    keys = pa.array([] if planned.key_column else [""], pa.string())
    return UnitState(None, keys, np.zeros(len(keys), np.int64), np.zeros(len(keys), np.int64))


def _way(planned: RulePlan) -> Way | None:
    """The way of the rule's context; None where the rule has a span, which decides instead."""
    if planned.rule.span is not None:
        return None
    assert planned.rule.pattern is not None
    return context_of(planned.rule.pattern).way


def advance_unit(
    plan: Plan, planned: RulePlan, bucket: int, state: UnitState, batch: Batch
) -> tuple[list[Lane], int]:
    """Process the events that were released.

    Args:
        plan: the plan.
        planned: the unit's rule.
        bucket: the unit's bucket.
        state: the unit's state; it is changed in place.
        batch: what was released.

    Returns:
        lanes with what may be releasable now; and how many selections are open. At the end of the input,
        those count as open whose windows only that end has closed.
    """
    fresh = None
    if batch.released is not None:
        fresh = _number(planned, state, _own_events(plan, planned, bucket, batch.released))
    parts = [table for table in (state.carry, fresh) if table is not None and table.num_rows]
    if not parts:
        return [], 0
    stream, segment_key = _sorted_stream(planned, state, concat(parts))
    horizon = Horizon(batch.frontier_us)
    if batch.frontier_us == UNKNOWN_TIME:
        horizon = Horizon(batch.frontier_us, np.full(len(stream.starts), True), batch.seen_us)
    counters = state.next_selection[segment_key]
    split = _split(SplitTask(plan, planned, bucket, stream, horizon, batch.passed_us, counters))
    carried = stream.events if split.events is None else split.events
    state.carry = chosen(carried, split.keep) if split.keep.any() else None
    if split.next_selection is not None:
        state.next_selection[segment_key] = split.next_selection
    return split.lanes, split.open


def _split(task: SplitTask) -> Split:
    way = _way(task.planned)
    if way is None:
        return split_spans(task)
    if isinstance(way, OneOpen):
        return split_one_open(task, way)
    if isinstance(way, UsingUp):
        return split_using_up(task, way)
    return split_free(task, way)


def _own_events(plan: Plan, planned: RulePlan, bucket: int, released: pa.Table) -> pa.Table:
    """The events of the unit's stream, with ``@mask`` instead of the bits."""
    words: dict[str, npt.NDArray[np.uint64]] = {}

    def held(number: int) -> Bools:
        name, bit = bits_column(number)
        word = words.setdefault(name, numbers(released, name))
        return ((word >> np.uint64(bit)) & np.uint64(1)).astype(np.bool_)  # type: ignore[no-any-return]

    mask = np.zeros(released.num_rows, np.uint16)
    for bit, predicate in planned.bits:
        mask |= held(predicate).astype(np.uint16) << np.uint16(bit)
    mine = held(plan.member_bit(planned))
    if planned.key_column is not None:
        mine &= _in_bucket(array(released, planned.key_column), bucket, plan.buckets)
    names = [TIME, SOURCE, OFFSET, *([planned.key_column] if planned.key_column else []), *planned.columns]
    events = with_column(released.select(names), MASK, mask)
    return chosen(events, mine)


def _in_bucket(keys: pa.DictionaryArray, bucket: int, buckets: int) -> Bools:
    if buckets == 1:
        return np.full(len(keys), True)
    of_key = np.array([bucket_of(text, buckets) == bucket for text in keys.dictionary.to_pylist()], np.bool_)
    return of_key[keys.indices.to_numpy()]  # type: ignore[no-any-return]


def _number(planned: RulePlan, state: UnitState, fresh: pa.Table) -> pa.Table:
    """Give each event its `seq` and the number of openings before it; the counters of the state move on."""
    keys = _key_numbers(planned, state, fresh)
    order = np.argsort(keys, kind="stable")
    starts = segments_of(keys[order])
    counts = np.diff(np.append(starts, len(order)))
    present = keys[order][starts]
    seq = np.empty(len(keys), np.int64)
    seq[order] = np.arange(len(order)) - np.repeat(starts - state.next_seq[present], counts)
    state.next_seq[present] += counts
    fresh = with_column(fresh, SEQ, seq)
    if not _counts_openings(planned):
        return fresh
    opens = _initiators(planned, numbers(fresh, MASK))[order].astype(np.int64)
    before = np.cumsum(opens) - opens
    opening = np.empty(len(keys), np.int64)
    opening[order] = before - np.repeat(before[starts] - state.next_selection[present], counts)
    state.next_selection[present] += np.add.reduceat(opens, starts) if len(starts) else 0
    fresh = with_column(fresh, OPENING, opening)
    if isinstance(_way(planned), UsingUp):
        fresh = with_column(fresh, SPENT, np.zeros(len(keys), np.int8))
    return fresh


def _counts_openings(planned: RulePlan) -> bool:
    """Whether every initiator opens a selection, so that `next_selection` counts initiators."""
    way = _way(planned)
    return isinstance(planned.rule.span, PredicateSpan) if way is None else way.every_initiator_opens


def _initiators(planned: RulePlan, mask: npt.NDArray[np.uint16]) -> Bools:
    bit = OPEN_BIT if isinstance(planned.rule.span, PredicateSpan) else 0
    return (mask >> np.uint16(bit)) & np.uint16(1) == 1  # type: ignore[no-any-return]


def _key_numbers(planned: RulePlan, state: UnitState, events: pa.Table) -> Ints:
    """int64[n], for each event the place of its key in the state; new keys are added to the state."""
    if planned.key_column is None:
        return np.zeros(events.num_rows, np.int64)
    column = array(events, planned.key_column)
    used, codes = np.unique(column.indices.to_numpy(), return_inverse=True)
    texts = column.dictionary.take(pa.array(used))
    place = pc.index_in(texts, value_set=state.keys)
    new = texts.filter(pc.is_null(place))
    places = pc.fill_null(place, -1).to_numpy().astype(np.int64)
    places[places < 0] = np.arange(len(new)) + len(state.keys)
    if len(new):
        state.keys = pa.concat_arrays([state.keys, new])
        state.next_seq = np.append(state.next_seq, np.zeros(len(new), np.int64))
        state.next_selection = np.append(state.next_selection, np.zeros(len(new), np.int64))
    return places[codes]  # type: ignore[no-any-return]


def _sorted_stream(planned: RulePlan, state: UnitState, events: pa.Table) -> tuple[Stream, Ints]:
    """The events sorted by (key, stream order), and for each segment the place of its key in the state."""
    if planned.key_column is None:
        return Stream(events, np.zeros(1, np.int64)), np.zeros(1, np.int64)
    keys = _key_numbers(planned, state, events)
    order = np.argsort(keys, kind="stable")
    starts = segments_of(keys[order])
    return Stream(events.take(pa.array(order)), starts), keys[order][starts]
