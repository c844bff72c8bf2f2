"""The columns of an input, and the variables of a pattern, as expressions name them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from spark_pace.core.match.row_patterns.rows import expression_type
from spark_pace.core.plan.rule import EventSchema, Field
from spark_pace.rules.document.report import nearest, quote
from spark_pace.rules.expressions.types import Wrong

OPAQUE = "?"  # the type of columns that can only be taken as they are


@dataclass(frozen=True)
class Names:
    """What names mean.

    Attributes:
        schema: the input.
        variables: of each variable, and each union of them, the numbers of its variables.
        event_time: a column of times, whatever its type; None: there is none.
    """

    schema: pa.Schema
    variables: Mapping[str, tuple[int, ...]]
    event_time: str | None = None

    @property
    def events(self) -> EventSchema:
        """The columns that expressions read, as the compiler of expressions knows them."""
        typed = [(one.name, expression_type(one.type)) for one in self.schema]
        return EventSchema(tuple(Field(name, kind) for name, kind in typed if kind is not None), "")

    def column(self, name: str) -> str | Wrong:
        """The column of this name; as in Spark, small letters and capitals are not told apart."""
        found = [one for one in self.schema.names if one.lower() == name.lower()]
        if len(found) > 1 and found.count(name) != 1:
            got, do = f"{quote(name)}, which several columns have", "Rename one of them in a subquery."
            return Wrong("must be the name of one column", got, do)
        if not found:
            return Wrong("must be a column of the input", quote(name), nearest(name, self.schema.names))
        return name if name in found else found[0]

    def type_of(self, column: str) -> str:
        """The type of a column in expressions."""
        return expression_type(self.schema.field(column).type) or OPAQUE

    def is_time(self, column: str) -> bool:
        """Tell whether a column has times."""
        return column == self.event_time or self.type_of(column) in ("TIMESTAMP", "DATE")

    def variable(self, name: str) -> str | None:
        """The name of a variable or union as it is told apart; None if there is none."""
        return next((one for one in (name, name.upper()) if one in self.variables), None)

    def variables_of(self, name: str | None) -> tuple[int, ...] | Wrong | None:
        """The variables of a name before a dot; None stands for all rows."""
        if name is None:
            return None
        known = self.variable(name)
        if known is None:
            must = "must name a variable of the pattern, or a union of them"
            return Wrong(must, quote(name), nearest(name, self.variables))
        return self.variables[known]
