"""A search as tables, which compiled searches take: its rows, and conditions, those of groups too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from spark_pace import ways
from spark_pace.core.match.compiled.arguments import Further, Programs, Rows, Searched, Unused
from spark_pace.core.match.compiled.operations import EQUAL
from spark_pace.core.match.search.comparison import Comparison, implied, is_comparison
from spark_pace.core.match.search.programs import FIRST, LAST, Condition, of_ends, programs_of
from spark_pace.core.match.search.search import Search
from spark_pace.core.tables import Ints


def further_of(search: Search) -> Further:
    """The programs of a sequence, by the gap in which each group stands."""
    gaps, components = search.between.shape.gaps, search.pattern.components
    numbers, conditions = np.full(len(gaps), -1), list[Condition]()
    for place, gap in enumerate(gaps):
        component = None if gap.group is None else components[gap.group]
        if component is not None and component.further is not None:
            numbers[place] = len(conditions)
            places: dict[str | None, int] = {component.name: place, FIRST: len(gaps), LAST: len(gaps) + 1}
            cell: dict[str | None, int] = {component.name: len(gaps) + 1}
            conditions.append(Condition(of_ends(component.further), 1 << place, places, cell))
    programs = programs_of(conditions, search.stream)
    return Further(programs, numbers, np.zeros(len(gaps) + 3, np.int64))


def searched_of(search: Search, order: Sequence[int] | None, used: Ints | None) -> Searched:
    """What compiled code searches.

    Args:
        search: the pattern over a stream.
        order: the anchors in the order in which they are placed; None: in any order.
        used: int64[rows], the turn in which each row was used up, else `NO_ROW`; None: rows are not used up.
    """
    programs = programs_of(conditions_of(search), search.stream)
    rows = _Writing(search, order).rows(programs)
    turns = np.zeros(0, np.int64) if used is None else used
    following = np.arange(1, len(rows.pools) + 1) if used is not None else turns
    shared, hints = np.zeros((2, len(rows.paths) - 1), np.int64)
    return Searched(rows, programs, Unused(turns, following), shared, hints)


def sets_of(search: Search) -> list[int]:
    """The components of the sets: groups and negated ones. Behind these are the sets of what ends groups."""
    return list(search.between.rows_of)


def place_of_component(search: Search, component: int) -> int:
    """The anchor of a component that stands for one event, or the set of another."""
    sets = sets_of(search)
    if component in sets:
        return search.steps + sets.index(component)
    return search.between.shape.anchors.index(component)


def conditions_of(search: Search) -> list[Condition]:
    """The conditions that are no comparisons of two components, with what must be placed to test each."""
    gaps = {gap.group: place for place, gap in enumerate(search.between.shape.gaps) if gap.group is not None}
    components = search.pattern.components
    places: dict[str | None, int] = {
        one.name: place_of_component(search, index) for index, one in enumerate(components)
    }
    gaps_by_name: dict[str | None, int] = {components[index].name: place for index, place in gaps.items()}
    found = []
    for one in search.pattern.where:
        if not is_comparison(one.expr, search.places):
            found.append(Condition(one.expr, names_of(search, one.components), places, gaps_by_name))
    return found


def names_of(search: Search, components: Sequence[int]) -> int:
    """The mask of the anchors and sets that must be placed to test a condition of these components."""
    gaps = {gap.group: place for place, gap in enumerate(search.between.shape.gaps) if gap.group is not None}
    mask = 0
    for component in components:
        if component in gaps:  # the anchors on both sides of a group say what is in it
            mask |= 0b11 << gaps[component]
        else:
            mask |= 1 << place_of_component(search, component)
    return mask


@dataclass
class _Writing:
    """The tables of `Rows` as they are written."""

    search: Search
    order: Sequence[int] | None
    pools: list[Ints] = field(default_factory=list)
    groups: list[Ints] = field(default_factory=list)
    equals: list[tuple[int, int]] = field(default_factory=list)
    tests: list[tuple[int, int, int, int]] = field(default_factory=list)
    ranks: list[Ints] = field(default_factory=list)

    def rows(self, programs: Programs) -> Rows:
        """Write the paths and tests of all anchors and sets."""
        search, count = self.search, self.search.stream.rows
        members = [*search.fitting, *search.between.rows_of.values(), *search.between.ending.values()]
        compared = self._compared()
        paths, test_bounds, ties = [0], [0], []
        for own, pool in enumerate(members):
            self._add_tests(self._add_paths(pool, compared[own]))
            paths.append(len(self.pools))
            test_bounds.append(len(self.tests))
            ties.append(sum({1 << one.earlier for one in compared[own]}))
        for names in programs.names.tolist():
            for own in range(len(members)):
                if names >> own & 1:
                    ties[own] |= names & ~(1 << own)
        pools = np.concatenate(self.pools)
        least, greatest = self._blocks(pools, paths, test_bounds)
        lengths = np.cumsum([0, *map(len, self.pools)])
        groups = [own + first for own, first in zip(self.groups, lengths[:-1], strict=True)]
        return Rows(
            pools=pools,
            groups=np.concatenate(groups),
            first_groups=np.cumsum([0, *map(len, groups)])[:-1],
            paths=np.array(paths),
            equals=np.array(self.equals),
            tests=np.array(self.tests, np.int64).reshape(-1, 4),
            test_bounds=np.array(test_bounds),
            least=least,
            greatest=greatest,
            ranks=np.array(self.ranks, np.int64).reshape(len(self.ranks), count),
            ties=np.array(ties),
            block_bits=ways.BLOCK_BITS,
        )

    def _compared(self) -> list[list[Comparison]]:
        """For each anchor or set its comparisons with anchors that are placed before, as the later side."""
        search = self.search
        count = search.steps + len(search.between.rows_of) + len(search.between.ending)
        found: list[list[Comparison]] = [[] for _ in range(count)]
        when = {own: place for place, own in enumerate(self.order or range(search.steps))}
        negated = [place_of_component(search, one.component) for one in search.between.forbidding]
        stated = search.comparisons(conjunct.expr for conjunct in search.pattern.where)
        foreseen = implied(search.pattern) if search.foresees else ()  # what holds once all rows are placed
        more = search.comparisons(conjunct.expr for conjunct in foreseen)
        for one in (*stated, *more):
            if one.later >= search.steps:
                found[negated[one.later - search.steps]].append(one)
                continue
            if self.order is None or when[one.earlier] < when[one.later]:
                found[one.later].append(one)
            if self.order is None or when[one.later] < when[one.earlier]:
                found[one.earlier].append(one.turned())
        return found

    def _add_paths(self, pool: Ints, compared: list[Comparison]) -> list[Comparison]:
        """Add the rows of an anchor, by each equality; return the comparisons that are to be tested still.

        In an order that is known one path is enough, and what it looks up need not be tested.
        """
        looked_up = [one for one in compared if one.accepts == EQUAL]
        if self.order is None:
            for path in (None, *looked_up):
                self._add_path(pool, path)
            return compared
        self._add_path(pool, looked_up[0] if looked_up else None)
        return [one for one in compared if not looked_up or one is not looked_up[0]]

    def _add_path(self, pool: Ints, equality: Comparison | None) -> None:
        """Add the rows of an anchor, by the equality if there is one."""
        if equality is None:
            self.pools.append(pool)
            self.groups.append(np.array([0, len(pool)]))
            self.equals.append((-1, -1))
            return
        pool = pool[equality.later_ranks[pool] >= 0]
        ranks = equality.later_ranks[pool]
        order = np.argsort(ranks, kind="stable")
        both = (equality.earlier_ranks, equality.later_ranks)
        most = 1 + max(int(side.max(initial=0)) for side in both)
        self.pools.append(pool[order])
        self.groups.append(np.searchsorted(ranks[order], np.arange(most + 1)))
        self.equals.append((equality.earlier, len(self.ranks)))
        self.ranks.append(equality.earlier_ranks)

    def _add_tests(self, compared: list[Comparison]) -> None:
        for one in compared:
            self.tests.append((one.earlier, len(self.ranks), len(self.ranks) + 1, one.accepts))
            self.ranks += [one.earlier_ranks, one.later_ranks]

    def _blocks(self, pools: Ints, paths: list[int], test_bounds: list[int]) -> tuple[Ints, Ints]:
        """int64[t, blocks], the least and the greatest own rank of each test in each block of `pools`."""
        size = 1 << ways.BLOCK_BITS
        made = np.zeros((2, len(self.tests), -(-len(pools) // size)), np.int64)
        begins = np.cumsum([0, *map(len, self.pools)])
        for own in range(len(paths) - 1):
            first, last = int(begins[paths[own]]) // size * size, int(begins[paths[own + 1]])
            if first >= last:
                continue
            last = min(len(pools), -(-last // size) * size)
            for test in range(test_bounds[own], test_bounds[own + 1]):
                ranks = self.ranks[self.tests[test][2]][pools[first:last]]
                blocks = np.arange(0, last - first, size)
                place = slice(first // size, first // size + len(blocks))
                made[0, test, place] = np.minimum.reduceat(ranks, blocks)
                made[1, test, place] = np.maximum.reduceat(ranks, blocks)
        return made[0], made[1]
