"""*earliest, selected*: at every terminator the least candidate of the events that are not used up.

`spark_pace.core.match.search.technique` chooses how:
- production sets, of plain sequences without a window or of two components: each event joins the earliest set
  that waits for it;
- in order, of other plain sequences and of plain conjunctions: each terminator takes the first events that
  are not used up;
- in turn: the least candidate of each terminator is searched without the events that those
  before it use up, by compiled code; where that does not take all conditions, and there are groups, negations
  or any order, by columns;
- alternatives, of disjunctions: each by itself, in one of these ways, where no event matches components of
  two of them; else in turn;
- all candidates: of other conditions, all are made in order; one that needs a used event is dropped.

A rule may ask for other ways by ``strategy``, where these are exact:
- queues: a tandem of first-in-first-out queues, on whole columns;
- merger filter: candidates in order; one that needs a used event is dropped.

Sources: Siddam 2015, sections 5.4 (merger filtering) and 6.2 (production sets); semantics, section 4
(queues).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from spark_pace.core.match.candidates import Ranges, candidates
from spark_pace.core.match.compiled import sets
from spark_pace.core.match.compiled_search import alternative_search, searches_of
from spark_pace.core.match.contexts.contexts import ParameterContext, UsingUp
from spark_pace.core.match.first import chosen, least
from spark_pace.core.match.release import settling
from spark_pace.core.match.search.any_order import Alternatives, search_of
from spark_pace.core.match.search.search import Search
from spark_pace.core.match.stream import Decided, Found, Stream, window_end, window_start
from spark_pace.core.plan.rule import Context, Pattern, Within
from spark_pace.core.plan.shape import initiator_bits
from spark_pace.core.ranks import expand, segments_of
from spark_pace.core.tables import (
    MASK,
    NO_ROW,
    SPENT,
    SPENT_BITS,
    UNUSED,
    USED,
    USED_OPEN,
    Ints,
    marks_of,
    numbers,
    with_column,
)


def in_turn(search: Search, openings: Ints) -> Found:
    """The matches of a pattern, found terminator by terminator; each match uses up its events.

    With a trailing negation a match is decided when all candidates that end at its terminator or before it
    are decided.

    Args:
        search: the pattern over a stream; ``@spent`` tells the turns in which events were used up already.
        openings: the opening row of each selection.
    """
    if search.techniques.unused.compiled:
        return _found(search, openings, searches_of(search).decided(search, _turns_of_use(search.stream)))
    return in_turn_by_columns(search, openings)


def in_turn_by_columns(search: Search, openings: Ints) -> Found:
    """The matches, as `in_turn` finds them, whatever conditions there are.

    The loop takes one step for each terminator of a segment, in all segments at once, and looks only at the
    rows that a candidate of the terminator can have, or that may forbid one.
    """
    stream, terminators = search.stream, searches_of(search).hopeful_ends(search)
    segment = stream.segment[terminators]
    turn = np.arange(len(terminators)) - np.searchsorted(segment, segment)
    order = np.argsort(turn, kind="stable")
    used, latest = _turns_of_use(stream), np.full(len(stream.starts), -1, np.int64)
    sizes, members, roles = [], [], []
    latest_at = np.full(len(terminators), -1, np.int64)
    for now in np.split(terminators[order], segments_of(turn[order])[1:]):
        now = now[used[now] > stream.seq[now]]
        step = _Step(search, now, used)
        of_segment = stream.segment[now]
        latest[of_segment] = np.maximum(latest[of_segment], step.latest)
        latest_at[np.searchsorted(terminators, now)] = latest[of_segment]
        sizes.append(np.diff(step.offsets))
        members.append(step.members)
        roles.append(step.roles)
        used[step.members] = np.repeat(stream.seq[now[step.found]], sizes[-1])
    offsets = np.append(0, np.cumsum(np.concatenate([np.zeros(0, np.int64), *sizes])))
    rows = np.concatenate([np.zeros(0, np.int64), *members])
    of_rows = np.concatenate([np.zeros(0, np.int8), *roles])
    decided = Decided(offsets, rows, of_rows, (terminators, latest_at) if search.trailing else None)
    found = _found(search, openings, decided)
    return found.keep(np.argsort(found.last))


def _found(search: Search, openings: Ints, decided: Decided) -> Found:
    """The decided matches as `Found`; each closes the selection that its first event has opened."""
    closes, rows, offsets = np.full(len(openings), -1, np.int64), decided.members, decided.offsets
    selection = np.searchsorted(openings, rows[offsets[:-1]])
    closes[selection] = rows[offsets[1:] - 1]
    found = Found(openings, closes, selection, offsets, rows, decided.roles)
    if decided.latest is None:
        return found
    terminators, latest = decided.latest
    deciding = latest[np.searchsorted(terminators, found.last)]
    # those too whose matches have gone out: what comes out behind them must not change by it
    every = np.flatnonzero(search.stream.mask & np.uint16(initiator_bits(search.pattern)))
    rows = settling(search, every, found.first, found.last, decided.latest)
    return replace(found, deciding=deciding, settling=rows)


def _turns_of_use(stream: Stream) -> Ints:
    """int64[n], the `seq` of the terminator at whose turn each event was used up; `NO_ROW` if none was."""
    if SPENT not in stream.events.column_names:
        return np.full(stream.rows, NO_ROW)
    spent = numbers(stream.events, SPENT)
    return np.where(spent == UNUSED, NO_ROW, spent >> SPENT_BITS)


class _Step:
    """The least candidates, without used events, of terminators of which no two are of one segment.

    Attributes:
        latest: int64[t], for each terminator the first row of the candidate that starts last, even if a
            trailing negation forbids it; -1 if there is none.
        found: int64[m], the indices of the terminators that have a match.
        offsets, members, roles: the production sets of these matches, by rows of the stream.
    """

    def __init__(self, search: Search, terminators: Ints, used: Ints) -> None:
        stream, pattern = search.stream, search.pattern
        first = window_start(stream, terminators, pattern.within)
        until = terminators + 1
        if search.trailing:
            until = window_end(stream, terminators, pattern.within)
        owner, rows = expand(first, until)
        starts = np.cumsum(until - first) - (until - first)
        is_used = used[rows] < stream.seq[terminators][owner]
        mask = np.where(is_used, np.uint16(0), stream.mask[rows])
        events = with_column(stream.events.take(pa.array(rows)), MASK, mask)
        inside = search_of(Stream(events, starts), pattern)
        ends = starts + terminators - first
        if search.trailing:
            best, latest = chosen(inside, ends, starts, backwards=False)
            self.found = np.flatnonzero(best[:, 0] >= 0)
            self.latest = np.where(latest >= 0, rows[latest], -1)
            best = best[self.found]
        else:
            best = least(inside, ends, starts)
            self.found = np.searchsorted(ends, inside.lasts(best))
            self.latest = np.full(len(ends), -1)
        sets = inside.production_sets(best)
        self.offsets, self.members, self.roles = sets[0], rows[sets[1]], sets[2]


def earliest_selected(stream: Stream, pattern: Pattern, search: Search) -> Found:
    """All matches of the stream. Every initiator opens a selection, and its match closes it.

    Args:
        stream: the mask of events that are used up already is 0, where the pattern is simple.
        pattern: the pattern.
        search: the pattern over the stream.
    """
    openings, how = _openings(stream, search), search.techniques.unused.how
    compiled = isinstance(search, Alternatives) and all(
        one.techniques.unused.compiled for one in search.parts
    )
    if isinstance(search, Alternatives) and search.apart:
        matrix = _of_each_alternative(search)
    elif isinstance(search, Alternatives) and compiled:
        matrix = alternative_search.decided(search)
    elif how in ("in turn", "alternatives") or pattern.order == "conjunction":
        return in_turn(search, openings)
    else:
        matrix = _matches(stream, pattern, search)
    closes = np.full(len(openings), -1, np.int64)
    selection = np.searchsorted(openings, matrix[:, 0])
    closes[selection] = search.lasts(matrix)
    return search.found(openings, closes, selection, matrix)


def _of_each_alternative(search: Alternatives) -> Ints:
    """The matches of alternatives of which none uses up an event of another, in the order of their ends."""
    found = [np.zeros((0, search.steps), np.int64)]
    for number, part in enumerate(search.parts):
        if part.techniques.unused.how == "in turn":
            own = in_turn(part, part.initiators).members.reshape(-1, part.steps)
        else:
            own = _matches(part.stream, part.pattern, part)
        found.append(search.padded(number, own))
    matrix = np.concatenate(found)
    return matrix[np.argsort(search.lasts(matrix))]


def _matches(stream: Stream, pattern: Pattern, search: Search) -> Ints:
    """int64[m, n], the matches of a simple sequence; queues are exact if no event matches two components."""
    how = search.techniques.unused.how
    if how in ("all candidates", "merger_filter"):
        return by_filtering(stream, pattern, search)
    if how == "production_sets":
        return production_sets(stream, pattern.within, search)[0]
    if how == "queues" and search.exclusive:
        return queues(stream, pattern.within, search)
    return in_order(stream, pattern, search)


def _openings(stream: Stream, search: Search) -> Ints:
    """The initiators but for those whose selection a match that is out has closed."""
    if SPENT not in stream.events.column_names:
        return search.initiators
    opens = stream.mask & np.uint16(initiator_bits(search.pattern)) != 0
    marks = marks_of(numbers(stream.events, SPENT))
    return np.flatnonzero(opens & (marks != USED) | (marks == USED_OPEN))


def queues(stream: Stream, within: Within | None, search: Search) -> Ints:
    """A tandem of queues: an event of step k serves the set that has waited longest at that step. O(n log n).

    It is exact for plain sequences whose predicates exclude each other, without window or with two steps.

    Returns:
        int64[m, n], the matches.
    """
    sets = search.members[0][:, None]
    for level in range(1, search.steps):
        servers = search.members[level]
        arrivals = sets[:, -1]
        first = np.searchsorted(arrivals, window_start(stream, servers, within))
        served, index = _serve(first, np.searchsorted(arrivals, servers))
        sets = np.column_stack([sets[index], servers[served]])
    return sets


def production_sets(stream: Stream, within: Within | None, search: Search) -> tuple[Ints, Ints]:
    """Lists of production sets, of which each event joins the earliest that waits for it.

    It is exact for plain sequences without window or with two steps, whatever components an event matches.

    Source: Siddam 2015, section 6.2.

    Returns:
        int64[m, n], the matches; int64[w], the rows of the sets that wait.
    """
    rows = np.flatnonzero(stream.mask)
    first = window_start(stream, rows, within)
    masks = stream.mask[rows].astype(np.int64)
    return sets.production_sets(rows, masks, first, search.steps, len(search.members[0]))


def waiting(stream: Stream, search: Search) -> Ints:
    """For a plain sequence without window, the rows of the sets that wait."""
    return production_sets(stream, None, search)[1]


def _serve(first: Ints, arrived: Ints) -> tuple[Ints, Ints]:
    """First come, first served, with customers who leave.

    Args:
        first: int64[b], at each server the first customer who may still be there; never descending.
        arrived: int64[b], how many customers have come before each server.

    Returns:
        int64[k], the servers that find a customer; int64[k], the customer that each of them serves.

    Let p(b) be the last customer who is served or gone at server b: p(b) = min(max(p(b - 1) + 1, first),
    arrived - 1). Then p(b) - b is a clamp of p(b - 1) - (b - 1). Clamps compose, so a scan by doubling finds
    them all.
    """
    number = np.arange(len(first))
    high = arrived - 1 - number
    low = np.minimum(first - number, high)
    step = 1
    while step < len(number):
        low2, high2 = low[step:], high[step:]
        new_low = np.minimum(np.maximum(low[:-step], low2), high2)
        new_high = np.minimum(np.maximum(high[:-step], low2), high2)
        low, high = np.append(low[:step], new_low), np.append(high[:step], new_high)
        step *= 2
    gone = np.minimum(np.maximum(0, low), high) + number
    before = np.append(-1, gone[:-1])[: len(gone)]
    customer = np.maximum(before + 1, first)
    served = np.flatnonzero(customer < arrived)
    return served, customer[served]


def in_order(stream: Stream, pattern: Pattern, search: Search) -> Ints:
    """The matches of a plain sequence: each terminator takes, step by step, the first event not used up."""
    pools, terminators = np.concatenate(search.members), search.members[-1]
    bounds = np.cumsum([0, *map(len, search.members)])
    return sets.earliest_unused(pools, bounds, window_start(stream, terminators, pattern.within), stream.rows)


def by_filtering(stream: Stream, pattern: Pattern, search: Search) -> Ints:
    """The matches of any sequence: at each terminator, in order, the first candidate without a used event."""
    terminators = search.may_end(search.members[0], search.members[-1])
    used = np.zeros(stream.rows, np.bool_)
    after = window_start(stream, terminators, pattern.within) - 1
    ranges = Ranges(terminators, after, terminators, used=used)
    taken = [sets.first_unused(piece, used) for piece in candidates(search.rotated(), ranges)]
    return np.roll(np.concatenate([np.zeros((0, search.steps), np.int64), *taken]), -1, axis=1)


EARLIEST_SELECTED = ParameterContext(
    value=Context("earliest", "selected"),
    snoop_name="chronicle",
    way=UsingUp(earliest_selected, waiting),
    window_may_close=False,
    waits_for_earlier=False,
    why_within=None,
    gathers=False,
)
