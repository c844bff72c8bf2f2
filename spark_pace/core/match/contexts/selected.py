"""The contexts whose matches use up the selection's events, but for *earliest, selected*.

- *all, selected*: one match gathers every event of the selection that matches a component.
- *each, selected*: every candidate in the selection that ends with the closing event is a match.
- *latest, selected*: of the candidates that end with the event that closes the selection, the greatest.
- *next, selected*: the match that the walk finds uses up everything up to its last event.
"""

from __future__ import annotations

import numpy as np

from spark_pace.core.match.candidates import Ranges, candidates
from spark_pace.core.match.chain import Closed, closed_by_completion
from spark_pace.core.match.contexts.context import OneOpen, ParameterContext
from spark_pace.core.match.first import greatest, walk
from spark_pace.core.match.search.any_order import search_of
from spark_pace.core.match.search.limits import behind, last_events
from spark_pace.core.match.search.search import Search
from spark_pace.core.match.stream import Found, Stream, rows_before, stacked
from spark_pace.core.plan.rule import Context, Pattern
from spark_pace.core.plan.shape import shape_of
from spark_pace.core.ranges import expand
from spark_pace.core.tables import Ints


def all_selected(stream: Stream, pattern: Pattern, openings: Ints, closes: Ints) -> Found:
    """One match for each closed selection: its events, each as the first declared component it matches.

    Events that match no component, or negated ones only, are left out.

    Sources: Snoop's cumulative context (two steps); Siddam 2015, section 2.5.
    """
    first_role = _first_component(stream, pattern)
    counts = np.append(0, np.cumsum(first_role >= 0))
    _, rows = expand(openings, closes + 1)
    members = rows[first_role[rows] >= 0]
    sizes = counts[closes + 1] - counts[openings]
    offsets = np.append(0, np.cumsum(sizes))
    deciding = openings if shape_of(pattern).trailing else None
    return Found(openings, closes, np.arange(len(openings)), offsets, members, first_role[members], deciding)


def _first_component(stream: Stream, pattern: Pattern) -> np.ndarray[tuple[int], np.dtype[np.int8]]:
    """int8[n], the first declared component that each row matches, negated ones aside; -1 if it is none."""
    role = np.full(stream.rows, -1, np.int8)
    for bit, component in reversed(list(enumerate(pattern.components))):
        if not component.negated:
            role[stream.matching(bit)] = bit
    return role


ALL_SELECTED = ParameterContext(
    value=Context("all", "selected"),
    snoop_name="cumulative",
    way=OneOpen(closed_by_completion, all_selected),
    window_may_close=False,
    waits_for_earlier=False,
    why_within="a selection could gather events for ever",
    gathers=True,
)


def each_selected(stream: Stream, pattern: Pattern, openings: Ints, closes: Ints) -> Found:
    """All candidates in each closed selection that end with its closing event.

    Sources: Siddam 2015, section 5.2; Snoop's continuous context (two steps).
    """
    search = search_of(stream, pattern)
    initiators = search.initiators
    owner, index = expand(search.initiators_before(openings), search.initiators_before(closes + 1))
    ends = closes[owner]
    ranges = Ranges(initiators[index], initiators[index], ends + 1, ends)
    matrix = stacked(candidates(search, ranges), search.steps)
    selection = rows_before(openings, search.firsts(matrix) + 1, stream.rows) - 1
    return search.found(openings, closes, selection, matrix)


EACH_SELECTED = ParameterContext(
    value=Context("each", "selected"),
    snoop_name="continuous",
    way=OneOpen(closed_by_completion, each_selected),
    window_may_close=False,
    waits_for_earlier=False,
    why_within=None,
    gathers=False,
)


def latest_selected(stream: Stream, pattern: Pattern, openings: Ints, closes: Ints) -> Found:
    """In each closed selection the greatest candidate that ends with its closing event.

    Sources: Siddam 2015, section 5.3.
    """
    search = search_of(stream, pattern)
    best, _ = greatest(search, closes, openings)
    return search.found(openings, closes, np.searchsorted(openings, search.firsts(best), "right") - 1, best)


LATEST_SELECTED = ParameterContext(
    value=Context("latest", "selected"),
    snoop_name=None,
    way=OneOpen(closed_by_completion, latest_selected),
    window_may_close=False,
    waits_for_earlier=False,
    why_within=None,
    gathers=False,
)


def closed_by_walk(stream: Stream, search: Search, initiators: Ints, end: Ints) -> Closed:
    """The last row of each initiator's match, and its walk; -1 where it has none before row `end`.

    Sources: semantics, section 4; SQL's and Flink's "skip past last".
    """
    matrix = np.full((len(initiators), search.steps), -1, np.int64)
    found, matches = walk(search, Ranges(initiators, initiators, end))
    closes = np.full(len(initiators), -1, np.int64)
    matrix[found], closes[found] = matches, search.lasts(matches)
    following = behind(search.varied(walking=True), matches)
    if following is None:
        return closes, matrix, None
    closes[found] = last_events(search, matches, following)
    ranges = np.zeros((len(initiators), 2), np.int64)
    ranges[found] = following
    return closes, matrix, ranges


NEXT_SELECTED = ParameterContext(
    value=Context("next", "selected"),
    snoop_name=None,
    way=OneOpen(closed_by_walk, None),
    window_may_close=False,
    waits_for_earlier=True,  # only then is it known that no earlier initiator has a match
    why_within=None,
    gathers=False,
)
