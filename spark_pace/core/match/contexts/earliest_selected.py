"""*earliest, selected*: at every terminator the least candidate of the events that are not used up.

Five ways lead to the same result:
- in order: for plain sequences, a loop over terminators, compiled where there are many events;
- queues: a tandem of first-in-first-out queues, on whole columns;
- production sets: each event joins the earliest set that waits for it;
- merger filter: candidates in order; one that needs a used event is dropped;
- in turn (`in_turn.py`), for patterns with groups or negations, which a used event may complete or spoil;
  compiled where compiled code takes all conditions and there are many combinations.

`spark_pace.core.match.search.technique` chooses; a rule may ask for the second, third or fourth by
``strategy``, where that is exact.

In a conjunction any event may be a terminator. Compiled code decides one after the other: from queues, one
for each component, where no event matches two and no condition is over several; else, of three components at
most, by a search for each of their orders. What is left is decided in turn.

Sources: Siddam 2015, sections 5.4 (merger filtering) and 6.2 (production sets); semantics, section 4
(queues).
"""

from __future__ import annotations

import math

import numpy as np

from spark_pace import ways
from spark_pace.core.columns import SPENT, USED, USED_OPEN, Ints, has_bit, marks_of
from spark_pace.core.match.candidates import Ranges, candidates
from spark_pace.core.match.contexts.context import ParameterContext, UsingUp
from spark_pace.core.match.contexts.in_turn import in_turn, in_turn_by_columns
from spark_pace.core.match.first import depth_first
from spark_pace.core.match.found_matches import Found, found_of
from spark_pace.core.match.search import unused
from spark_pace.core.match.search.any_order import AnyOrder
from spark_pace.core.match.search.level import compiled_levels
from spark_pace.core.match.search.search import Search
from spark_pace.core.match.search.search_arguments import Searches
from spark_pace.core.match.search.technique import MOST_IN_ORDERS
from spark_pace.core.match.stream import Stream
from spark_pace.core.match.window import window_start
from spark_pace.core.plan.rule import Context, Pattern, Within
from spark_pace.core.plan.shape import initiator_bits
from spark_pace.core.tables import numbers


def earliest_selected(stream: Stream, pattern: Pattern, search: Search) -> Found:
    """All matches of the stream. Every initiator opens a selection, and its match closes it.

    Args:
        stream: the mask of events that are used up already is 0, where the pattern is simple.
        pattern: the pattern.
        search: the pattern over the stream.
    """
    openings = _openings(stream, search)
    if isinstance(search, AnyOrder):
        return _in_any_order(search, openings)
    if search.techniques.unused.how == "in turn":
        return in_turn(search, openings)
    matrix = _matches(stream, pattern, search)
    closes = np.full(len(openings), -1, np.int64)
    selection = np.searchsorted(openings, matrix[:, 0])
    closes[selection] = matrix[:, -1]
    return found_of(openings, closes, selection, matrix)


def _matches(stream: Stream, pattern: Pattern, search: Search) -> Ints:
    """int64[m, n], the matches of a simple sequence; queues are exact if no event matches two components."""
    how = search.techniques.unused.how
    if how in ("first candidate", "all candidates", "merger_filter"):
        return by_filtering(stream, pattern, search)
    if how == "production_sets":
        return production_sets(stream, pattern.within, search)[0]
    if how == "queues" and search.exclusive:
        return queues(stream, pattern.within, search)[0]
    return in_order(stream, pattern, search)


def _openings(stream: Stream, search: Search) -> Ints:
    """The initiators but for those whose selection a match that is out has closed."""
    if SPENT not in stream.events.column_names:
        return search.initiators
    opens = stream.mask & np.uint16(initiator_bits(search.pattern)) != 0
    marks = marks_of(numbers(stream.events, SPENT))
    return np.flatnonzero(opens & (marks != USED) | (marks == USED_OPEN))


def queues(stream: Stream, within: Within | None, search: Search) -> tuple[Ints, list[Ints]]:
    """A tandem of queues: an event of step k serves the set that has waited longest at that step. O(n log n).

    It is exact for plain sequences whose predicates exclude each other, without window or with two steps.

    Returns:
        int64[m, n], the matches; and for each step but the first, int64[w, step], the sets that still wait
        for it.
    """
    sets = search.members[0][:, None]
    waiting = []
    for level in range(1, search.steps):
        servers = search.members[level]
        arrivals = sets[:, -1]
        first = np.searchsorted(arrivals, window_start(stream, servers, within))
        served, index = _serve(first, np.searchsorted(arrivals, servers))
        left = np.ones(len(sets), np.bool_)
        left[index] = False
        waiting.append(sets[left])
        sets = np.column_stack([sets[index], servers[served]])
    return sets, waiting


def production_sets(stream: Stream, within: Within | None, search: Search) -> tuple[Ints, Ints]:
    """Lists of production sets, of which each event joins the earliest that waits for it.

    It is exact for plain sequences without window or with two steps, whatever components an event matches.

    Source: Siddam 2015, section 6.2.

    Returns:
        int64[m, n], the matches; int64[w], the rows of the sets that wait.
    """
    from spark_pace.core.match.search.compiled import sets

    rows = np.flatnonzero(stream.mask)
    first = window_start(stream, rows, within)
    masks = stream.mask[rows].astype(np.int64)
    return sets.production_sets(rows, masks, first, search.steps, len(search.members[0]))


def waiting(stream: Stream, search: Search) -> Ints | None:
    """For a plain sequence without window, the rows of the sets that wait.

    None where an event matches two components and there are few: what is kept then is all that may be used.
    """
    if not search.exclusive:
        return production_sets(stream, None, search)[1] if ways.is_decided_compiled(stream.rows) else None
    return np.concatenate(
        [np.zeros(0, np.int64), *(sets.ravel() for sets in queues(stream, None, search)[1])]
    )


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
    starts = window_start(stream, terminators, pattern.within)
    if not ways.is_decided_compiled(stream.rows):
        return unused.earliest_unused(pools, bounds, starts, stream.rows)
    from spark_pace.core.match.search.compiled import sets

    return sets.earliest_unused(pools, bounds, starts, stream.rows)


def by_filtering(stream: Stream, pattern: Pattern, search: Search) -> Ints:
    """The matches of any sequence: at each terminator, in order, the first candidate without a used event."""
    terminators = search.may_end(search.members[0], search.members[-1])
    used = np.zeros(stream.rows, np.bool_)
    after = window_start(stream, terminators, pattern.within) - 1
    ranges = Ranges(terminators, after, terminators, used=used)
    rotated = search.rotated()
    if search.techniques.unused.compilable and search.many:
        _, matrix = depth_first(rotated, ranges, use_up=True)
    else:
        take = unused.first_unused
        if search.many:
            from spark_pace.core.match.search.compiled import sets

            take = sets.first_unused
        taken = [take(piece, used) for piece in candidates(rotated, ranges)]
        matrix = np.concatenate([np.zeros((0, search.steps), np.int64), *taken])
    return np.roll(matrix, -1, axis=1)


def _in_any_order(search: AnyOrder, openings: Ints) -> Found:
    """The matches of a conjunction, terminator by terminator; each closes the selection of its first event.

    Args:
        search: the pattern over a stream; the mask of events that are used up already is 0.
        openings: the opening row of each selection.
    """
    many = ways.is_compiled(len(search.terminators) ** 2 * math.factorial(search.steps))
    compilable = search.techniques.unused.compilable and many
    if not all(map(len, search.members)):
        matrix = np.zeros((0, search.steps), np.int64)
    elif compilable and search.plain and search.exclusive:
        matrix = _of_types(search)
    elif compilable and search.steps <= MOST_IN_ORDERS:
        matrix = _of_orders(search)
    else:
        return in_turn_by_columns(search, openings)
    matrix = matrix[matrix[:, 0] >= 0]
    closes = np.full(len(openings), -1, np.int64)
    selection = np.searchsorted(openings, search.firsts(matrix))
    closes[selection] = search.lasts(matrix)
    return search.found(openings, closes, selection, matrix)


def _of_types(search: AnyOrder) -> Ints:
    """The matches by components, where an event can stand for one only and any event of it will do."""
    from spark_pace.core.match.search.compiled import sets

    begins = np.cumsum([0, *map(len, search.members)])
    roles = np.zeros(search.stream.rows, np.int64)
    for role, members in enumerate(search.members):
        roles[members] = role
    searches = _searches(search)
    return sets.least_of_types(np.concatenate(search.members), begins, roles[searches.anchors], searches)


def _of_orders(search: AnyOrder) -> Ints:
    """The matches by components, of all orders of these."""
    from spark_pace.core.match.search.compiled import depth_first

    orders = search.orders
    turned = [search.arranged(order).rotated() for order in orders]
    levels = tuple(compiled_levels(one.levels, one.places, one.stream) for one in turned)
    searches = _searches(search)
    mask = search.stream.mask[searches.anchors]
    of_order = np.column_stack([has_bit(mask, order[-1]) for order in orders])
    matrix, taken_from = depth_first.least_of_orders(levels, of_order, searches)
    found = np.roll(matrix, -1, axis=1)
    places = np.array([np.argsort(order) for order in orders])
    return np.take_along_axis(found, places[taken_from], 1)


def _searches(search: AnyOrder) -> Searches:
    """A search from each terminator, over its window."""
    from spark_pace.core.match.search.compiled.compilation import normal

    terminators = normal(search.terminators)
    after = window_start(search.stream, terminators, search.pattern.within) - 1
    used = np.zeros(search.stream.rows, np.bool_)
    bounds = np.repeat(terminators, search.steps).reshape(-1, search.steps)
    return Searches(terminators, after, bounds, used, True, False, False)


EARLIEST_SELECTED = ParameterContext(
    value=Context("earliest", "selected"),
    snoop_name="chronicle",
    way=UsingUp(earliest_selected, waiting),
    window_may_close=False,
    waits_for_earlier=False,
    why_within=None,
    gathers=False,
)
