"""What compiled searches are given.

A search places the *anchors* of a pattern one by one (`spark_pace.core.plan.shape`): it gives each a row. A
*set* has the rows of a group, of a negated component, or of what ends a group. Sets are numbered behind the n
anchors, and a mask has a bit for each anchor and each set.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spark_pace.core.tables import Bools, Ints

LEAST, GREATEST, COMPLETION = range(3)  # which candidate a search is for
WHOLE, BEFORE, BEHIND = 0, 1, 2  # where in its gap a component forbids: all of it, before or behind the group


class Rows(NamedTuple):
    """The rows of n anchors and k sets, and the comparisons that they must satisfy.

    The rows of an anchor stand in one or several *paths*: by place, or by an equality, where those of equal
    rank stand together. Ranks are those of `spark_pace.core.match.search.comparison`.

    Attributes:
        pools: int64[p], the rows of each path, ascending among those of equal rank.
        groups: int64[], for each path where the rows of each rank begin in `pools`, and where the last ones
            end. A path by place has one rank, 0.
        first_groups: int64[paths], where each path begins in `groups`.
        paths: int64[n + k + 1], the first path of each anchor or set.
        equals: int64[paths, 2], the other anchor of the equality by which the rows stand, and the place in
            `ranks` of that anchor's side; -1 where a path is by place.
        tests: int64[t, 4], for each anchor or set its comparisons with anchors: the other anchor, the places
            in `ranks` of the other side and of its own, and which orders of the other to its own it accepts.
        test_bounds: int64[n + k + 1], where each begins and ends in `tests`.
        least: int64[t, blocks], the least own rank of each test in each block of `pools`.
        greatest: int64[t, blocks], the greatest one.
        ranks: int64[c, rows].
        ties: int64[n + k], the mask of the anchors that each is tested together with.
        block_bits: a block has 2 to the power of it rows. They are passed over at once where their ranks tell
            that none fits.
    """

    pools: Ints
    groups: Ints
    first_groups: Ints
    paths: Ints
    equals: Ints
    tests: Ints
    test_bounds: Ints
    least: Ints
    greatest: Ints
    ranks: Ints
    ties: Ints
    block_bits: int


class Programs(NamedTuple):
    """Conditions as programs over columns of the rows of a stream, and room to run them in.

    Attributes:
        lines: int64[m, 4], what to do; the anchor or set whose row is pushed before, -1 for none; the column
            it is pushed of; what a comparison accepts.
        bounds: int64[c + 1], where the lines of each condition begin and end.
        names: int64[c], the mask of the anchors, and of the set, that must be placed to test it.
        ints: int64[v, rows], values that are BIGINTs, BOOLEANs, or compare as others do.
        doubles: float64[v, rows], the same bits as DOUBLEs.
        nulls: bool[v, rows], where they are null.
        aggregates: int64[g, 4], the aggregates over groups that programs read: the gap of the group, what is
            done, the column of the values (-1 for `COUNT`), and the column to which the aggregate of the rows
            that are placed is written, at the row of the anchor behind the group.
        aggregate_bounds: int64[c + 1], where those of each condition begin and end.
        counts: int64[g], room for the number of values that each has so far.
        lows, highs: int64[g], room for their sum, low + high * 2 ** 32, where they are BIGINTs.
        sums: float64[g], room for it where they are DOUBLEs.
        rows: int64[r], room for the rows that programs are run for together.
        places: int64[r], room for the places of these in the pools of a search.
        held: bool[r], room for what is said of them.
        int_stack: int64[depth, r].
        double_stack: float64[depth, r].
        null_stack: bool[depth, r].
    """

    lines: Ints
    bounds: Ints
    names: Ints
    ints: Ints
    doubles: npt.NDArray[np.float64]
    nulls: Bools
    aggregates: Ints
    aggregate_bounds: Ints
    counts: Ints
    lows: Ints
    highs: Ints
    sums: npt.NDArray[np.float64]
    rows: Ints
    places: Ints
    held: Bools
    int_stack: Ints
    double_stack: npt.NDArray[np.float64]
    null_stack: Bools


class Unused(NamedTuple):
    """Which rows are used up.

    Attributes:
        turns: int64[rows], the turn in which a match has used each row up, `NO_ROW` where none has; empty
            where nothing is used up. A row is used in the turns after it.
        following: int64[p], for each place of the pools a place behind it, before which all rows are used.
    """

    turns: Ints
    following: Ints


class Searched(NamedTuple):
    """What is searched.

    Attributes:
        rows: the rows of the anchors and sets, and the comparisons.
        programs: the other conditions.
        unused: which rows are used up.
        shared: int64[n + k], for each anchor the mask of the others that have rows in common with it; no two
            may have the same row in one candidate.
        hints: int64[n + k], the place in its pool at which each was looked for last.
    """

    rows: Rows
    programs: Programs
    unused: Unused
    shared: Ints
    hints: Ints


class Placement(NamedTuple):
    """Which anchors are placed, and the anchor or set for which a row is sought.

    Attributes:
        own: the anchor or set for which a row is sought.
        mask: the mask of the anchors that are placed.
        taken: int64[n], their rows.
        turn: the turn in which a row is sought, see `Unused`.
    """

    own: int
    mask: int
    taken: Ints
    turn: int


class Further(NamedTuple):
    """Conditions of groups on what they have so far, and room for what a group has.

    Attributes:
        programs: the conditions; each is tested for rows of the anchor that has the number of its gap.
        numbers: int64[n - 1], for each gap the number of its group's condition; -1 for none.
        taken: int64[n + 2], behind a place for each gap: the rows of the group's first and of its last event,
            and the row at which the programs' aggregates stand, 0.
    """

    programs: Programs
    numbers: Ints
    taken: Ints


class Sequence(NamedTuple):
    """A sequence of n anchors with k sets, as it is searched.

    Attributes:
        searched: the rows and conditions.
        order: int64[n], the anchors in the order in which they are placed; the first one is given.
        placed: int64[n], for each of these the mask of those before it.
        step: 1 if earlier rows are tried first, -1 if later ones are.
        gaps: int64[n - 1, 14], of the group between two anchors its set (-1 for none), the least and the most
            events (-1 for any number), and whether the left and the right anchor are its own; whether no
            other event may stand between the anchors, and whether none may stand behind the group; its place
            in `ends` (-1 for none), the set of the events that end it (-1 for none), whether its events
            directly follow each other, whether it is optional and in first place, whether the right anchor
            begins a group that directly follows it, whether it is optional and directly follows another one,
            and whether the right anchor may be an event of no group, where groups behind it are empty.
        ends: int64[e, rows], of each group that may end early the row behind a left anchor that ends it.
        forbids: int64[f, 5], of each negated component its set, its gap (-1: behind the last anchor), where
            in it, the mask of the anchors that must be placed to test it, and of those its conditions name.
        further: what groups ask of their events behind the first; of these `between.py` knows no numbers.
        before: int64[k, rows + 1], how many rows of each set stand before each row.
        roles: int64[n + k], the component of each anchor and set; that of the group for what ends it.
        alone: bool[n], whether the anchor stands for one event; else it is one of its group's.
        seq: int64[rows], the place of each row in the rule's stream.
        window_end: int64[rows], behind the window that starts at each row; empty where none is needed.
        simple: 1 if nothing is said of what stands between anchors.
        compares: the level from which on all candidates are compared; n if the first one is the best one.
    """

    searched: Searched
    order: Ints
    placed: Ints
    step: int
    gaps: Ints
    ends: Ints
    forbids: Ints
    further: Further
    before: Ints
    roles: Ints
    alone: Bools
    seq: Ints
    window_end: Ints
    simple: int
    compares: int


class Searches(NamedTuple):
    """Searches that are done one after the other, and how.

    Attributes:
        given: int64[m], the row of the anchor that is given to each.
        low: int64[m], the first row that may be taken where nothing else says so.
        bounds: int64[m, n], for each anchor the row after the last one that may be taken; if later rows are
            tried first, the first one.
        turns: int64[m], a number of each, ascending, where rows are used up; else empty.
        segments: int64[m], where a trailing negation must be known, the segment of each; else empty.
        second_thoughts: 1 if another row is tried where no candidate was reached.
        shorten: 1 if the search goes on for a candidate that ends before the one it has found.
        only_latest: 1 if it is only asked which candidate starts last.
    """

    given: Ints
    low: Ints
    bounds: Ints
    turns: Ints
    segments: Ints
    second_thoughts: int
    shorten: int
    only_latest: int


class Answers(NamedTuple):
    """Room for what m searches find.

    Attributes:
        found: int64[m, n], the rows of the anchors; -1 where there is no candidate.
        latest: int64[m], the first row of the candidate that starts last, whatever a trailing negation
            forbids; where rows are used up, of all in the segment so far; -1 for none. Empty if not asked.
        ends: int64[m], where rows are used up, where the events of each match end in `members`; else empty.
        members: int64[], the events of the matches; room for two candidates more.
        roles: int64[], the components that they stand for.
    """

    found: Ints
    latest: Ints
    ends: Ints
    members: Ints
    roles: Ints


class Conjunction(NamedTuple):
    """A conjunction of n anchors, as it is searched.

    Its anchors fall into *parts*: no condition is over anchors of two parts, and no row may be that of
    anchors of two. So each part is searched for itself.

    Attributes:
        searched: the rows and conditions.
        parts: int64[q], the mask of the anchors of each part, those of one anchor first.
        following: int64[q, 2 ** n], for each part, by the mask of those of its anchors that are placed, the
            anchor to be placed next.
        masks: int64[rows], the anchors that each row may be that of.
        exclusive: bool[q], whether no row may be that of two anchors of the part.
    """

    searched: Searched
    parts: Ints
    following: Ints
    masks: Ints
    exclusive: Bools


class Ends(NamedTuple):
    """Searches for candidates of a conjunction, each with a given first or last row, one after the other.

    Attributes:
        given: int64[m], the given row of each, ascending.
        low: int64[m], ascending, the first row that a candidate may have; not read for completions.
        high: int64[m], ascending, the row behind the last one that it may have; read for completions only.
        allowed: bool[rows], the rows that may be the last one of a completion; empty where any may.
        turns: int64[m], a number of each, ascending, where rows are used up; else empty.
        sought: `LEAST` or `GREATEST` of the candidates that end with the row, or the `COMPLETION` of one that
            begins with it.
    """

    given: Ints
    low: Ints
    high: Ints
    allowed: Bools
    turns: Ints
    sought: int
