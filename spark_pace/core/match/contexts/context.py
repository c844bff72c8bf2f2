"""What a parameter context is: everything that it decides, in one object.

The `way` of a context says who decides about its matches. There are four ways; `spark_pace.core.split` has
the splitter of each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, TypeAlias

import numpy as np

from spark_pace.core.match.chain import Closing, chain
from spark_pace.core.match.search.any_order import search_of
from spark_pace.core.match.search.search import Search
from spark_pace.core.match.search.technique import Technique, Techniques
from spark_pace.core.match.stream import Found, Stream, whole
from spark_pace.core.match.window import Horizon
from spark_pace.core.plan.rule import Context, Pattern
from spark_pace.core.plan.shape import may_differ_behind
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
