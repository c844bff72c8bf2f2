"""Where the splitter finds matches itself: they use up their events (`UsingUp`), or little is new.

Matches that use up their events mark them. Of other contexts the splitter finds the matches if much more is
carried than is new.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from spark_pace import ways
from spark_pace.core.match.contexts.contexts import Backwards, Forwards, UsingUp
from spark_pace.core.match.delay import is_awaited
from spark_pace.core.match.release import (
    NOTHING_WAITS,
    Resolution,
    Waiting,
    at_rows,
    come_to_wait,
    known,
    match_times,
    releases,
    resolved,
)
from spark_pace.core.match.search.any_order import search_of
from spark_pace.core.match.search.search import Search
from spark_pace.core.match.stream import (
    Found,
    Horizon,
    Positions,
    Stream,
    is_of_time,
    whole,
    window_end,
    window_start,
)
from spark_pace.core.plan.shape import initiator_bits, shape_of, without_members
from spark_pace.core.split.lanes import matched_lanes
from spark_pace.core.split.selections import backward_keep, without_enders
from spark_pace.core.split.task import Lane, Split, SplitTask, count_in_segments, from_first
from spark_pace.core.tables import (
    JOIN,
    MASK,
    NO_FRONTIER,
    OPENING,
    SPENT,
    SPENT_BITS,
    UNUSED,
    USED,
    USED_OPEN,
    Bools,
    Ints,
    marks_of,
    numbers,
    with_column,
)


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
    matched_us = match_times(unused, found.last, found.deciding, rule.pattern.within)
    lanes = matched_lanes(task, sent, ids, release.take(out), matched_us[out])
    waiting, frontier_us = NOTHING_WAITS, task.horizon.frontier_us
    if is_awaited(task.planned):
        waiting = come_to_wait(matched_us, release.time < frontier_us, task.passed_us, frontier_us)
    spent = _mark(task.stream, sent, initiator_bits(rule.pattern))
    keep, open_ = _keep(task, way, search, found, spent)
    return Split(lanes, keep, open_, events=with_column(task.stream.events, SPENT, spent), waiting=waiting)


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
    if search.trailing and task.method.waits:  # as in `selections.backward_keep`
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


def is_much_carried(task: SplitTask, way: Forwards | Backwards) -> bool:
    """True if `split_much_carried` can split the task (one key, windows of a time), and is faster."""
    pattern, horizon = task.pattern, task.horizon
    assert pattern is not None
    if task.planned.key_column is not None or JOIN in task.stream.events.column_names:
        return False
    if not is_of_time(pattern.within) or not shape_of(pattern).simple:
        return False
    if task.passed_us == NO_FRONTIER or horizon.complete is not None:
        return False
    plain = isinstance(way, Forwards) and pattern.close == "completion" and not pattern.where
    if plain or len(pattern.components) == 1:  # every event that can end a match closes what is open
        return False
    carried = _carried(task)
    return carried > 0 and ways.is_much_carried(carried, task.stream.rows - carried)


def split_much_carried(task: SplitTask, way: Forwards | Backwards) -> Split:
    """Find the matches to send now, and the events that open selections still need."""
    assert task.pattern is not None
    search = search_of(task.stream, task.pattern)
    if task.method.waits:
        return _waiting(task, search, way)
    if isinstance(way, Backwards) or task.pattern.close == "window":
        return _newly_ended(task, search, way)
    return _newly_closed(task, search, way)


def _carried(task: SplitTask) -> int:
    """The number of carried events: those below the frontier before the batch."""
    return int(np.searchsorted(task.stream.time, task.passed_us))


def _over(task: SplitTask, initiators: Ints, frontier_us: int) -> int:
    """The number of initiators whose windows are over at a frontier; they are the first ones."""
    assert task.pattern is not None
    return int(Horizon(frontier_us).over(task.stream, initiators, task.pattern.within).sum())


def _newly_ended(task: SplitTask, search: Search, way: Forwards | Backwards) -> Split:
    """Find the matches that end with a new event, where selections are open until their windows end."""
    found = _ended_by_new(task, search, way)
    open_ = search.initiators[_over(task, search.initiators, task.horizon.frontier_us) :]
    keep = without_enders(task, from_first(task.stream, open_))
    return Split(_lanes(task, found), keep, np.array([len(open_)]))


def _ended_by_new(task: SplitTask, search: Search, way: Forwards | Backwards) -> Found:
    """The matches that end with a new event, where nothing closes a selection before its window's end."""
    lasts = search.terminators
    lasts = lasts[np.searchsorted(lasts, _carried(task)) :]
    if isinstance(way, Forwards):
        search = search.starting(search.may_fit(search.initiators, lasts))
    return way.match(task.stream, search.pattern, search.ending(lasts), whole(task.stream))


def _newly_closed(task: SplitTask, search: Search, way: Forwards) -> Split:
    """Find the matches of selections that new events close.

    All carried events are needed to tell if an earlier event has closed a carried initiator's selection, so
    carried events that are no initiators stay.
    """
    stream, initiators, carried = task.stream, search.initiators, _carried(task)
    found, closed = _closed_by_new(task, search, way)
    open_ = initiators[_over(task, initiators, task.horizon.frontier_us) :]
    open_ = open_[~np.isin(open_, closed, assume_unique=True)]
    keep = from_first(stream, open_)
    if search.pattern.order == "sequence":
        mask = stream.mask & np.uint16(without_members(search.pattern))
        keep = _without_closed(mask, keep, closed, carried)
    return Split(_lanes(task, found), keep, np.array([len(open_)]))


def _closed_by_new(task: SplitTask, search: Search, way: Forwards) -> tuple[Found, Ints]:
    """The matches of selections that new events close, and the initiators of these selections.

    A new event can close a carried initiator's selection only if it fits the initiator.
    """
    stream, initiators, lasts = task.stream, search.initiators, search.terminators
    carried = _carried(task)
    old, new = np.split(initiators, [np.searchsorted(initiators, carried)])
    fits = search.ending(lasts[np.searchsorted(lasts, carried) :])
    old = fits.may_fit(old, fits.terminators)
    old = old[way.closings(fits, old, window_end(stream, old, search.pattern.within)) >= 0]
    found = way.match(stream, search.pattern, search.starting(np.append(old, new)), whole(stream))
    closed = found.openings[found.closes >= 0]
    return found.keep(np.flatnonzero(found.last >= carried)), closed


def _without_closed(mask: npt.NDArray[np.uint16], keep: Bools, closed: Ints, carried: int) -> Bools:
    """Drop closed initiators that match no other component from `keep`.

    Carried ones are dropped only if they are more than half of the carried events that are kept, because the
    other carried events must then be stored anew.
    """
    idle = closed[(mask[closed] == 1) & keep[closed]]
    new = np.searchsorted(idle, carried)
    if not ways.is_rid_of_closed(int(new), int(keep[:carried].sum())):
        idle = idle[new:]
    keep[idle] = False
    return keep


def _waiting(task: SplitTask, search: Search, way: Forwards | Backwards) -> Split:
    """Find the matches to send now, where a match waits until all earlier selections are resolved.

    Only selections that were not resolved before can release a match, up to the first one that is not
    resolved now.
    """
    stream, initiators = task.stream, search.initiators
    before, first = _first_unresolved(task, search, way)
    chosen = initiators[before : first + 1]
    found = way.match(stream, search.pattern, _ending(task, search, chosen, before == first), whole(stream))
    if isinstance(way, Backwards):  # candidates of other initiators may be the matches at these last events
        lasts = np.unique(found.last)
        found = way.match(stream, search.pattern, search.ending(lasts), whole(stream))
    opening = numbers(stream.events, OPENING)
    following = np.append(opening[initiators], task.next_selection)
    resolution = Resolution(int(following[first]), before=int(following[before]))
    out = resolution.lets_out(opening[found.first], found.last >= _carried(task))
    lanes = _lanes(replace(task, resolution=resolution), found.keep(np.flatnonzero(out)))
    waiting = _known_now(task, search, way, resolution) if is_awaited(task.planned) else NOTHING_WAITS
    if isinstance(way, Backwards):
        open_, keep = initiators[first:], backward_keep(task, search.pattern, search, way, initiators[first:])
    else:
        open_ = initiators[max(first, _over(task, initiators, task.horizon.frontier_us)) :]
        keep = from_first(stream, initiators[first:])
    return Split(lanes, keep, np.array([len(open_)]), waiting=waiting)


def _known_now(task: SplitTask, search: Search, way: Forwards | Backwards, resolution: Resolution) -> Waiting:
    """The matches that end with a new event and wait for earlier selections."""
    if isinstance(way, Backwards) or search.pattern.close == "window":
        found = _ended_by_new(task, search, way)
    else:
        found, _ = _closed_by_new(task, search, way)
    opening = numbers(task.stream.events, OPENING)[found.first]
    is_out = resolution.lets_out(opening, np.full(found.matches, True))
    matched_us = task.stream.time[found.last]
    return come_to_wait(matched_us, is_out, task.passed_us, task.horizon.frontier_us)


def _ending(task: SplitTask, search: Search, chosen: Ints, only_new: bool) -> Search:
    """Restrict a search to matches that begin with chosen initiators and end in their windows.

    Args:
        task: the task.
        search: the search over all events.
        chosen: the initiators, ascending.
        only_new: True to leave out matches that end with a carried event, because they have been sent.
    """
    lasts = search.terminators
    end = window_end(task.stream, chosen[-1:], search.pattern.within).sum()
    lasts = lasts[: np.searchsorted(lasts, end)]
    if only_new:
        lasts = lasts[np.searchsorted(lasts, _carried(task)) :]
    return search.starting(chosen).ending(lasts)


def _first_unresolved(task: SplitTask, search: Search, way: Forwards | Backwards) -> tuple[int, int]:
    """The index of the first initiator with an unresolved selection: before the batch, and now.

    The index is the number of initiators if all selections are resolved. Initiators are examined in ever
    larger blocks, up to the first unresolved selection.
    """
    initiators, pattern = search.initiators, search.pattern
    over_before = _over(task, initiators, task.passed_us)
    over = _over(task, initiators, task.horizon.frontier_us)
    if isinstance(way, Backwards) or pattern.close == "window":
        return over_before, over
    before, carried = -1, _carried(task)
    start, size = 0, ways.FIRST_UNRESOLVED
    while start < len(initiators):
        rows = initiators[start : start + size]
        closes = way.closings(search, rows, window_end(task.stream, rows, pattern.within))
        place = start + np.arange(len(rows))
        was = (place < over_before) | (closes >= 0) & (closes < carried)
        now = (place < over) | (closes >= 0)
        if before < 0 and not was.all():
            before = start + int(np.argmin(was))
        if not now.all():
            return before, start + int(np.argmin(now))
        start, size = start + size, 4 * size
    return (len(initiators) if before < 0 else before), len(initiators)


def _lanes(task: SplitTask, found: Found) -> list[Lane]:
    """Cut lanes of matches, each of which is in the selection that its first event opened."""
    ids = numbers(task.stream.events, OPENING)[found.first]
    at = at_rows(task.stream, found.last)
    return matched_lanes(task, found, ids, at, at.time)
