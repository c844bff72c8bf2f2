"""Advances a unit, a rule's bucket of partition keys: number its events, decide its selections, cut lanes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.expr import EventColumns, evaluate
from spark_pace.core.match.contexts.contexts import OneOpen, UsingUp
from spark_pace.core.match.method import Method, method_of
from spark_pace.core.match.release import NOTHING_WAITS, Resolution, Waiting
from spark_pace.core.match.stream import Horizon
from spark_pace.core.plan.meaning import attributes_of
from spark_pace.core.plan.plan import Panes, Plan, RulePlan, bits_column
from spark_pace.core.plan.shape import initiator_bits
from spark_pace.core.ranks import buckets_of
from spark_pace.core.split.carry.carry import Carry, Touched, Wanted, Whole, distinct_texts
from spark_pace.core.split.carry.earlier_events import earlier_events, kept_of_keys
from spark_pace.core.split.carry.event_numbers import count_on, next_selections, number, opens
from spark_pace.core.split.carry.examined_keys import Forgetting, Wake, opening_bit, wakes
from spark_pace.core.split.carry.key_streams import (
    Fresh,
    Left,
    Segments,
    join_values,
    keep,
    last_values_of,
    looked_at,
    mask_of,
    pass_by,
    segments_of_keys,
    segments_with,
    without_candidates,
)
from spark_pace.core.split.folds_and_row_patterns import columns_of_states, split_fold, split_rows
from spark_pace.core.split.panes import CarriedPanes, in_panes, keep_panes, split_panes
from spark_pace.core.split.selections import split_one_open, split_parallel, split_spans
from spark_pace.core.split.splitter_matches import is_much_carried, split_much_carried, split_using_up
from spark_pace.core.split.task import Batch, Lane, Share, Split, SplitTask, with_new_rows, without_ended
from spark_pace.core.tables import (
    JOIN,
    MASK,
    NO_FRONTIER,
    NO_ROW,
    OFFSET,
    OPENING,
    SOURCE,
    TIME,
    Bools,
    array,
    chosen,
    has_bit,
    numbers,
    with_column,
)


@dataclass(frozen=True)
class Turn:
    """The arguments of a unit's turn in a batch.

    Attributes:
        plan: the plan.
        share: the unit's rules and bucket.
        carry: the unit's state.
        batch: the batch.
        method: how the rule's matches are found.
        wanted: the values that the rule needs of its keys.
    """

    plan: Plan
    share: Share
    carry: Carry
    batch: Batch
    method: Method
    wanted: Wanted

    @property
    def planned(self) -> RulePlan:
        """The unit's rule, or the first of those that share panes."""
        return self.share.rules[0]

    @property
    def segment_column(self) -> str | None:
        """The column with the text of each segment's key; None if there is one segment."""
        return self.planned.key_column if self.method.join is None else JOIN

    def task(self, touched: Touched, segments: Segments, resolution: Resolution | None) -> SplitTask:
        """The task of splitting the streams of the keys that are examined."""
        batch, whole = self.batch, self.carry.whole
        horizon = Horizon(batch.frontier_us, ends_us=segments.ends_us)
        if segments.ends_us is not None:
            horizon = replace(horizon, complete=segments.ends_us < batch.frontier_us)
        if batch.ends:
            complete = np.full(len(segments.key), True)
            horizon = replace(horizon, complete=complete, seen_us=batch.seen_us)
        known = next_selections(touched, self.share.counters.names)
        counters = [np.where(segments.anew, 0, of_keys[segments.key]) for of_keys in known]
        if whole is not None:
            counters = [np.full(len(segments.key), whole.next_selection)]
        return SplitTask(
            self.plan, self.share, segments.stream, horizon, batch.passed_us, counters,
            self.method, resolution, batch.prices.get(self.planned.index),
            last_values_of(touched, segments, columns_of_states(self.planned.rule)), batch.fold,
        )  # fmt: skip


def advance_unit(plan: Plan, share: Share, carry: Carry, batch: Batch) -> tuple[list[Lane], Waiting]:
    """Process the released events of a unit.

    Args:
        plan: the plan.
        share: the unit's rules and bucket.
        carry: the unit's state; it is changed in place.
        batch: the released events.

    Returns:
        The lanes with selections that may have matches to send now, and how the matches that wait have
        changed (see `Split`). At the end of the input, selections whose windows only that end has closed
        count as open.
    """
    planned = share.rules[0]
    mine, method = _mine(plan, planned, share.bucket, batch.released), method_of(planned.rule)
    if method.join is not None and carry.whole is None:
        carry.whole = Whole()
    turn = Turn(plan, share, carry, batch, method, _wanted(share, batch))
    lanes, waiting = list[Lane](), list[Waiting]()
    fresh = _fresh(turn, mine)
    if share.panes is not None:
        fresh = in_panes(share.panes, fresh)
    for part, woken in _parts(turn, fresh):
        cut, changed = _advance_keys(turn, part, woken)
        lanes += cut
        waiting.append(changed)
        carry.let_go()
    if batch.ends:
        carry.tidy(len(carry.chunks), turn.wanted.forgetting)
    numbered = (replace(lane.header, number=place) for place, lane in enumerate(lanes))
    lanes = [replace(lane, header=header) for lane, header in zip(lanes, numbered, strict=True)]
    return lanes, Waiting.sum(waiting)


def _wanted(share: Share, batch: Batch) -> Wanted:
    """The values that the rule needs of its keys in this batch."""
    planned = share.rules[0]
    after_us = planned.rule.forget_key_after_us
    forgetting = None if after_us is None else Forgetting(after_us, batch.passed_us, batch.frontier_us)
    kept = [*planned.last_values, *kept_of_keys(planned.absent), *columns_of_states(planned.rule)]
    return Wanted(forgetting, pa.schema([*kept, *share.counters]))


def whole_task(plan: Plan, planned: RulePlan, batch: Batch) -> SplitTask | None:
    """A rule's whole stream as one task, for `spark_pace.reasons`: the batch has all of a bounded input.

    None if the stream is empty. The plan must have one bucket.
    """
    mine, carry = _mine(plan, planned, 0, batch.released), Carry()
    in_one = replace(method_of(planned.rule), join=None, pattern=planned.rule.pattern)
    share = Share.of([planned], 0)
    turn = Turn(plan, share, carry, batch, in_one, _wanted(share, batch))
    fresh = _fresh(turn, mine)
    touched = carry.find(fresh.texts, turn.wanted)
    numbered, look = _numbered(turn, touched, fresh), np.ones(len(fresh.texts), np.bool_)
    segments = segments_of_keys(planned.key_column, carry, touched, numbered, look)
    return None if segments is None else turn.task(touched, segments, None)


def _parts(turn: Turn, fresh: Fresh) -> Iterator[tuple[Fresh, pa.Array]]:
    """Parts of the batch: the events, and the keys (string[k]) to examine because time has passed.

    At the end of the input all that is carried is examined. It may not fit into memory, so keys come in
    parts.
    """
    carry, batch = turn.carry, turn.batch
    if not batch.ends:
        yield fresh, _woken(turn)
    elif turn.planned.key_column is None:
        yield fresh, carry.living(turn.wanted)
    else:
        for hashes in carry.hash_ranges():
            yield fresh.within(hashes), carry.living(turn.wanted, hashes)


def _advance_keys(turn: Turn, fresh: Fresh, woken: pa.Array) -> tuple[list[Lane], Waiting]:
    """Process the released events of some keys, and examine the woken keys."""
    planned, carry = turn.planned, turn.carry
    texts = distinct_texts([fresh.texts, woken])
    if not len(texts):
        return [], NOTHING_WAITS
    touched = carry.find(texts, turn.wanted)
    numbered = _numbered(turn, touched, fresh)
    if (panes := turn.share.panes) is not None:
        return _advance_panes(turn, panes, touched, numbered), NOTHING_WAITS
    look = pc.is_in(texts, value_set=woken).to_numpy(zero_copy_only=False)
    look |= looked_at(planned, touched, numbered)
    left = pass_by(touched, numbered, look, opens(planned, turn.method.way, numbered))
    lanes, waiting = list[Lane](), NOTHING_WAITS
    segments = segments_of_keys(turn.segment_column, carry, touched, numbered, look)
    if segments is not None:
        task = turn.task(touched, segments, _resolution(turn))
        split = without_ended(_split(task), task)
        if split.next_selections:
            count_on(touched, turn.share.counters.names, segments.key, split.next_selections)
        keep(turn.segment_column, touched, segments, split, left)
        lanes = split.lanes + _lanes_of_waiting(turn, split, texts.filter(pa.array(look)))
        waiting = split.waiting
    (carry.add if turn.batch.ends else carry.put)(touched, left.since, *left.events())
    return lanes, waiting


def _advance_panes(turn: Turn, panes: Panes, touched: Touched, fresh: Fresh) -> list[Lane]:
    """Process the rows of panes of some keys: every key is examined, but only its last carried row."""
    carried, all_ = CarriedPanes(turn.carry, touched, panes.width_us), np.ones(len(touched.texts), np.bool_)
    lanes, left = list[Lane](), Left(np.full(len(all_), NO_ROW), [], [])
    segments = segments_with(turn.segment_column, carried.newest(), touched, fresh, all_)
    if segments is not None:
        task = turn.task(touched, segments, None)
        split = split_panes(task, panes, segments, carried)
        count_on(touched, turn.share.counters.names, segments.key, split.next_selections)
        left = keep_panes(task, panes, segments, split, carried)
        lanes = split.lanes
    (turn.carry.add if turn.batch.ends else turn.carry.put)(touched, left.since, *left.events())
    return lanes


def _resolution(turn: Turn) -> Resolution | None:
    """The resolution of the rule's whole stream, if matches wait for selections of other keys; else None."""
    whole = turn.carry.whole
    return whole.resolution.begun() if whole is not None and turn.method.waits else None


def _lanes_of_waiting(turn: Turn, split: Split, looked: pa.Array) -> list[Lane]:
    """Lanes for waiting matches that can go out now, of keys this batch does not otherwise examine.

    The carry of these keys does not change.
    """
    resolution, carry = split.resolution, turn.carry
    if resolution is None or carry.whole is None:
        return []
    carry.whole.resolution = resolution
    assert turn.planned.rule.pattern is not None
    opening = opening_bit(turn.planned.rule.pattern)
    texts = carry.due(Wake(opening, resolution.before + 1, resolution.first + 1, OPENING))
    texts = texts.filter(pc.invert(pc.is_in(texts, value_set=looked)))
    if not len(texts):
        return []
    touched, all_ = carry.find(texts, turn.wanted), np.ones(len(texts), np.bool_)
    nothing = Fresh(None, texts, np.zeros(0, np.int64))
    segments = segments_of_keys(turn.segment_column, carry, touched, nothing, all_)
    if segments is None:
        return []
    return _split(turn.task(touched, segments, resolution)).lanes


def _split(task: SplitTask) -> Split:
    split = _decided(task)
    return replace(split, lanes=with_new_rows(split.lanes, task.stream.rows))


def _decided(task: SplitTask) -> Split:
    """Split the stream as the rule's fold, row pattern or span says, or the way of its context."""
    rule, way = task.planned.rule, task.method.way
    if rule.fold is not None:
        return split_fold(task)
    if rule.rows is not None:
        return split_rows(task)
    if way is None:
        return split_spans(task)
    if isinstance(way, OneOpen):
        return split_one_open(task, way)
    if isinstance(way, UsingUp):
        return split_using_up(task, way)
    if is_much_carried(task, way):
        return split_much_carried(task, way)
    return split_parallel(task, way)


def _mine(plan: Plan, planned: RulePlan, bucket: int, released: pa.Table | None) -> Bools:
    """bool[n], which released events are in the unit's stream."""
    if released is None:
        return np.zeros(0, np.bool_)
    name, bit = bits_column(plan.member_bit(planned))
    mine = has_bit(numbers(released, name), bit)
    if planned.key_column is not None:
        keys = array(released, planned.key_column)
        mine &= buckets_of(keys.dictionary, plan.buckets)[keys.indices.to_numpy()] == bucket
    return mine


def _fresh(turn: Turn, mine: Bools) -> Fresh:
    """The released events of the unit's stream, with ``@mask`` in place of the columns ``@bits``."""
    planned, released = turn.planned, turn.batch.released
    if released is None or not mine.any():
        return Fresh(None, pa.array([], pa.string()), np.zeros(0, np.int64))
    of_rules = (name for one in turn.share.rules for name in (*one.columns, *one.tested))
    columns, computed = dict.fromkeys([TIME, SOURCE, OFFSET, *of_rules]), turn.share.computed
    only_for_these = attributes_of(computed.values()) - {*columns}
    events = chosen(released.select([*columns, *sorted(only_for_these)]), mine)
    for name, expr in computed.items():
        events = with_column(events, name, evaluate(expr, EventColumns(events)))
    events = events.drop_columns(sorted(only_for_these))
    events = with_column(events, MASK, mask_of(planned.bits, released, mine))
    pattern, join = turn.method.pattern, turn.method.join
    if pattern is not None and join is not None:
        values = array(events, join)
        mask = without_candidates(numbers(events, MASK), values, initiator_bits(pattern))
        return Fresh(with_column(events, MASK, mask), *join_values(values))
    if planned.key_column is None:
        return Fresh(events, pa.array([""], pa.string()), np.zeros(events.num_rows, np.int64))
    keys = array(released, planned.key_column)
    used, owner = np.unique(keys.indices.to_numpy()[mine], return_inverse=True)
    return Fresh(events, keys.dictionary.take(pa.array(used)), owner)


def _woken(turn: Turn) -> pa.Array:
    """string[k], the keys to examine because time has passed."""
    carry, batch, forgetting = turn.carry, turn.batch, turn.wanted.forgetting
    if batch.passed_us == NO_FRONTIER:
        return distinct_texts([])
    ways = wakes(turn.share.rules, batch.passed_us, batch.frontier_us)
    due = [carry.due(wake) for wake in ways]
    return distinct_texts([*due, *([] if forgetting is None else [carry.ending(forgetting)])])


def _numbered(turn: Turn, touched: Touched, fresh: Fresh) -> Fresh:
    """Number the new events, by key or, with join values, in the rule's whole stream."""
    whole = turn.carry.whole
    if whole is None or fresh.events is None:
        earlier = earlier_events(turn.planned.absent, turn.carry, turn.wanted, turn.batch)
        return number(turn.planned, turn.method.way, touched, fresh, earlier)
    assert turn.method.pattern is not None
    return replace(fresh, events=whole.number(fresh.events, initiator_bits(turn.method.pattern)))
