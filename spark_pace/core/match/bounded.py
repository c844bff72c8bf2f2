"""A pattern over a stream: which kernel decides which context."""

from __future__ import annotations

import numpy as np

from spark_pace.core.columns import Ints
from spark_pace.core.match.candidates import Search
from spark_pace.core.match.contexts.all import all_selected
from spark_pace.core.match.contexts.chain import chain
from spark_pace.core.match.contexts.each import each_selected, each_zero
from spark_pace.core.match.contexts.earliest import earliest_zero
from spark_pace.core.match.contexts.earliest_selected import earliest_selected
from spark_pace.core.match.contexts.latest import latest_selected, latest_zero
from spark_pace.core.match.contexts.next import next_zero
from spark_pace.core.match.found import Found, found_of, whole
from spark_pace.core.match.stream import Horizon, Stream
from spark_pace.core.plan.rule import Pattern

_ZERO = {"each": each_zero, "latest": latest_zero, "next": next_zero, "earliest": earliest_zero}


def is_free(pattern: Pattern) -> bool:
    """Whether no decision depends on the one before: consumption *zero*."""
    return pattern.context.consumption == "zero"


def match_free(stream: Stream, pattern: Pattern, owned: tuple[int, int]) -> Found:
    """Consumption *zero*: the matches of the initiators (*latest*, *earliest*: terminators) in the range `owned`."""
    return _ZERO[pattern.context.selection](stream, pattern, Search(stream, pattern), owned)


def match_closed(stream: Stream, pattern: Pattern, openings: Ints, closes: Ints) -> Found:
    """*each*, *latest*, *all*, *selected*: the matches of selections that are closed already."""
    if pattern.context.selection == "all":
        return all_selected(stream, openings, closes, len(pattern.components))
    search = Search(stream, pattern)
    if pattern.context.selection == "latest":
        return latest_selected(search, openings, closes)
    return each_selected(search, openings, closes)


def match_bounded(stream: Stream, pattern: Pattern, horizon: Horizon) -> Found:
    """Any context over segments taken by themselves: the inside of spans."""
    if is_free(pattern):
        return match_free(stream, pattern, whole(stream))
    search = Search(stream, pattern)
    if pattern.context.selection == "earliest":
        return earliest_selected(stream, pattern, search)
    links = chain(stream, pattern, search, horizon)
    if links.matrix is not None:
        done = np.flatnonzero(links.closes >= 0)
        return found_of(links.openings, links.closes, done, links.matrix[done])
    done = np.flatnonzero(links.closes >= 0)
    found = match_closed(stream, pattern, links.openings[done], links.closes[done])
    return Found(
        links.openings, links.closes, done[found.selection], found.offsets, found.members, found.roles
    )
