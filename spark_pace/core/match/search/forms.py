"""A pattern with groups and negations as compiled code takes it, and the turns of its terminators."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spark_pace.core.columns import NO_ROW, Ints
from spark_pace.core.expr import Expr
from spark_pace.core.match.search.any_order import AnyOrder
from spark_pace.core.match.search.comparison import is_comparison
from spark_pace.core.match.search.programs import programs_of
from spark_pace.core.match.search.search import Search
from spark_pace.core.match.search.search_arguments import Programs
from spark_pace.core.match.search.turn_arguments import BEFORE, BEHIND, WHOLE, Forms, Matches, Turns
from spark_pace.core.match.window import window_end, window_start


@dataclass(frozen=True)
class Decided:
    """What compiled code has decided.

    Attributes:
        offsets, members, roles: the production sets of the matches, by rows of the stream.
        latest: int64[m], for each match the first row of the candidate that starts last up to its last event;
            None where nothing behind it may forbid it.
    """

    offsets: Ints
    members: Ints
    roles: npt.NDArray[np.int8]
    latest: Ints | None


def decided(search: Search, used: Ints) -> Decided:
    """The matches of *earliest, selected*, terminator by terminator.

    Args:
        search: a sequence over a stream, whose conditions are `runnable`.
        used: int64[n], the `seq` of the terminator at whose turn each event was used up; else `NO_ROW`.
    """
    from spark_pace.core.match.search.compiled.turns import in_turn

    forms = _forms(search)
    turns = _turns(search, forms, used)
    matches = _room(search, len(turns.terminators))
    in_turn(forms, turns, matches, np.zeros((2, search.steps), np.int64))
    offsets = np.append(0, matches.ends)
    found = np.flatnonzero(np.diff(offsets))
    members, roles = matches.rows[: offsets[-1]], matches.roles[: offsets[-1]].astype(np.int8)
    latest = matches.latest[found] if search.trailing else None
    return Decided(np.append(0, matches.ends[found]), members, roles, latest)


def _forms(search: Search) -> Forms:
    from spark_pace.core.match.search.compiled.compilation import normal

    between, shape, stream = search.between, search.between.shape, search.stream
    sets = list(between.rows_of)
    lists = [*search.fitting, *between.rows_of.values()]
    tests, test_bounds, ranks = _tests(search)
    gaps = [
        (
            -1 if gap.group is None else search.steps + sets.index(gap.group),
            gap.times.least,
            -1 if gap.times.most is None else gap.times.most,
            gap.from_left,
            gap.to_right,
        )
        for gap in shape.gaps
    ]
    rows = np.arange(stream.rows if search.trailing else 0)
    components = search.pattern.components
    return Forms(
        rows=np.concatenate(lists),
        begins=np.cumsum([0, *map(len, lists)]),
        roles=np.array([*shape.anchors, *sets]),
        alone=np.array([components[index].times is None for index in shape.anchors]),
        gaps=np.array(gaps, np.int64).reshape(-1, 5),
        forbids=_forbids(search, sets),
        tests=tests,
        test_bounds=test_bounds,
        ranks=ranks,
        programs=_programs(search),
        seq=normal(stream.seq),
        window_end=window_end(stream, rows, search.pattern.within),
        strict=shape.strict,
        compares=_overlaps(search),
    )


def _forbids(search: Search, sets: list[int]) -> Ints:
    """What `Forms` says of each negated component."""
    found = []
    for one in search.between.forbidding:
        where = WHOLE
        if one.gap is not None and (gap := search.between.shape.gaps[one.gap]).group is not None:
            where = BEFORE if one.component in gap.before else BEHIND
        named = any(
            search.between.shape.level(conjunct) == one.level > search.between.shape.complete[one.component]
            for conjunct in search.pattern.where
            if one.component in conjunct.components
        )
        names = named or _names(search, one.component, one.level)
        gap_number = -1 if one.gap is None else one.gap
        level = search.steps - 1 if one.gap is None else one.level
        found.append((search.steps + sets.index(one.component), gap_number, where, level, names))
    return np.array(found, np.int64).reshape(-1, 5)


def _names(search: Search, negated: int, level: int) -> bool:
    """Tell whether a condition of a negated component names the anchor of a level, or a group before it."""
    shape = search.between.shape
    named = {shape.anchors[level], *(gap.group for gap in shape.gaps)}
    where = [{*one.components} for one in search.pattern.where if negated in one.components]
    return any(not named.isdisjoint(components) for components in where)


def _programs(search: Search) -> Programs:
    """The conditions that are no comparisons of two components, as `Forms` has them."""
    between, components = search.between, search.pattern.components
    negated = {one.component: search.steps + k for k, one in enumerate(between.forbidding)}
    exprs: list[list[Expr]] = [[] for _ in range(search.steps + len(negated))]
    for one in search.pattern.where:
        if not is_comparison(one.expr, search.places):
            places = [negated[index] for index in one.components if index in negated]
            exprs[max(places, default=between.shape.level(one))].append(one.expr)
    groups = {g: gap.group for g, gap in enumerate(between.shape.gaps) if gap.group is not None}
    gaps: dict[str | None, int] = {components[index].name: g for g, index in groups.items()}
    return programs_of(exprs, search.places, search.stream, gaps)


def _tests(search: Search) -> tuple[Ints, Ints, Ints]:
    """The comparisons of each level, then of each negated component, as `Forms` has them."""
    compared = search.comparisons(conjunct.expr for conjunct in search.pattern.where)
    compared.sort(key=lambda one: one.later)
    places = range(search.steps + len(search.between.forbidding) + 1)
    bounds = np.searchsorted([one.later for one in compared], places)
    ranks: list[Ints] = []
    tests = []
    for one in compared:
        tests.append((one.earlier, len(ranks), len(ranks) + 1, one.accepts))
        ranks += [one.earlier_ranks, one.later_ranks]
    rows = search.stream.rows
    return np.array(tests, np.int64).reshape(-1, 4), bounds, np.array(ranks, np.int64).reshape(-1, rows)


def _overlaps(search: Search) -> bool:
    """Tell whether an event may stand for a group or for the single component behind it.

    Of two candidates the one whose anchor comes first is the less, unless the other one has it in its group.
    """
    shape, rows_of = search.between.shape, search.between.rows_of
    return any(
        gap.group is not None and len(np.intersect1d(rows_of[gap.group], search.members[level], True)) > 0
        for level, gap in enumerate(shape.gaps[:-1], 1)
    )


def hopeful_ends(search: Search) -> Ints:
    """The terminators but for some that certainly end no candidate."""
    if isinstance(search, AnyOrder):
        return search.terminators[: None if len(search.fitting[0]) else 0]
    return _hopeful(search)[0]


def _hopeful(search: Search) -> tuple[Ints, Ints, Ints]:
    """These terminators of a sequence, and their `starts` and `bounds` as `Turns` has them."""
    ends = search.fitting[-1]
    starts, bounds = window_start(search.stream, ends, search.pattern.within), _bounds(search, ends)
    hopeful = starts < bounds[:, 0]
    return ends[hopeful], starts[hopeful], bounds[hopeful]


def _bounds(search: Search, terminators: Ints) -> Ints:
    """int64[m, n], for each anchor the row after the last one from which the terminator can be reached."""
    reach, bounds = terminators, [terminators + 1]
    for level in range(search.steps - 2, -1, -1):
        reach = search.preceding(level, reach + search.between.shape.one_group(level + 1))
        bounds.append(reach + 1)
    return np.column_stack(bounds[::-1])


def _room(search: Search, turns: int) -> Matches:
    rows = 3 * search.stream.rows  # of the matches, and of two candidates at most
    return Matches(*(np.zeros(size, np.int64) for size in (turns, rows, rows, turns)))


def _turns(search: Search, forms: Forms, used: Ints) -> Turns:
    from spark_pace.core.match.search.compiled.compilation import normal

    stream, (terminators, starts, bounds) = search.stream, _hopeful(search)
    segments = stream.segment[terminators]
    numbers = 1 + int(stream.seq.max(initial=0))
    return Turns(
        terminators=normal(terminators),
        segments=segments,
        number=segments * numbers + stream.seq[terminators],
        starts=starts,
        bounds=normal(bounds),
        used=np.where(used == NO_ROW, NO_ROW, stream.segment * numbers + used),
        following=np.arange(1, len(forms.rows) + 1),
    )
