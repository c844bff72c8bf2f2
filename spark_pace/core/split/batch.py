"""A batch as the units of a slot get it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from spark_pace.core.columns import UNKNOWN_TIME
from spark_pace.core.functions.python_fold import FoldRuns, fold_here
from spark_pace.core.plan.price import Price


@dataclass(frozen=True)
class Batch:
    """The events that a batch has released, with the frontier, the prices and the caller of folds.

    Attributes:
        released: events in stream order; None if there are none.
        passed_us: the frontier before the batch.
        frontier_us: the frontier now.
        seen_us: the greatest event time seen so far.
        prices: the predicted prices of operators, by the rule's place in the plan.
        fold: calls a fold's Python function.
    """

    released: pa.Table | None
    passed_us: int
    frontier_us: int
    seen_us: int
    prices: Mapping[int, Price] = field(default_factory=dict)
    fold: FoldRuns = fold_here

    @property
    def ends(self) -> bool:
        """True if the input has ended."""
        return self.frontier_us == UNKNOWN_TIME
