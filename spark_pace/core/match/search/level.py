"""One level of a search: the rows among which the next event of a candidate is sought."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from spark_pace import ways
from spark_pace.core.columns import Ints
from spark_pace.core.expr import Expr
from spark_pace.core.match.search.comparison import Comparison, components_of
from spark_pace.core.match.search.programs import programs_of
from spark_pace.core.match.search.search_arguments import Levels, Programs
from spark_pace.core.match.stream import Stream


@dataclass(frozen=True)
class Level:
    """What may be taken at one level of a search, given the rows of the levels before.

    Attributes:
        pool: int64[p], the rows of the level's component, in the order of their keys.
        keys: int64[p], ascending: ``rank * rows + row`` of each row; the rank is 0 without an equality.
        equality: the comparison by which rows are looked up, None where it is by their place alone.
        comparisons: the other comparisons that are decided at this level.
        others: what else is decided there.
        bound: whether what stands between the rows is tested as well.
    """

    pool: Ints
    keys: Ints
    equality: Comparison | None
    comparisons: list[Comparison]
    others: list[Expr]
    bound: bool

    @property
    def looked_up(self) -> bool:
        """True if all that is decided at this level is looked up."""
        return not self.comparisons and not self.others and not self.bound

    def named(self, roles: Mapping[str | None, int]) -> set[int]:
        """The levels that what is decided at this one names, given that of each component."""
        compared = {one.earlier for one in [*self.comparisons, self.equality] if one is not None}
        return compared.union(*(components_of(expr, roles) for expr in self.others))

    def groups(self, rows: int) -> Ints:
        """int64[ranks + 1], where the rows of each rank begin in the pool, and where the last ones end."""
        ranks = 1
        if self.equality is not None:
            sides = (self.equality.earlier_ranks, self.equality.later_ranks)
            ranks = 1 + max(int(side.max(initial=0)) for side in sides)
        return np.searchsorted(self.keys, np.arange(ranks + 1) * rows)


def compiled_levels(
    levels: Sequence[Level], places: Mapping[str | None, int], stream: Stream
) -> tuple[Levels, Programs]:
    """The levels of a search as the compiled code takes them, and what it tests at each.

    `places` and `stream` are those of the `Search`.
    """
    ranks: list[Ints] = []
    equals, tests, test_bounds, back = [], list[tuple[int, int, int, int]](), [0], []
    groups = [level.groups(stream.rows) for level in levels]
    for number, level in enumerate(levels):
        # later rows at a level that no condition names leave fewer rows to this one, so they do not help
        named = number < 2 or number - 1 in level.named(places)
        back.append(number - 1 if named else number - 2)
        equals.append((level.equality.earlier, len(ranks)) if level.equality else (-1, -1))
        ranks += [level.equality.earlier_ranks] if level.equality else []
        for one in level.comparisons:
            tests.append((one.earlier, len(ranks), len(ranks) + 1, one.accepts))
            ranks += [one.earlier_ranks, one.later_ranks]
        test_bounds.append(len(tests))
    before = np.cumsum([0, *(len(level.pool) for level in levels)])
    pools = np.concatenate([level.pool for level in levels])
    later = [one.later_ranks[pools] for level in levels for one in level.comparisons]
    bits = ways.BLOCK_BITS
    blocks = np.arange(0, len(pools), 1 << bits)
    made = Levels(
        pools=pools,
        groups=np.concatenate([own + first for own, first in zip(groups, before[:-1], strict=True)]),
        first_groups=np.cumsum([0, *map(len, groups)])[:-1],
        equals=np.array(equals),
        tests=np.array(tests, np.int64).reshape(-1, 4),
        test_bounds=np.array(test_bounds),
        least=_of_blocks(np.minimum, later, blocks),
        greatest=_of_blocks(np.maximum, later, blocks),
        ranks=np.array(ranks, np.int64).reshape(len(ranks), stream.rows),
        back=np.array(back),
        block_bits=bits,
    )
    return made, programs_of([level.others for level in levels], places, stream)


def _of_blocks(fold: np.ufunc, columns: list[Ints], blocks: Ints) -> Ints:
    """int64[columns, blocks], the least or greatest number of each block, given where these begin."""
    folded = [fold.reduceat(column, blocks) for column in columns if len(blocks)]
    return np.array(folded, np.int64).reshape(len(columns), len(blocks))
