"""The computed fields of matches: what the expressions of `emit` see, and their values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from spark_pace.core.columns import Ints
from spark_pace.core.expr import evaluate
from spark_pace.core.match.found import Found
from spark_pace.core.match.stream import Stream
from spark_pace.core.plan.rule import Rule

_KERNELS = {"count": "count", "sum": "sum", "avg": "mean", "min": "min", "max": "max"}


@dataclass(frozen=True)
class MatchColumns:
    """The attributes of matches, as the expressions of `emit` see them.

    Attributes:
        stream: the stream.
        found: the matches in it.
        names: the names of the components.
    """

    stream: Stream
    found: Found
    names: tuple[str, ...]

    @property
    def rows(self) -> int:
        """How many matches there are."""
        return self.found.matches

    def column(self, component: str | None, attribute: str) -> pa.Array:
        """An attribute of each match's event of a component; without component, of its first event."""
        place = 0 if component is None else self.names.index(component)
        rows = self.found.members[self.found.offsets[:-1] + place]
        return self.stream.attribute(attribute).take(pa.array(rows))

    def aggregate(self, function: str, component: str, attribute: str | None) -> pa.Array:
        """An aggregate over each match's events of a component; `first` and `last` alone count nulls."""
        owner = np.repeat(np.arange(self.rows), np.diff(self.found.offsets))
        mine = self.found.roles == self.names.index(component)
        owner, rows = owner[mine], self.found.members[mine]
        if attribute is None:
            return pa.array(np.bincount(owner, minlength=self.rows))
        values = self.stream.attribute(attribute).take(pa.array(rows))
        if function in ("first", "last"):
            return _first_or_last(function, owner, values, self.rows)
        groups = pa.table({"group": owner, "value": values}).group_by("group", use_threads=False)
        result = groups.aggregate([("value", _KERNELS[function])])
        present = result.column("group").to_numpy()
        column = result.column(f"value_{_KERNELS[function]}").combine_chunks()
        return _scatter(column, present, self.rows, 0 if function == "count" else None)


def _first_or_last(function: str, owner: Ints, values: pa.Array, rows: int) -> pa.Array:
    groups, first, counts = np.unique(owner, return_index=True, return_counts=True)
    at = first if function == "first" else first + counts - 1
    return _scatter(values.take(pa.array(at)), groups, rows, None)


def _scatter(values: pa.Array, groups: Ints, rows: int, missing: int | None) -> pa.Array:
    """The values by row: `groups` says the row of each value; rows without a value get `missing`."""
    place = np.full(rows, -1, np.int64)
    place[groups] = np.arange(len(groups))
    column = values.take(pa.array(place, mask=place < 0))
    return column if missing is None else column.fill_null(missing)


def emit_fields(rule: Rule, stream: Stream, found: Found) -> dict[str, pa.Array]:
    """The computed fields of every match of a rule with a pattern, as one column for each."""
    assert rule.pattern is not None
    columns = MatchColumns(stream, found, tuple(c.name for c in rule.pattern.components))
    return {field.name: evaluate(field.expr, columns) for field in rule.emit if field.expr is not None}
