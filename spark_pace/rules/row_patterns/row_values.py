"""What navigations and aggregates read of a row: a column, or what is computed of columns."""

from __future__ import annotations

from dataclasses import dataclass

from spark_pace.core.expr import Column, Expr
from spark_pace.rules.expressions.compile import compile_value
from spark_pace.rules.expressions.types import Wrong
from spark_pace.rules.row_patterns.columns import Names
from spark_pace.rules.row_patterns.expression_text import compiled, expression_text
from spark_pace.rules.row_patterns.reader import Reader
from spark_pace.rules.row_patterns.scopes import RowScope


@dataclass(frozen=True)
class RowValue:
    """A value of a row.

    Attributes:
        variables: the variables of which rows count, by their numbers; None: all rows.
        expr: what is computed of the row.
    """

    variables: tuple[int, ...] | None
    expr: Expr


def row_value(reader: Reader, names: Names) -> RowValue:
    """The value that all words of a reader say.

    Raises:
        ConfigError: it is wrong.
    """
    return plain_column(reader, names) or _computed(reader, names)


def plain_column(reader: Reader, names: Names) -> RowValue | None:
    """``x`` or ``A.x``, of any type; None for anything else."""
    words = reader.query.words[reader.at : reader.end]
    is_pair = len(words) == 3 and words[1].is_sign(".") and words[0].is_name
    if not words or not words[-1].is_name or not (len(words) == 1 or is_pair):
        return None
    variables = names.variables_of(words[0].folded if is_pair else None)
    column = names.column(words[-1].text)
    if isinstance(column, Wrong) or isinstance(variables, Wrong):
        return None
    return RowValue(variables, Column(None, column, names.type_of(column)))


def _computed(reader: Reader, names: Names) -> RowValue:
    scope, opening = RowScope(names), reader.word
    text = expression_text(reader, lambda _: None)
    expr: Expr = compiled(lambda report: compile_value(text, scope, report))
    if len(scope.prefixes) != 1:
        told = " and ".join(sorted("all rows" if one is None else one for one in scope.prefixes))
        must = "must be about the rows of one variable inside a navigation or an aggregate"
        do = "Write the same variable before each column, and name one at least."
        reader.query.fail(opening, must, told or "no column", do)
    (prefix,) = scope.prefixes
    return RowValue(None if prefix is None else names.variables[prefix], expr)
