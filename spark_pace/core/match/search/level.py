"""One level of a search: the rows among which the next event of a candidate is sought."""

from __future__ import annotations

from dataclasses import dataclass

from spark_pace.core.columns import Ints
from spark_pace.core.expr import Expr
from spark_pace.core.match.search.comparison import Comparison


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
