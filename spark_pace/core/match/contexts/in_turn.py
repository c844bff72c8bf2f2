"""*earliest, selected* for patterns whose groups and negations see only the events that are not used up."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from spark_pace.core.columns import MASK, NO_ROW, SPENT, SPENT_BITS, UNUSED, Ints
from spark_pace.core.match.compiled_search import searches_of
from spark_pace.core.match.first import chosen, least
from spark_pace.core.match.found_matches import Decided, Found
from spark_pace.core.match.release import settling
from spark_pace.core.match.search.any_order import search_of
from spark_pace.core.match.search.search import Search
from spark_pace.core.match.stream import Stream
from spark_pace.core.match.window import window_end, window_start
from spark_pace.core.plan.shape import initiator_bits
from spark_pace.core.ranges import expand
from spark_pace.core.ranks import segments_of
from spark_pace.core.tables import numbers, with_column


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
