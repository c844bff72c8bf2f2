"""Numbers new events (`seq`), the openings before them in the stream of their key, and windows.

The argument `way` of functions is that of the rule's `Method`.

For rules with several grids that share a carry, the first grid uses the counter that every rule has; each
other grid has a column of its own for the number of a key's next window.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.match.contexts.contexts import UsingUp, Way
from spark_pace.core.plan.plan import EVENTS, LAST, RulePlan
from spark_pace.core.plan.rule import PredicateSpan
from spark_pace.core.plan.shape import initiator_bits
from spark_pace.core.ranks import segments_of
from spark_pace.core.split.carry.carry import Touched
from spark_pace.core.split.carry.earlier_events import Earlier, InTurn, passing, tested, without_forbidden
from spark_pace.core.split.carry.key_streams import Fresh
from spark_pace.core.tables import (
    MASK,
    OPEN_BIT,
    OPENING,
    SEQ,
    SPENT,
    TIME,
    Bools,
    Ints,
    chosen,
    numbers,
    with_column,
)


def number(
    planned: RulePlan, way: Way | None, touched: Touched, fresh: Fresh, earlier: Earlier | None
) -> Fresh:
    """Drop what a filter with ``prev`` keeps out; add each event's `seq` and the number of openings before.

    The counters in `touched` advance. `earlier` has the events that forbid others; None if the rule has no
    negated component in first place.
    """
    return _number(planned, way, touched, passing(planned, touched, fresh), earlier)


def _number(
    planned: RulePlan, way: Way | None, touched: Touched, fresh: Fresh, earlier: Earlier | None
) -> Fresh:
    if fresh.events is None:
        return fresh
    alone = planned.looking_back is None and earlier is None and planned.rule.forget_key_after_us is None
    if len(fresh.texts) == 1 and alone:
        return _of_one_key(planned, way, touched, fresh)
    several = len(fresh.texts) > 1
    order = np.argsort(fresh.owner, kind="stable") if several else np.arange(len(fresh.owner))
    keys, time = fresh.owner[order], numbers(fresh.events, TIME)[order]
    events_of, until = (of_rows[order] for of_rows in _extents(fresh.events))
    first = segments_of(keys)
    last = np.append(first[1:], len(keys)) - 1
    anew = _begins_anew(planned, touched, keys, first, (time, until))
    starts = np.union1d(first, np.flatnonzero(anew))
    turns = InTurn(order, keys, starts, anew[starts])
    fresh = replace(fresh, events=_tested(planned, touched, fresh.events, earlier, turns))

    def counted(steps: Ints, following: Ints) -> Ints:
        """The sum of the steps before each event in its stream; each key goes on from `following`."""
        before = np.cumsum(steps) - steps
        base = np.where(anew[starts], 0, following[keys[starts]])
        counts = np.diff(np.append(starts, len(keys)))
        before -= np.repeat(before[starts] - base, counts)
        following[keys[last]] = (before + steps)[last]
        unordered = np.empty(len(keys), np.int64)
        unordered[order] = before
        return unordered

    events = with_column(fresh.events, SEQ, counted(events_of, touched.next_seq))
    if counts_openings(planned, way):
        opens = initiators(planned, numbers(events, MASK))[order].astype(np.int64)
        events = with_column(events, OPENING, counted(opens, touched.next_selection))
    touched.last[keys[last]] = until[last]
    return _needed(planned, replace(fresh, events=_unspent(way, events)))


def _tested(
    planned: RulePlan, touched: Touched, events: pa.Table, earlier: Earlier | None, turns: InTurn
) -> pa.Table:
    """Remove the bits of ``@mask`` whose conditions on events before do not hold, or that these forbid."""
    if planned.looking_back is not None:
        events = tested(planned.looking_back, touched, events, turns)
    return events if earlier is None else without_forbidden(earlier, touched, events, turns)


def _of_one_key(planned: RulePlan, way: Way | None, touched: Touched, fresh: Fresh) -> Fresh:
    """Number the events of one key, in order, for rules without ``prev`` and `forget_key_after`."""
    assert fresh.events is not None
    events_of, until = _extents(fresh.events)
    before = np.cumsum(events_of)
    events = with_column(fresh.events, SEQ, touched.next_seq[0] + before - events_of)
    touched.next_seq[0] += before[-1]
    if counts_openings(planned, way):
        opening = initiators(planned, numbers(events, MASK))
        before = np.cumsum(opening, dtype=np.int64)
        opened = before[-1]
        before += touched.next_selection[0] - opening
        touched.next_selection[0] += opened
        events = with_column(events, OPENING, before)
    touched.last[0] = until[-1]
    return replace(fresh, events=_unspent(way, events))


def _unspent(way: Way | None, events: pa.Table) -> pa.Table:
    """Add the column `@spent`, all unused, if the context uses events up."""
    if not isinstance(way, UsingUp):
        return events
    return with_column(events, SPENT, np.zeros(events.num_rows, np.int64))


def _needed(planned: RulePlan, fresh: Fresh) -> Fresh:
    """Drop the events and attributes that only the conditions on earlier events needed."""
    tests, events = [one for one in (planned.looking_back, planned.absent) if one is not None], fresh.events
    if not tests or events is None:
        return fresh
    tested = [name for one in tests for name in one.columns if name not in planned.columns]
    events = events.drop_columns(list(dict.fromkeys(tested)))
    if any(one.others_count for one in tests):
        return replace(fresh, events=events)
    matching = numbers(events, MASK) > 0
    return replace(fresh, events=chosen(events, matching), owner=fresh.owner[matching])


def _extents(events: pa.Table) -> tuple[Ints, Ints]:
    """int64[n] each: the number of events that a row stands for, and the event time of the last of them."""
    if EVENTS in events.column_names:
        return numbers(events, EVENTS), numbers(events, LAST)
    return np.ones(events.num_rows, np.int64), numbers(events, TIME)


def _begins_anew(
    planned: RulePlan, touched: Touched, keys: Ints, first: Ints, times: tuple[Ints, Ints]
) -> Bools:
    """bool[n], the events that begin a new stream of their key, because the gap before them is too long.

    Args:
        planned: the rule.
        touched: the keys.
        keys: int64[n], the key of each event, ascending.
        first: int64[k], the first event of each key.
        times: int64[n] each, the times of the first and the last event that each row stands for.
    """
    time, until = times
    after_us = planned.rule.forget_key_after_us
    if after_us is None:
        return np.zeros(len(keys), np.bool_)
    before = np.roll(until, 1)
    before[first] = touched.last[keys[first]]
    return time - after_us > before


def counts_openings(planned: RulePlan, way: Way | None) -> bool:
    """True if every initiator opens a selection, so that `next_selection` counts initiators."""
    return isinstance(planned.rule.span, PredicateSpan) if way is None else way.every_initiator_opens


def opens(planned: RulePlan, way: Way | None, fresh: Fresh) -> Bools:
    """bool[n], which events open a selection, whatever came before them; none if that depends on it."""
    if fresh.events is None or not counts_openings(planned, way):
        return np.zeros(len(fresh.owner), np.bool_)
    return initiators(planned, numbers(fresh.events, MASK))


def initiators(planned: RulePlan, mask: npt.NDArray[np.uint16]) -> Bools:
    """bool[n], which events can open a selection."""
    rule, bits = planned.rule, 1
    if isinstance(rule.span, PredicateSpan):
        bits = 1 << OPEN_BIT
    elif rule.pattern is not None:
        bits = initiator_bits(rule.pattern)
    opening: Bools = mask & np.uint16(bits) != 0
    return opening


def next_selections(touched: Touched, columns: Sequence[str]) -> list[Ints]:
    """int64[k] for each grid, the number of each key's next selection: the counter, then the columns."""
    others = (touched.last_values[name] for name in columns)
    return [touched.next_selection, *(pc.fill_null(column, 0).to_numpy() for column in others)]


def count_on(touched: Touched, columns: Sequence[str], keys: Ints, following: Sequence[Ints]) -> None:
    """Set the next numbers of some keys, for each grid (`following`)."""
    counters = next_selections(touched, columns)
    touched.next_selection[keys] = following[0]
    for name, counter, new in zip(columns, counters[1:], following[1:], strict=True):
        counted = np.array(counter)
        counted[keys] = new
        touched.last_values[name] = pa.array(counted)
