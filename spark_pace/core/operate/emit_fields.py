"""Computes the fields of `emit` for matches of patterns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from spark_pace.core.expr import Aggregate, evaluate
from spark_pace.core.match.found_matches import Found
from spark_pace.core.match.search.groups import aggregated
from spark_pace.core.match.stream import Stream
from spark_pace.core.plan.conditions import OPENING_EVENT
from spark_pace.core.plan.rule import Rule


@dataclass(frozen=True)
class MatchColumns:
    """The columns of matches that the expressions of `emit` read.

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
        """The number of matches."""
        return self.found.matches

    def column(self, component: str | None, attribute: str) -> pa.Array:
        """An attribute of each match's event of a component; for None, of its first event.

        The component ``open`` is the event that opened the match's span.
        """
        if component is None:
            rows = self.found.first
        elif component == OPENING_EVENT and component not in self.names:
            rows = self.found.openings[self.found.selection]
        else:  # a component with one event in each match
            rows = self.found.members[self.found.roles == self.names.index(component)]
        return self.stream.attribute(attribute).take(pa.array(rows))

    def aggregate(self, one: Aggregate) -> pa.Array:
        """An aggregate over each match's events of a component; see `aggregated`."""
        assert one.component is not None
        owner = np.repeat(np.arange(self.rows), np.diff(self.found.offsets))
        mine = self.found.roles == self.names.index(one.component)
        owner, rows = owner[mine], self.found.members[mine]
        values = None if one.attribute is None else self.stream.attribute(one.attribute).take(pa.array(rows))
        return aggregated(one, values, owner, self.rows)


def emit_fields(rule: Rule, stream: Stream, found: Found) -> dict[str, pa.Array]:
    """The fields of all matches of a rule with a pattern, as columns by name."""
    assert rule.pattern is not None
    columns = MatchColumns(stream, found, tuple(c.name for c in rule.pattern.components))
    return {field.name: evaluate(field.expr, columns) for field in rule.emit if field.expr is not None}
