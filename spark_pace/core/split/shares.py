"""A share: what a slot keeps and splits together, one rule in one bucket of keys or several that share panes.

Rules share panes if their filters, keys, lengths of panes and sketches are equal, and if they began with the
same batch. The rows of panes are kept once for all of them, with all columns that any of them needs, as long
as their longest span needs them. Each rule has only the numbers of its windows for itself.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from spark_pace.core.expr import Expr
from spark_pace.core.plan.plan import Panes, Plan, RulePlan, Unit, sharing, united
from spark_pace.core.plan.rule import GridSpan


@dataclass(frozen=True)
class Share:
    """The rules that share a carry in one bucket of keys: most often one rule.

    Attributes:
        rules: the rules; the first one stands for all.
        bucket: the bucket.
        grids: the distinct spans of rules that share panes, perhaps also those of removed rules; else empty.
    """

    rules: tuple[RulePlan, ...]
    bucket: int
    grids: tuple[GridSpan, ...] = ()

    @staticmethod
    def of(rules: Sequence[RulePlan], bucket: int, grids: Sequence[GridSpan] = ()) -> Share:
        """Make a share of these rules; `grids` are the ones that it had before, in their order."""
        spans = [planned.rule.span for planned in rules if planned.panes is not None]
        known = dict.fromkeys([*grids, *(span for span in spans if isinstance(span, GridSpan))])
        return Share(tuple(rules), bucket, tuple(known))

    @cached_property
    def places(self) -> tuple[int, ...]:
        """The place of each rule's span among `grids`."""
        return tuple(self.grids.index(planned.rule.span) for planned in self.rules)

    @cached_property
    def panes(self) -> Panes | None:
        """The columns kept for each pane, for all rules together; None if events are kept."""
        panes = [planned.panes for planned in self.rules if planned.panes is not None]
        return united(panes) if panes else None

    @cached_property
    def computed(self) -> dict[str, Expr]:
        """The expressions inside aggregates of the rules, by the names of their columns."""
        return {name: expr for planned in self.rules for name, expr in planned.computed}

    @property
    def counters(self) -> pa.Schema:
        """The schema of the numbers of a key's next windows, with a column for each grid but the first."""
        return pa.schema([
            (f"next_selection {grid.every_us} {grid.size_us}", pa.int64()) for grid in self.grids[1:]
        ])  # fmt: skip


def shares_of(plan: Plan, units: Iterable[Unit]) -> list[Share]:
    """Make the shares of units of a slot that have no carry yet."""
    alike: dict[tuple[int, Hashable], list[RulePlan]] = {}
    for unit in units:
        planned = plan.rules[unit.rule_index]
        alone = planned.index if planned.panes is None else None
        stream = (planned.since, sharing(planned.rule), alone)
        alike.setdefault((unit.bucket, stream), []).append(planned)
    return [Share.of(rules, bucket) for (bucket, _), rules in alike.items()]
