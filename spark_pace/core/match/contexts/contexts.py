"""The parameter contexts but for *earliest, selected*: each is one object, with everything that it decides.

The `way` of a context says who decides about its matches. There are four ways; `spark_pace.core.split` has
the splitter of each.

Without consumption:

- *each, zero*: every candidate from an initiator to the event that closes its selection is a match.
- *latest, zero*: at every terminator the greatest candidate, compared from the last event back.
- *next, zero*: every initiator opens a selection and has at most one match, found by the walk.
- *earliest, zero*: at every terminator the least candidate, compared from the first event on.

Where matches use up the selection's events:

- *all, selected*: one match gathers every event of the selection that matches a component.
- *each, selected*: every candidate in the selection that ends with the closing event is a match.
- *latest, selected*: of the candidates that end with the event that closes the selection, the greatest.
- *next, selected*: the match that the walk finds uses up everything up to its last event.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, TypeAlias

import numpy as np

from spark_pace.core.match.candidates import Ranges, candidates
from spark_pace.core.match.chain import Closed, Closing, chain, closed_by_completion
from spark_pace.core.match.first import completions, greatest, least, walk
from spark_pace.core.match.release import settling
from spark_pace.core.match.search.any_order import search_of
from spark_pace.core.match.search.limits import behind, last_events
from spark_pace.core.match.search.search import Search
from spark_pace.core.match.search.technique import Technique, Techniques
from spark_pace.core.match.stream import (
    Found,
    Horizon,
    Stream,
    rows_before,
    stacked,
    whole,
    window_end,
    window_start,
    within_rows,
)
from spark_pace.core.plan.rule import Context, Pattern
from spark_pace.core.plan.shape import may_differ_behind, shape_of
from spark_pace.core.ranks import expand
from spark_pace.core.tables import Ints

# The matches of the initiators (Forwards) or terminators (Backwards) in a range of rows.
FreeKernel: TypeAlias = Callable[[Stream, Pattern, Search, tuple[int, int]], Found]
# The rows that close the selections of some initiators, each before a given row; -1 where none does.
FreeClosings: TypeAlias = Callable[[Search, Ints, Ints], Ints]
# The matches inside selections that are closed, given the first and the last row of each.
ClosedKernel: TypeAlias = Callable[[Stream, Pattern, Ints, Ints], Found]


@dataclass(frozen=True)
class Forwards:
    """Nothing is used up, and operators match from initiators on, in parallel.

    Every initiator opens a selection.

    Attributes:
        match: the kernel.
        closings: which row closes the selection of each initiator, unless ``close: window`` says that none
            does.
        in_turn: whether an event is taken by what is decided by then, so that it matters at which component
            a condition is decided.
    """

    match: FreeKernel
    closings: FreeClosings
    in_turn: bool
    work: ClassVar[Literal["free"]] = "free"
    every_initiator_opens: ClassVar[bool] = True


@dataclass(frozen=True)
class Backwards:
    """Nothing is used up, and operators match from terminators back, in parallel.

    Every initiator opens a selection, and nothing closes it before its window's end.

    Attributes:
        match: the kernel.
        tail: for a plain sequence without window, the rows below a given one that later terminators can still
            reach, ascending; None only where the context always needs ``within``.
    """

    match: FreeKernel
    tail: Callable[[Stream, Search, int], Ints] | None
    in_turn: ClassVar[bool] = False
    work: ClassVar[Literal["free"]] = "free"
    every_initiator_opens: ClassVar[bool] = True


@dataclass(frozen=True)
class OneOpen:
    """At most one selection is open, and what closes it uses up all of it: the splitter decides selections.

    Attributes:
        closing: which row closes the selection of each initiator, and its match if that is what closes it.
        inside: the kernel by which operators find the matches of closed selections; None where `closing`
            finds them.
    """

    closing: Closing
    inside: ClosedKernel | None
    every_initiator_opens: ClassVar[bool] = False

    @property
    def work(self) -> Literal["closed", "matched"]:
        """What is left to the operators."""
        return "matched" if self.inside is None else "closed"


@dataclass(frozen=True)
class UsingUp:
    """A match uses up its own events: the splitter finds the matches. Every initiator opens a selection.

    Attributes:
        match: the kernel.
        waiting: for a plain sequence without window, the unused rows that later matches can still use.
    """

    match: Callable[[Stream, Pattern, Search], Found]
    waiting: Callable[[Stream, Search], Ints]
    work: ClassVar[Literal["matched"]] = "matched"
    every_initiator_opens: ClassVar[bool] = True


Way: TypeAlias = Forwards | Backwards | OneOpen | UsingUp


def walks(way: Way) -> bool:
    """Tell whether a match is what a walk takes, component after component."""
    return way.inside is None if isinstance(way, OneOpen) else isinstance(way, Forwards) and way.in_turn


def takes_optional_last(way: Way) -> bool:
    """Tell whether the component in last place may be optional, so that events come behind a whole match.

    It may not where other candidates decide what is used up, and when.
    """
    return isinstance(way, Forwards | Backwards) or walks(way)


def waits_for_its_window(pattern: Pattern, way: Way) -> bool:
    """Tell whether a match with an optional component in last place is decided at its window's end alone.

    Its selection may have other matches then, and only that end tells in which order they end.
    """
    several = isinstance(way, Forwards) and not way.in_turn and may_differ_behind(pattern)
    return isinstance(way, Backwards) or several


def match_bounded(way: Way, stream: Stream, pattern: Pattern, horizon: Horizon) -> Found:
    """The matches inside segments that are whole, such as spans.

    The horizon counts where at most one selection is open: the next one opens when a window is over.
    """
    search = search_of(stream, pattern)
    if isinstance(way, OneOpen):
        return _match_one_open(way, search, horizon)
    if isinstance(way, UsingUp):
        return way.match(stream, pattern, search)
    return way.match(stream, pattern, search, whole(stream))


def _match_one_open(way: OneOpen, search: Search, horizon: Horizon) -> Found:
    links = chain(search, way.closing, horizon, apart=way.inside is None)
    if links.matches is not None:
        return links.found(search)
    assert way.inside is not None
    done = np.flatnonzero(links.closes >= 0)
    found = way.inside(search.stream, search.pattern, links.openings[done], links.closes[done])
    selection = done[found.selection]
    deciding = None if links.deciding is None else links.deciding[selection]
    return replace(
        found, openings=links.openings, closes=links.closes, selection=selection, deciding=deciding
    )


def technique_of(way: Way, techniques: Techniques) -> Technique:
    """Which of a pattern's techniques decides about its selections and matches."""
    if isinstance(way, UsingUp):
        return techniques.unused
    if isinstance(way, Backwards):
        return techniques.best
    return techniques.walk if walks(way) else techniques.completion


@dataclass(frozen=True, kw_only=True)
class ParameterContext:
    """Everything that a parameter context decides. No field has a default: a new context must say it all.

    Attributes:
        value: selection and consumption policy, as a rule file writes them and a rule holds them.
        snoop_name: what Snoop calls it, as a rule file may do too; None where Snoop does not have it.
        way: who decides about its matches, and by which kernels.
        window_may_close: whether a rule may say ``close: window``.
        waits_for_earlier: whether a match is certain only when all selections before its own are resolved.
        why_within: why a pattern outside a span always needs ``within``, as the end of a sentence; None where
            a plain sequence does without.
        gathers: whether a match has any number of events for a component, so that ``emit`` needs aggregates.
    """

    value: Context
    snoop_name: str | None
    way: Way
    window_may_close: bool
    waits_for_earlier: bool
    why_within: str | None
    gathers: bool

    def __post_init__(self) -> None:
        """Refuse a context in which nothing says what to carry without a window."""
        if isinstance(self.way, Backwards) and self.way.tail is None and self.why_within is None:
            raise ValueError(f"parameter context {self.value} — must have a tail or need within; got neither")


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
