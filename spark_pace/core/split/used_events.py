"""Contexts whose matches use up their events (`UsingUp`): the splitter finds matches and marks events.

The events of matches that have been sent are marked in ``@spent``. A match that is decided but waits for the
end of an earlier selection's window is found again in the next batch, because its events are not marked. In a
group or a negation a used event may have completed or spoilt other candidates before it was used. There the
choice at each terminator is repeated as it was: without the events that earlier terminators used, and with
those that were used later.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from spark_pace.core.columns import (
    MASK,
    OPENING,
    SPENT,
    SPENT_BITS,
    UNUSED,
    USED,
    USED_OPEN,
    Bools,
    Ints,
    marks_of,
)
from spark_pace.core.match.contexts.context import UsingUp
from spark_pace.core.match.delay import is_awaited
from spark_pace.core.match.found_matches import Found
from spark_pace.core.match.release import known, match_times, releases, resolved
from spark_pace.core.match.search.any_order import search_of
from spark_pace.core.match.search.search import Search
from spark_pace.core.match.stream import Positions, Stream
from spark_pace.core.match.waiting import NOTHING_WAITS, Waiting, come_to_wait
from spark_pace.core.match.window import window_start
from spark_pace.core.plan.shape import initiator_bits, shape_of
from spark_pace.core.split.one_selection import matched_lanes
from spark_pace.core.split.task import Split, SplitTask, count_in_segments, from_first
from spark_pace.core.tables import numbers, with_column


def split_using_up(task: SplitTask, way: UsingUp) -> Split:
    """Find all matches of the task; the lanes hold those that are released in this batch."""
    rule = task.planned.rule
    assert rule.pattern is not None
    unused = _unused(task.stream) if shape_of(rule.pattern).simple else task.stream
    search = search_of(unused, rule.pattern)
    found = way.match(unused, rule.pattern, search)
    release = _releases(task, unused, found)
    out = np.flatnonzero(release.time < task.horizon.frontier_us)
    out = out[release.time[out] >= task.passed_us]
    sent = found.keep(out)
    ids = numbers(unused.events, OPENING)[sent.first]
    lanes = matched_lanes(task, sent, ids, release.take(out))
    waiting = _waiting(task, unused, found, release) if is_awaited(task.planned) else NOTHING_WAITS
    spent = _mark(task.stream, sent, initiator_bits(rule.pattern))
    keep, open_ = _keep(task, way, search, found, spent)
    return Split(lanes, keep, open_, events=with_column(task.stream.events, SPENT, spent), waiting=waiting)


def _waiting(task: SplitTask, unused: Stream, found: Found, release: Positions) -> Waiting:
    """The matches that are known only now and do not go out now."""
    assert task.pattern is not None
    matched_us = match_times(unused, found.last, found.deciding, task.pattern.within)
    is_out, frontier_us = release.time < task.horizon.frontier_us, task.horizon.frontier_us
    return come_to_wait(matched_us, is_out, task.passed_us, frontier_us)


def _releases(task: SplitTask, unused: Stream, found: Found) -> Positions:
    """The positions at which matches are released.

    No match waits for selections behind the last one with a match, so these are left out.
    """
    count = int(found.selection.max(initial=-1)) + 1
    found = replace(found, openings=found.openings[:count], closes=found.closes[:count])
    rule = task.planned.rule
    assert rule.pattern is not None
    ends = resolved(unused, found, rule.pattern.within, task.horizon)
    waits = task.method.waits
    at = known(unused, found, rule.pattern.within, task.horizon, waits=waits)
    return releases(unused, found, at, ends, waits=waits)


def _unused(stream: Stream) -> Stream:
    """The stream with the mask 0 for every used event."""
    mask = np.where(numbers(stream.events, SPENT) == UNUSED, stream.mask, np.uint16(0))
    return Stream(with_column(stream.events, MASK, mask), stream.starts)


def _mark(stream: Stream, sent: Found, bits: int) -> Ints:
    """int64[n], the column ``@spent`` after the matches `sent`, whose events are marked as used.

    An event has opened a selection if its mask has one of `bits`.
    """
    spent = numbers(stream.events, SPENT).copy()
    opens = stream.mask[sent.members] & np.uint16(bits) != 0
    turn = stream.seq[sent.last] << SPENT_BITS
    spent[sent.members] = np.where(opens, USED_OPEN, USED) | np.repeat(turn, np.diff(sent.offsets))
    spent[sent.first] = USED | turn  # the selection that this event opened is closed
    return spent  # type: ignore[no-any-return]


def _keep(task: SplitTask, way: UsingUp, search: Search, found: Found, spent: Ints) -> tuple[Bools, Ints]:
    """bool[n], the events that later matches can use; int64[segments], the number of open selections."""
    stream, pattern = task.stream, task.planned.rule.pattern
    assert pattern is not None
    openings = found.openings[marks_of(spent[found.openings]) != USED]
    if pattern.within is None and not pattern.where:
        keep = _plain_keep(stream, way, search, spent, openings)
        return keep & (task.horizon.seen_us is None), count_in_segments(stream, openings[keep[openings]])
    by_itself = task.horizon.over_by_itself(stream, openings, pattern.within)
    still_open = openings[~task.horizon.over(stream, openings, pattern.within)]
    first = window_start(stream, still_open, pattern.within) if search.trailing else still_open
    if search.trailing and task.method.waits:  # as in `parallel_selections.backward_keep`
        first = window_start(stream, first, pattern.within)
    return from_first(stream, first), count_in_segments(stream, openings[~by_itself])


def _plain_keep(stream: Stream, way: UsingUp, search: Search, spent: Ints, still_open: Ints) -> Bools:
    """bool[n], the rows that a plain sequence without a window carries: those that later matches can use.

    `still_open` are the rows that opened the selections which are open.
    """
    keep = np.zeros(stream.rows, np.bool_)
    waiting_initiators = still_open[spent[still_open] == UNUSED]
    if not len(waiting_initiators):
        return keep
    keep[way.waiting(search.stream, search)] = True
    return keep
