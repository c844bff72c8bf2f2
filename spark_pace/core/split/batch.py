"""What a batch gives to the units of a slot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from spark_pace.core.columns import UNKNOWN_TIME
from spark_pace.core.functions.python_fold import FoldRuns, fold_here
from spark_pace.core.plan.price import Price


@dataclass(frozen=True)
class Batch:
    """The events that a batch has released, and what is known beside them.

    Attributes:
        released: events in stream order; None where there are none.
        passed_us: the frontier before.
        frontier_us: the frontier now.
        seen_us: the greatest event time seen.
        prices: what the operators of rules are predicted to take, by the rule's place in the plan.
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
