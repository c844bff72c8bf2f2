"""What a rule is, once it has been checked: frozen values, shared by every part.

A `Rule` is made by `spark_pace.rules` (from YAML) and never changes.
The words are those of `docs/semantics.md`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from spark_pace.core.expr import Expr, TypeName

Merge = Literal["selection", "detection"]
Close = Literal["completion", "window"]


@dataclass(frozen=True)
class Field:
    """A named, typed attribute. Integers are all BIGINT, floats all DOUBLE."""

    name: str
    type: TypeName


@dataclass(frozen=True)
class EventSchema:
    """What an event looks like.

    `event_time` names a TIMESTAMP attribute, or a BIGINT one counted in `time_unit`s since 1970.
    `tie_break` orders events of one event time before source and offset do.
    """

    fields: tuple[Field, ...]
    event_time: str
    tie_break: tuple[str, ...] = ()
    time_unit: Literal["s", "ms", "us"] | None = None


@dataclass(frozen=True)
class Within:
    """The length of a window: `time_us` microseconds (inclusive) or `events` events."""

    time_us: int | None = None
    events: int | None = None


@dataclass(frozen=True)
class Component:
    """One named step of a pattern.

    `predicate` is over a single event (columns without a component) and holds
    every conjunct of `where` that names this component only.
    """

    name: str
    predicate: Expr


@dataclass(frozen=True)
class Conjunct:
    """A condition over several components.

    `components` are the indices of those it names, ascending. Columns in `expr` carry component names.
    """

    expr: Expr
    components: tuple[int, ...]


@dataclass(frozen=True)
class Context:
    """The name of a parameter context: selection policy and consumption policy.

    `spark_pace.core.match.contexts.context_of` gives what it stands for.
    """

    selection: str
    consumption: str

    def __str__(self) -> str:
        """As a rule file writes it."""
        return f"{self.selection}, {self.consumption}"


@dataclass(frozen=True)
class Pattern:
    """A sequence of components with its context."""

    components: tuple[Component, ...]
    where: tuple[Conjunct, ...]
    within: Within | None
    context: Context
    close: Close = "completion"


@dataclass(frozen=True)
class PredicateSpan:
    """A selection from an event that satisfies `open` to the first later one that closes it.

    An event closes if `close` (a predicate over it alone) and every one of `close_where` hold;
    in `close_where`, columns of component ``open`` are the opening event's, columns without a component the closing one's.
    """

    open: Expr  # P_s
    close: Expr  # P_c, the part that does not mention the opening event
    close_where: tuple[Expr, ...]  # P_c, the conjuncts that do
    within_us: int


@dataclass(frozen=True)
class GridSpan:
    """The windows [k * every, k * every + size) on the epoch's grid, in microseconds."""

    every_us: int
    size_us: int


@dataclass(frozen=True)
class CountSpan:
    """A selection opens at seq 0, every, 2 * every, and has `size` events."""

    every: int
    size: int


Span = PredicateSpan | GridSpan | CountSpan


@dataclass(frozen=True)
class EmitField:
    """A computed field of a match. `expr` is None where a Python operator yields it."""

    name: str
    type: TypeName
    expr: Expr | None


@dataclass(frozen=True)
class Rule:
    """A checked rule. Exactly one of `pattern` and `operator` is set; `operator` needs a `span`."""

    name: str
    schema: EventSchema
    filter: Expr | None
    partition_by: tuple[str, ...]
    pattern: Pattern | None
    span: Span | None
    operator: str | None  # "module:function"
    merge: Merge
    emit: tuple[EmitField, ...]
    description: str = ""
