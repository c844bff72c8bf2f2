"""What a checked ``MATCH_RECOGNIZE`` clause is: frozen, and sent to Spark's tasks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

import pyarrow as pa

from spark_pace.core.expr import Column, Expr, ExprType

RowMode: TypeAlias = Literal["one", "show", "omit", "unmatched"]  # of all rows per match, but for "one"
SkipMode: TypeAlias = Literal["past last row", "to next row", "to first", "to last"]


@dataclass(frozen=True)
class Variable:
    """One row, for a variable."""

    number: int


@dataclass(frozen=True)
class Empty:
    """No row."""


@dataclass(frozen=True)
class Start:
    """No row, before the first row of the partition: ``^``."""


@dataclass(frozen=True)
class End:
    """No row, behind the last row of the partition: ``$``."""


@dataclass(frozen=True)
class Sequence:
    """One part after the other."""

    parts: tuple[Node, ...]


@dataclass(frozen=True)
class Alternatives:
    """One of several, the first one that leads to a match."""

    choices: tuple[Node, ...]


@dataclass(frozen=True)
class Repetition:
    """A part again and again: `most` times (None: without a limit), but no fewer times than `least`."""

    part: Node
    least: int
    most: int | None
    greedy: bool


@dataclass(frozen=True)
class Excluded:
    """A part whose rows do not come into the result: ``{- -}``."""

    part: Node


Node: TypeAlias = Variable | Empty | Start | End | Sequence | Alternatives | Repetition | Excluded


@dataclass(frozen=True)
class Navigation:
    """A value of one row of a match, or of a row near it; null if there is no such row.

    Attributes:
        variables: the variables of which rows count, by their numbers; None: all rows of the match.
        first: whether rows are counted from the first one; else from the last one.
        back: how many rows are counted off.
        shift: how many rows behind that one the row lies that is read; negative: before it.
        final: whether rows up to the end of the match count; else those up to the row at hand.
        of: what is computed of the row; None: the name of its variable.
        type: the type of the value.
        inside: whether the row that is read must be one of the match.
    """

    variables: tuple[int, ...] | None
    first: bool
    back: int
    shift: int
    final: bool
    of: Expr | None
    type: ExprType
    inside: bool = False


@dataclass(frozen=True)
class Summary:
    """An aggregate over rows of a match.

    Attributes:
        function: count, sum, avg, min or max.
        variables: as in `Navigation`.
        final: as in `Navigation`.
        of: what is computed of each row; None: rows are counted.
        type: the type of the value.
    """

    function: Literal["count", "sum", "avg", "min", "max"]
    variables: tuple[int, ...] | None
    final: bool
    of: Expr | None
    type: ExprType


@dataclass(frozen=True)
class MatchNumber:
    """The number of the match in its partition, from 1."""

    type: ExprType = "BIGINT"


Slot: TypeAlias = Navigation | Summary | MatchNumber


@dataclass(frozen=True)
class Computed:
    """An expression over slots.

    Attributes:
        expr: it reads ``Column(None, slot_name(i))`` for slot i.
        slots: the slots.
    """

    expr: Expr
    slots: tuple[Slot, ...]


@dataclass(frozen=True)
class Measure:
    """A measure.

    Attributes:
        name: its name.
        value: what is computed.
        stored: the column of the input of which a value is taken as it is, by the only slot; None: any other
            value.
        type: the type of the column of the result.
    """

    name: str
    value: Computed
    stored: str | None
    type: pa.DataType


@dataclass(frozen=True)
class Outside:
    """A measure that Spark computes of others, which have no other use and are in its place.

    Attributes:
        name: its name.
        sql: Spark SQL over the columns that `reads` names.
        reads: these measures, one at least, in the order of `RowPattern.measures`.
    """

    name: str
    sql: str
    reads: tuple[str, ...]


@dataclass(frozen=True)
class Condition:
    """When a row may be taken for a variable: all parts hold.

    Attributes:
        fixed: the parts that read only rows at a fixed distance from the row; a slot is a `Navigation` then,
            of which only `shift` and `of` count.
        of_match: the parts that read the match so far.
    """

    fixed: tuple[Computed, ...] = ()
    of_match: tuple[Computed, ...] = ()


@dataclass(frozen=True)
class OrderKey:
    """A column by which rows are sorted."""

    column: str
    descending: bool
    nulls_first: bool


@dataclass(frozen=True)
class RowPattern:
    """A checked clause.

    Attributes:
        where: the place of the clause, for messages.
        partition: the columns of ``PARTITION BY``.
        order: the columns of ``ORDER BY``.
        measures: the measures.
        outside: the measures that are left to Spark.
        rows: which rows a match gives.
        skip: where the search goes on after a match.
        skip_variables: the variables that ``SKIP TO`` names.
        skip_name: its name as it was written.
        variables: the names of the pattern's variables; others refer to them by their numbers.
        conditions: the condition of each variable.
        pattern: the pattern.
        within_us: the length of time, in microseconds, that lies between the rows of no match, and the first
            column of `order`; None without ``WITHIN``.
        most_steps: how many steps the search from one row may take where conditions read the match.
    """

    where: str
    partition: tuple[str, ...]
    order: tuple[OrderKey, ...]
    measures: tuple[Measure, ...]
    outside: tuple[Outside, ...]
    rows: RowMode
    skip: SkipMode
    skip_variables: tuple[int, ...]
    skip_name: str
    variables: tuple[str, ...]
    conditions: tuple[Condition, ...]
    pattern: Node
    within_us: int | None
    most_steps: int

    @property
    def ahead(self) -> tuple[int, ...]:
        """How many rows behind a row the fixed parts of each variable's condition read."""
        return tuple(
            max((slot.shift for part in one.fixed for slot in _navigations(part)), default=0)
            for one in self.conditions
        )

    @property
    def beyond(self) -> int:
        """How many rows behind its last row the measures of a match may read."""
        return max((slot.shift for one in self.measures for slot in _navigations(one.value)), default=0)

    @property
    def computed(self) -> tuple[Computed, ...]:
        """All parts of conditions, then what measures compute."""
        parts = (part for one in self.conditions for part in (*one.fixed, *one.of_match))
        return (*parts, *(one.value for one in self.measures))

    @property
    def before(self) -> int:
        """How many rows before the first row of a match are read."""
        return max((-slot.shift for part in self.computed for slot in _navigations(part)), default=0)

    @property
    def reads(self) -> tuple[Expr, ...]:
        """What is computed of single rows."""
        slots = (slot for part in self.computed for slot in part.slots)
        return tuple(
            dict.fromkeys(
                slot.of for slot in slots if not isinstance(slot, MatchNumber) and slot.of is not None
            )
        )


def _navigations(part: Computed) -> Iterator[Navigation]:
    """The slots that read single rows, and one that reads none, so that there is a least number of rows."""
    yield Navigation(None, False, 0, 0, False, None, "STRING")
    yield from (slot for slot in part.slots if isinstance(slot, Navigation))


def slot_name(number: int) -> str:
    """The name by which an expression reads a slot."""
    return f"@{number}"


def slot_column(number: int, slot: Slot) -> Column:
    """The node that reads a slot."""
    return Column(None, slot_name(number), slot.type)


def output_columns(plan: RowPattern, columns: tuple[str, ...]) -> list[tuple[str, Measure | None]]:
    """The columns of the result in order, each with its measure; None: it is a column of the input.

    Args:
        plan: the plan.
        columns: the columns of the input.
    """
    measures: list[tuple[str, Measure | None]] = [(one.name, one) for one in plan.measures]
    partition = list(plan.partition)
    if plan.rows == "one":
        return [*((name, None) for name in partition), *measures]
    ahead = list(dict.fromkeys([*partition, *(key.column for key in plan.order)]))
    rest = [name for name in columns if name not in ahead]
    return [*((name, None) for name in ahead), *measures, *((name, None) for name in rest)]


def final_columns(plan: RowPattern, columns: tuple[str, ...]) -> list[tuple[str, Outside | None]]:
    """The columns that are left when Spark has computed its measures, each with what it computes."""
    at = {one.reads[0]: one for one in plan.outside}
    hidden = {name for one in plan.outside for name in one.reads[1:]}
    names = [name for name, _ in output_columns(plan, columns) if name not in hidden]
    return [(at[name].name, at[name]) if name in at else (name, None) for name in names]
