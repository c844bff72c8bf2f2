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
    NO_FRONTIER,
    OFFSET,
    OPEN_BIT,
    OPENING,
    SEQ,
    SOURCE,
    SPENT,
    TIME,
    UNKNOWN_TIME,
    Bools,
    array,
    chosen,
    has_bit,
    numbers,
    segments_of,
    with_column,
)
from spark_pace.core.match.contexts import context_of
from spark_pace.core.match.contexts.context import OneOpen, UsingUp, Way
from spark_pace.core.match.window import Horizon
from spark_pace.core.plan.buckets import buckets_of
from spark_pace.core.plan.plan import Plan, RulePlan, bits_column
from spark_pace.core.plan.rule import PredicateSpan
from spark_pace.core.split.carry.carry import Carry, Touched, distinct_texts
from spark_pace.core.split.carry.streams import Fresh, keep, pass_by, segments_of_keys
from spark_pace.core.split.carry.wake import always_looks, wakes
from spark_pace.core.split.free import split_free
from spark_pace.core.split.lanes import Lane
from spark_pace.core.split.one_open import split_one_open
from spark_pace.core.split.spans import split_spans
from spark_pace.core.split.task import Split, SplitTask
from spark_pace.core.split.using_up import split_using_up


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

    @property
    def ends(self) -> bool:
        """Whether the input has ended."""
        return self.frontier_us == UNKNOWN_TIME


def _way(planned: RulePlan) -> Way | None:
    """The way of the rule's context; None where the rule has a span, which decides instead."""
    if planned.rule.span is not None:
        return None
    assert planned.rule.pattern is not None
    return context_of(planned.rule.pattern).way


def advance_unit(plan: Plan, planned: RulePlan, bucket: int, carry: Carry, batch: Batch) -> list[Lane]:
    """Process the events that were released.

    Args:
        plan: the plan.
        planned: the unit's rule.
        bucket: the unit's bucket.
        carry: the unit's state; it is changed in place.
        batch: what was released.

    Returns:
        lanes with what may be releasable now. At the end of the input, those selections are counted as open
        whose windows only that end has closed.
    """
    fresh, woken = _fresh(plan, planned, bucket, batch), _woken(planned, carry, batch)
    carry.unseen = False
    texts = distinct_texts([fresh.texts, woken])
    if not len(texts):
        return []
    touched = carry.find(texts)
    numbered = _number(planned, touched, fresh)
    look = pc.is_in(texts, value_set=woken).to_numpy(zero_copy_only=False)
    look |= _looked_at(planned, touched, numbered)
    left = pass_by(touched, numbered, look, _opens(planned, numbered))
    lanes: list[Lane] = []
    segments = segments_of_keys(planned.key_column, carry, touched, numbered, look)
    if segments is not None:
        horizon = Horizon(batch.frontier_us)
        if batch.ends:
            complete = np.full(len(segments.stream.starts), True)
            horizon = Horizon(batch.frontier_us, complete, batch.seen_us)
        counters = touched.next_selection[segments.key]
        task = SplitTask(plan, planned, bucket, segments.stream, horizon, batch.passed_us, counters)
        split = _split(task)
        lanes = split.lanes
        keep(planned.key_column, touched, segments, split, left)
    carry.put(touched, left.since, *left.events())
    return lanes


def _split(task: SplitTask) -> Split:
    way = _way(task.planned)
    if way is None:
        return split_spans(task)
    if isinstance(way, OneOpen):
        return split_one_open(task, way)
    if isinstance(way, UsingUp):
        return split_using_up(task, way)
    return split_free(task, way)


def _fresh(plan: Plan, planned: RulePlan, bucket: int, batch: Batch) -> Fresh:
    """The events of the unit's stream, with ``@mask`` instead of the bits."""
    released = batch.released
    nothing = Fresh(None, pa.array([], pa.string()), np.zeros(0, np.int64))
    if released is None:
        return nothing
    words: dict[str, npt.NDArray[np.uint64]] = {}

    def held(number: int) -> Bools:
        name, bit = bits_column(number)
        word = words.setdefault(name, numbers(released, name))
        return has_bit(word, bit)

    mask = np.zeros(released.num_rows, np.uint16)
    for bit, predicate in planned.bits:
        mask |= held(predicate).astype(np.uint16) << np.uint16(bit)
    mine = held(plan.member_bit(planned))
    if planned.key_column is not None:
        keys = array(released, planned.key_column)
        mine &= buckets_of(keys.dictionary, plan.buckets)[keys.indices.to_numpy()] == bucket
    if not mine.any():
        return nothing
    events = with_column(released.select([TIME, SOURCE, OFFSET, *planned.columns]), MASK, mask)
    events = chosen(events, mine)
    if planned.key_column is None:
        return Fresh(events, pa.array([""], pa.string()), np.zeros(events.num_rows, np.int64))
    keys = array(released, planned.key_column)
    used, owner = np.unique(keys.indices.to_numpy()[mine], return_inverse=True)
    return Fresh(events, keys.dictionary.take(pa.array(used)), owner)


def _woken(planned: RulePlan, carry: Carry, batch: Batch) -> pa.Array:
    """string[k], the keys to look at because time has passed."""
    if batch.ends or carry.unseen:
        return carry.living()
    if batch.passed_us == NO_FRONTIER:
        return distinct_texts([])
    return distinct_texts(
        [carry.due(wake) for wake in wakes(planned.rule, batch.passed_us, batch.frontier_us)]
    )


def _number(planned: RulePlan, touched: Touched, fresh: Fresh) -> Fresh:
    """Give each event its `seq` and the number of openings before it; the counters of its key move on."""
    if fresh.events is None:
        return fresh
    keys = fresh.owner
    order = np.argsort(keys, kind="stable")
    starts = segments_of(keys[order])
    counts = np.diff(np.append(starts, len(order)))
    present = keys[order][starts]
    seq = np.empty(len(keys), np.int64)
    seq[order] = np.arange(len(order)) - np.repeat(starts - touched.next_seq[present], counts)
    touched.next_seq[present] += counts
    events = with_column(fresh.events, SEQ, seq)
    if not _counts_openings(planned):
        return Fresh(events, fresh.texts, keys)
    opens = _initiators(planned, numbers(events, MASK))[order].astype(np.int64)
    before = np.cumsum(opens) - opens
    opening = np.empty(len(keys), np.int64)
    opening[order] = before - np.repeat(before[starts] - touched.next_selection[present], counts)
    touched.next_selection[present] += np.add.reduceat(opens, starts)
    events = with_column(events, OPENING, opening)
    if isinstance(_way(planned), UsingUp):
        events = with_column(events, SPENT, np.zeros(len(keys), np.int8))
    return Fresh(events, fresh.texts, keys)


def _counts_openings(planned: RulePlan) -> bool:
    """Whether every initiator opens a selection, so that `next_selection` counts initiators."""
    way = _way(planned)
    return isinstance(planned.rule.span, PredicateSpan) if way is None else way.every_initiator_opens


def _opens(planned: RulePlan, fresh: Fresh) -> Bools:
    """bool[n], which events open a selection, wherever in their key's stream they stand."""
    if fresh.events is None or not _counts_openings(planned):
        return np.zeros(len(fresh.owner), np.bool_)
    return _initiators(planned, numbers(fresh.events, MASK))


def _initiators(planned: RulePlan, mask: npt.NDArray[np.uint16]) -> Bools:
    return has_bit(mask, OPEN_BIT if isinstance(planned.rule.span, PredicateSpan) else 0)


def _looked_at(planned: RulePlan, touched: Touched, fresh: Fresh) -> Bools:
    """bool[k], the keys of which new events may close selections or end matches.

    The other keys only get more events. No window of these is over: older ones would be over too, which wakes
    the key.
    """
    if always_looks(planned.rule):
        return np.ones(len(touched.texts), np.bool_)
    look = touched.rows == 0
    if fresh.events is not None:
        assert planned.rule.pattern is not None
        last = len(planned.rule.pattern.components) - 1
        look[fresh.owner[has_bit(numbers(fresh.events, MASK), last)]] = True
    return look  # type: ignore[no-any-return]
