"""What the compiled turns of *earliest, selected* are given and give back."""

from __future__ import annotations

from typing import NamedTuple

from spark_pace.core.columns import Bools, Ints
from spark_pace.core.match.search.search_arguments import Programs

WHOLE, BEFORE, BEHIND = 0, 1, 2  # where in its gap a component forbids: see `Forms.forbids`


class Forms(NamedTuple):
    """A pattern of n anchors over a stream. A row set is that of a group or of a negated component.

    Attributes:
        rows: int64[p], the rows of each anchor's component, then those of each row set, ascending in each.
        begins: int64[n + sets + 1], where those of each begin, and where the last ones end.
        roles: int64[n + sets], the component of each.
        alone: bool[n], whether the anchor stands for one event; else it is one of its group's.
        gaps: int64[n - 1, 5], of the group between two anchors its row set (-1 for none), the least and the
            most events (-1 for any number), and whether the left and the right anchor are its own.
        forbids: int64[f, 5], of each negated component its row set, its gap (-1: behind the last anchor),
            where in it, the level at which it is known, and whether a condition names that level.
        tests: int64[t, 4], comparisons: a level, the place in `ranks` of its side and of the other, and what
            is accepted. First those of each level with earlier ones, then those of each negated component.
        test_bounds: int64[n + f + 1], where those of each begin and end.
        ranks: int64[c, stream], see `spark_pace.core.match.search.comparison`.
        programs: the other conditions, of the same n + f levels and negated components.
        seq: int64[stream], the place of each row in the rule's stream.
        window_end: int64[stream], behind the window that starts at each row; empty where none is needed.
        strict: whether no event may stand between two events of a candidate.
        compares: whether the first candidate that is found may not be the least one.
    """

    rows: Ints
    begins: Ints
    roles: Ints
    alone: Bools
    gaps: Ints
    forbids: Ints
    tests: Ints
    test_bounds: Ints
    ranks: Ints
    programs: Programs
    seq: Ints
    window_end: Ints
    strict: bool
    compares: bool


class Turns(NamedTuple):
    """The terminators, and what was used up.

    Attributes:
        terminators: int64[m], ascending.
        segments: int64[m], the segment of each.
        number: int64[m], a number of each, ascending.
        starts: int64[m], the first row that its match may begin with.
        bounds: int64[m, n], for each anchor the row after the last one that may be taken.
        used: int64[stream], the number of the terminator whose match has used each row up; changed in place.
        following: int64[p], for each place of `rows` one behind it; changed in place.
    """

    terminators: Ints
    segments: Ints
    number: Ints
    starts: Ints
    bounds: Ints
    used: Ints
    following: Ints


class Matches(NamedTuple):
    """Room for matches.

    Attributes:
        ends: int64[m], where the events of each terminator's match end in `rows` and `roles`.
        rows: int64[], the rows of the matches.
        roles: int64[], the components that they stand for.
        latest: int64[m], the first row of the candidate that starts last of all up to the terminator.
    """

    ends: Ints
    rows: Ints
    roles: Ints
    latest: Ints
