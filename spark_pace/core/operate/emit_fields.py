"""Computes the fields of `emit` for matches of patterns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from spark_pace.core.columns import Bools
from spark_pace.core.expr import Aggregate, Previous, evaluate
from spark_pace.core.match.found_matches import Found
from spark_pace.core.match.search.groups import aggregated
from spark_pace.core.match.search.members import roles_by_name
from spark_pace.core.match.stream import Stream
from spark_pace.core.plan.conditions import OPENING_EVENT
from spark_pace.core.plan.meaning import previous_of
from spark_pace.core.plan.rule import Rule


@dataclass(frozen=True)
class MatchColumns:
    """The columns of matches that the expressions of `emit` read.

    Attributes:
        stream: the stream.
        found: the matches in it, with the roles of `roles_by_name`.
        roles: the roles of each component and of each member of a disjunction.
        previous: in spans the attributes of earlier events that expressions read, by the names of columns.
    """

    stream: Stream
    found: Found
    roles: Mapping[str | None, tuple[int, ...]]
    previous: Mapping[str, Previous]

    @property
    def rows(self) -> int:
        """The number of matches."""
        return self.found.matches

    def column(self, component: str | None, attribute: str) -> pa.Array:
        """An attribute of each match's event of a component; for None, of its first event.

        The component ``open`` is the event that opened the match's span. Null where a match has no event of
        the component, because the event in its place stands for another member of the disjunction.
        """
        absent = None
        if component is None:
            rows = self.found.first
        elif component == OPENING_EVENT and component not in self.roles:
            rows = self.found.openings[self.found.selection]
        else:  # a component with at most one event in each match
            mine = self._standing(component)
            rows = self.found.members[mine]
            if len(rows) < self.rows:
                owner = np.searchsorted(self.found.offsets, np.flatnonzero(mine), "right") - 1
                absent, present = np.ones(self.rows, np.bool_), rows
                absent[owner], rows = False, np.zeros(self.rows, np.int64)
                rows[owner] = present
        if attribute in self.previous:
            node = self.previous[attribute]
            rows, attribute = rows - node.back, node.attribute
            before = rows < self.found.openings[self.found.selection]  # there the span begins
            absent = before if absent is None else before | absent
            rows = np.maximum(rows, 0)
        return self.stream.attribute(attribute).take(pa.array(rows, mask=absent))

    def _standing(self, component: str) -> Bools:
        """bool[], which of the matches' events stand for a component or member."""
        roles = self.roles[component]
        found: Bools = self.found.roles == roles[0] if len(roles) == 1 else np.isin(self.found.roles, roles)
        return found

    def aggregate(self, one: Aggregate) -> pa.Array:
        """An aggregate over each match's events of a component; see `aggregated`."""
        assert one.component is not None
        owner = np.repeat(np.arange(self.rows), np.diff(self.found.offsets))
        mine = self._standing(one.component)
        owner, rows = owner[mine], self.found.members[mine]
        values = None if one.attribute is None else self.stream.attribute(one.attribute).take(pa.array(rows))
        return aggregated(one, values, owner, self.rows)


def emit_fields(rule: Rule, stream: Stream, found: Found) -> dict[str, pa.Array]:
    """The fields of all matches of a rule with a pattern, as columns by name."""
    assert rule.pattern is not None
    exprs = [field.expr for field in rule.emit if field.expr is not None]
    previous = {} if rule.span is None else previous_of(exprs)
    columns = MatchColumns(stream, found, roles_by_name(rule.pattern), previous)
    return {field.name: evaluate(field.expr, columns) for field in rule.emit if field.expr is not None}
