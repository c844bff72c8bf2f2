"""What a rule is once it has been checked: frozen values that every part reads.

`spark_pace.rules` makes a `Rule` from YAML. The words are those of `docs/semantics.md`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

from spark_pace.core.expr import STRUCT, Expr, TypeName
from spark_pace.core.plan.record_form import ORDINARY, RecordForm

Merge = Literal["selection", "detection"]
Close = Literal["completion", "window"]
Contiguity = Literal["relaxed", "strict"]
Order = Literal["sequence", "conjunction"]
PLAIN_TYPES = frozenset({"BIGINT", "BOOLEAN", "DATE", "DOUBLE", "STRING", "TIMESTAMP"})
Strategy = Literal["queues", "production_sets", "merger_filter"]


@dataclass(frozen=True)
class Field:
    """A named, typed attribute. All integers are BIGINT, all floats DOUBLE.

    What a STRUCT holds are attributes of their own, which follow it: ``user`` (a STRUCT), then ``user.id``.
    """

    name: str
    type: TypeName

    @property
    def is_plain(self) -> bool:
        """True if compiled code reads the attribute from JSON: no DECIMAL, no parts, no escaped name."""
        return self.type in PLAIN_TYPES and self.name.isprintable() and not {'"', "\\"} & set(self.name)


@dataclass(frozen=True)
class SideTable:
    """A small table, of which the row with an event's key is joined to the event, as a STRUCT.

    Attributes:
        name: of the STRUCT.
        path: of a CSV or Parquet file, or of the folder of a Delta table.
        on: the key: (attribute of the event, column of the table).
        columns: what the STRUCT holds, without its name in front.
        refresh_us: how long a running job goes on before it looks whether the table has changed; None: for
            ever.
    """

    name: str
    path: str
    on: tuple[tuple[str, str], ...]
    columns: tuple[Field, ...]
    refresh_us: int | None = None

    @property
    def fields(self) -> tuple[Field, ...]:
        """The attributes that an event gets."""
        inside = (Field(f"{self.name}.{column.name}", column.type) for column in self.columns)
        return (Field(self.name, STRUCT), *inside)


@dataclass(frozen=True)
class EventSchema:
    """What an event looks like.

    Attributes:
        fields: the attributes, in the order of the rule file; those of side tables come last.
        event_time: the name of a TIMESTAMP attribute, or of a BIGINT one that counts `time_unit`s since 1970.
        tie_break: the attributes that order events of one event time, before source and offset do.
        time_unit: of a BIGINT `event_time`; None for a TIMESTAMP.
        side_tables: what is joined to events before rules see them.
        form: how records that are text say it.

    Example:
        >>> from spark_pace import load_rules
        >>> events = {"schema": "t TIMESTAMP, x FLOAT", "event_time": "t"}
        >>> rules = [{"name": "high", "pattern": {"sequence": [{"a": "x > 5"}]}}]
        >>> load_rules({"events": events, "rules": rules})[0].schema.fields[1]
        Field(name='x', type='DOUBLE')
    """

    fields: tuple[Field, ...]
    event_time: str
    tie_break: tuple[str, ...] = ()
    time_unit: Literal["s", "ms", "us"] | None = None
    side_tables: tuple[SideTable, ...] = ()
    form: RecordForm = ORDINARY

    @property
    def own(self) -> EventSchema:
        """What an event looks like before side tables are joined to it: as a source has it."""
        joined = {field for table in self.side_tables for field in table.fields}
        fields = tuple(field for field in self.fields if field not in joined)
        return replace(self, fields=fields, side_tables=())

    @property
    def structs(self) -> frozenset[str]:
        """The names of the STRUCTs."""
        return frozenset(field.name for field in self.fields if field.type == STRUCT)

    def path_of(self, name: str) -> tuple[str, ...]:
        """Where the attribute stands in an event: its STRUCTs from outside to inside, then its own name."""
        return tuple(name.split(".")) if name.partition(".")[0] in self.structs else (name,)


def column_name(attribute: str) -> str:
    """The column of `matches` for an attribute of `partition_by`: that of ``user.id`` is ``user_id``."""
    return attribute.replace(".", "_")


@dataclass(frozen=True)
class Within:
    """The length of a window: `time_us` microseconds or `events` events. Exactly one of them is set.

    `spark_pace.core.match.window` decides what that means.
    """

    time_us: int | None = None
    events: int | None = None


@dataclass(frozen=True)
class Times:
    """How many events a group has: `least` to `most`, or to any number where `most` is None."""

    least: int
    most: int | None

    def __str__(self) -> str:
        """The text that a rule file has for it. Checkpoints keep this text, so it never changes."""
        if self.most is None:
            return f"{self.least}+"
        return f"{self.least}" if self.least == self.most else f"{self.least}..{self.most}"


@dataclass(frozen=True)
class Component:
    """One named step of a pattern.

    `predicate` is over a single event, so its columns name no component. It includes every conjunct of
    `where` that names this component only, unless the component stands for a group.

    Attributes:
        name: the name.
        predicate: holds for the events that may stand for the component; of a negated one, that may forbid.
        times: of a repeated or optional component, the number of events in its group; None: it stands for
            one event.
        negated: whether its events forbid a match instead.
    """

    name: str
    predicate: Expr
    times: Times | None = None
    negated: bool = False


@dataclass(frozen=True)
class Conjunct:
    """A condition over several components, or over a group.

    `components` are the indices of the components that it names, ascending; at most one of them is negated.
    Columns in `expr` name a component of one event, aggregates one that stands for a group.
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
        """The text that a rule file has for it. Checkpoints keep this text, so it never changes."""
        return f"{self.selection}, {self.consumption}"


@dataclass(frozen=True)
class Pattern:
    """Components, the conditions over several of them, their window and their parameter context.

    With the contiguity "strict" no event of the rule's stream stands between two events of a match. In the
    order "sequence" events of components come one after the other as they are listed, in a "conjunction" in
    any order.
    """

    components: tuple[Component, ...]
    where: tuple[Conjunct, ...]
    within: Within | None
    context: Context
    close: Close = "completion"
    contiguity: Contiguity = "relaxed"
    order: Order = "sequence"
    strategy: Strategy | None = None  # how *earliest, selected* finds its matches; None: as suits best


@dataclass(frozen=True)
class PredicateSpan:
    """A selection from an event that satisfies `open` to the first later one that closes it.

    An event closes the selection if `close`, a predicate over that event alone, and every one of
    `close_where` hold. In `close_where` a column of the component ``open`` is the opening event's; one
    without a component is the closing event's.
    """

    open: Expr  # P_s
    close: Expr  # P_c, the part that does not mention the opening event
    close_where: tuple[Expr, ...]  # P_c, the conjuncts that do
    within_us: int


@dataclass(frozen=True)
class GridSpan:
    """The windows [k * every, k * every + size) for every integer k, in microseconds since 1970."""

    every_us: int
    size_us: int


@dataclass(frozen=True)
class CountSpan:
    """A selection opens at seq 0, every, 2 * every, and has `size` events."""

    every: int
    size: int


Span = PredicateSpan | GridSpan | CountSpan


@dataclass(frozen=True)
class Move:
    """An event moves its key from one of some states to another.

    Attributes:
        sources: the numbers of the states that it may leave.
        condition: the number of the condition that the event must satisfy; None: any event moves the key.
        target: the number of the state that it leads to.
        emits: whether it gives a match.
    """

    sources: tuple[int, ...]
    condition: int | None
    target: int
    emits: bool


@dataclass(frozen=True)
class StateMachine:
    """A fold that is a table of states and moves. Of the moves that fit, an event takes the first.

    Attributes:
        states: their names; a key begins in the first.
        conditions: the distinct conditions of its moves; each is over a single event, and over those before.
        moves: in the order of the rule file.
    """

    states: tuple[str, ...]
    conditions: tuple[Expr, ...]
    moves: tuple[Move, ...]


@dataclass(frozen=True)
class PythonFold:
    """A fold by a Python function.

    Attributes:
        function: "module:function".
        version: of what the function does with states, as the rule says; states of another are of no use.
    """

    function: str
    version: int = 1


Fold = StateMachine | PythonFold
# what ``emit`` of a state machine reads beside the attributes of the event
STATE_BEFORE, STATE_AFTER = "@from", "@to"
STATE_SINCE = "@since"  # the event time at which the state before was entered; null where a key begins in it


@dataclass(frozen=True)
class EmitField:
    """A computed field of a match. `expr` is None where a Python function yields it."""

    name: str
    type: TypeName
    expr: Expr | None


@dataclass(frozen=True)
class Rule:
    """A checked rule. At most one of `pattern`, `operator` and `fold` is set.

    An `operator` needs a `span`, and so does a rule with none of them: it aggregates the events of each span,
    and `having`, if it is set, says which spans give a match. A `fold` has no span, and its matches are in
    the order of their detection.

    `forget_key_after_us` needs `partition_by`. A gap of more than that many microseconds between two events
    ends the stream of a key. No window of time in the rule is longer, but those of a pattern in a span.

    `reads` are the rules whose matches are its events, in the order of `from`; empty: it reads the events of
    the input. `schema` is then of these matches. A rule that `hands_on` gives the events of the input to
    another one, as its matches; `spark_pace.core.plan.lower_rules` makes it, and no table has its matches.

    Example:
        >>> from spark_pace import load_rules
        >>> events = {"schema": "t TIMESTAMP, x DOUBLE", "event_time": "t"}
        >>> high = {"name": "high", "pattern": {"sequence": [{"a": "x > 5"}]}, "emit": {"x": "a.x"}}
        >>> (rule,) = load_rules({"events": events, "rules": [high]})
        >>> rule.name, rule.partition_by, [(field.name, field.type) for field in rule.emit]
        ('high', (), [('x', 'DOUBLE')])
    """

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
    forget_key_after_us: int | None = None
    having: Expr | None = None
    reads: tuple[Rule, ...] = field(default=(), hash=False)  # a hash of all below would take too long
    hands_on: bool = False
    fold: Fold | None = None

    @property
    def conditions(self) -> tuple[Expr, ...]:
        """What components or moves say of events. Of each event it is a bit whether the condition holds."""
        if isinstance(self.fold, StateMachine):
            return self.fold.conditions
        return () if self.pattern is None else tuple(one.predicate for one in self.pattern.components)

    @property
    def function(self) -> str | None:
        """The Python function that the rule calls; None where it calls none."""
        return self.fold.function if isinstance(self.fold, PythonFold) else self.operator
