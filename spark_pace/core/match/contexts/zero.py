"""The contexts without consumption that take each, the latest, the next or the earliest candidate.

- *each, zero*: every candidate from an initiator to the event that closes its selection is a match.
- *latest, zero*: at every terminator the greatest candidate, compared from the last event back.
- *next, zero*: every initiator opens a selection and has at most one match, found by the walk.
- *earliest, zero*: at every terminator the least candidate, compared from the first event on.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from spark_pace.core.match.candidates import Ranges, candidates
from spark_pace.core.match.contexts.context import Backwards, Forwards, ParameterContext
from spark_pace.core.match.first import completions, greatest, least, walk
from spark_pace.core.match.release import settling
from spark_pace.core.match.search.search import Search
from spark_pace.core.match.stream import Found, Stream, stacked, within_rows
from spark_pace.core.match.window import window_end, window_start
from spark_pace.core.plan.rule import Context, Pattern
from spark_pace.core.plan.shape import may_differ_behind
from spark_pace.core.tables import Ints


def each_zero(stream: Stream, pattern: Pattern, search: Search, owned: tuple[int, int]) -> Found:
    """The matches of the initiators in the rows `owned`: each opens a selection.

    The first event that completes a candidate of the initiator closes the selection; with ``close: window``
    nothing closes it before its window's end.
    Sources: Siddam 2015, section 5 (the default of PACE); Mendes 2013, all-to-all pairs.
    """
    openings = within_rows(search.initiators, owned)
    end = window_end(stream, openings, pattern.within)
    closes = np.full(len(openings), -1, np.int64)
    if pattern.close == "window":
        matrix = stacked(candidates(search, Ranges(openings, openings, end)), search.steps)
    else:
        closes = completions(search, openings, end)
        done = closes >= 0
        if search.simple and search.steps == 2:
            matrix = np.column_stack([openings[done], closes[done]])
            return search.found(openings, closes, np.flatnonzero(done), matrix)
        ranges = Ranges(openings[done], openings[done], closes[done] + 1, closes[done])
        matrix = stacked(candidates(search, ranges), search.steps)
    selection = np.searchsorted(openings, search.firsts(matrix))
    deciding = search.firsts(matrix) if may_differ_behind(pattern) else None  # tells in which order they end
    return search.found(openings, closes, selection, matrix, deciding)


EACH_ZERO = ParameterContext(
    value=Context("each", "zero"),
    snoop_name=None,
    way=Forwards(each_zero, completions, in_turn=False),
    window_may_close=True,
    waits_for_earlier=False,
    why_within=None,
    gathers=False,
)


def latest_zero(stream: Stream, pattern: Pattern, search: Search, owned: tuple[int, int]) -> Found:
    """For every terminator in the rows `owned` its greatest candidate.

    Sources: Siddam 2015, section 5.1; Snoop's recent context.
    """
    last = within_rows(search.terminators, owned)
    matrix, latest = greatest(search, last, window_start(stream, last, pattern.within))
    if latest is None:
        return search.found_backwards(matrix, None)
    found = search.found_backwards(matrix, latest[np.searchsorted(last, matrix[:, -1])])
    rows = settling(search, search.initiators, matrix[:, 0], matrix[:, -1], (last, latest))
    return replace(found, settling=rows)


def tail(stream: Stream, search: Search, before: int) -> Ints:
    """The rows before row `before` that a terminator from there on can still reach.

    It is for plain sequences without window. The rows are those of the latest partial candidate that ends at
    each step: at most n(n - 1)/2 rows of each segment.
    """
    last = np.minimum(np.append(stream.starts[1:], stream.rows), before)
    last = last[stream.starts < before]
    first = stream.starts[: len(last)]
    rows = [np.zeros(0, np.int64)]
    for top in range(search.steps - 1):
        reach = last
        for level in range(top, -1, -1):
            reach = search.preceding(level, reach)
            reach = np.where(reach >= first, reach, -1)
            rows.append(reach[reach >= 0])
    return np.unique(np.concatenate(rows))


LATEST_ZERO = ParameterContext(
    value=Context("latest", "zero"),
    snoop_name="recent",
    way=Backwards(latest_zero, tail),
    window_may_close=False,
    waits_for_earlier=False,
    why_within=None,
    gathers=False,
)


def next_zero(stream: Stream, pattern: Pattern, search: Search, owned: tuple[int, int]) -> Found:
    """The matches of the initiators in the rows `owned`: each opens a selection, which its match closes.

    Sources: skip-till-next-match; Flink's ``followedBy`` without skipping.
    """
    openings = within_rows(search.initiators, owned)
    end = window_end(stream, openings, pattern.within)
    selection, matrix = walk(search, Ranges(openings, openings, end))
    closes = np.full(len(openings), -1, np.int64)
    closes[selection] = search.lasts(matrix)
    return search.varied(walking=True).found(openings, closes, selection, matrix)


def closings(search: Search, openings: Ints, end: Ints) -> Ints:
    """The last row of the walk from each opening, before row `end`; -1 where the walk finds no match."""
    if search.techniques.walk.how == "nearest":  # the walk takes the nearest of each step
        return completions(search, openings, end)
    closes = np.full(len(openings), -1, np.int64)
    selection, matrix = walk(search, Ranges(openings, openings, end))
    closes[selection] = search.lasts(matrix)
    return closes


NEXT_ZERO = ParameterContext(
    value=Context("next", "zero"),
    snoop_name=None,
    way=Forwards(next_zero, closings, in_turn=True),
    window_may_close=False,
    waits_for_earlier=False,
    why_within=None,
    gathers=False,
)


def earliest_zero(stream: Stream, pattern: Pattern, search: Search, owned: tuple[int, int]) -> Found:
    """For every terminator in the rows `owned` its least candidate."""
    last = within_rows(search.terminators, owned)
    matrix = least(search, last, window_start(stream, last, pattern.within))
    return search.found_backwards(matrix, None)


EARLIEST_ZERO = ParameterContext(
    value=Context("earliest", "zero"),
    snoop_name=None,
    way=Backwards(earliest_zero, None),
    window_may_close=False,
    waits_for_earlier=False,
    why_within="every initiator would be kept for ever",
    gathers=False,
)
