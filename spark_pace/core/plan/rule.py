"""A checked rule as frozen values, which all steps read: its components, its fold, the form of its records.

`spark_pace.rules` makes a `Rule` from YAML. The terms are defined in `docs/semantics.md`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

from spark_pace.core.expr import STRUCT, Call, Column, Expr, TypeName
from spark_pace.core.expr.time_functions import has_year
from spark_pace.core.plan.row_pattern import RowPattern
from spark_pace.core.tables import SEQ

Contiguity = Literal["relaxed", "strict"]


@dataclass(frozen=True)
class Times:
    """The number of events in a group: from `least` to `most`; no upper bound if `most` is None."""

    least: int
    most: int | None

    def __str__(self) -> str:
        """The text that a rule file has for it. Checkpoints keep this text, so it never changes."""
        if self.most is None:
            return f"{self.least}+"
        return f"{self.least}" if self.least == self.most else f"{self.least}..{self.most}"


@dataclass(frozen=True)
class Member:
    """What a disjunction lists: an event stands for the first whose `predicate` holds; its `bit` says so."""

    name: str
    predicate: Expr
    bit: int


@dataclass(frozen=True)
class Ending:
    """What ends a group: the first event whose `predicate` holds; its `bit` says so."""

    predicate: Expr
    bit: int


@dataclass(frozen=True)
class Component:
    """One named step of a pattern.

    `predicate` is over a single event, so its columns name no component. It includes every conjunct of
    `where` that names this component only, unless the component stands for a group.

    Attributes:
        name: the name.
        predicate: holds for events that may stand for it, or, if it is negated, that forbid a match.
        times: the number of events in the group of a repeated or optional component; None: the component
            stands for one event.
        negated: True if the component's events forbid a match.
        follows: "strict" if no event of the rule's stream stands between its event and the one before it in a
            match; of a group, if none stands before any of its events but its first in first place. The group
            ends before the first other event.
        members: what a disjunction lists; `predicate` holds where that of any member does.
        until: what ends the group: the first such event behind the component before is not in the group, and
            none behind it is; in first place the first one behind the initiator.
        further: what must hold of each event of the group behind its first one, or it is not in the group.
            Columns name this component and are of the event; aggregates are over the events of the group
            before it.
    """

    name: str
    predicate: Expr
    times: Times | None = None
    negated: bool = False
    follows: Contiguity = "relaxed"
    members: tuple[Member, ...] = ()
    until: Ending | None = None
    further: Expr | None = None

    @property
    def runs(self) -> bool:
        """True for a group whose events directly follow each other."""
        return self.times is not None and self.follows == "strict"


@dataclass(frozen=True)
class Move:
    """An event moves its key from one of some states to another.

    Attributes:
        sources: the numbers of the states that it may leave.
        condition: the number of the condition that the event must satisfy; None: any event moves the key.
        target: the number of the state that it leads to.
        emits: True if the move gives a match.
    """

    sources: tuple[int, ...]
    condition: int | None
    target: int
    emits: bool


@dataclass(frozen=True)
class StateMachine:
    """A fold with a table of states and moves. An event takes the first move that fits.

    Attributes:
        states: the names of the states; a key begins in the first one.
        conditions: the distinct conditions of the moves, each over an event and perhaps the events before it.
        moves: the moves, in the order of the rule file.
    """

    states: tuple[str, ...]
    conditions: tuple[Expr, ...]
    moves: tuple[Move, ...]


@dataclass(frozen=True)
class PythonFold:
    """A fold by a Python function.

    Attributes:
        function: "module:function".
        version: the version of the function's states, from the rule; states of another version are useless.
    """

    function: str
    version: int = 1


Fold = StateMachine | PythonFold
# columns that ``emit`` of a state machine reads beside the attributes of the event
STATE_BEFORE, STATE_AFTER = "@from", "@to"
STATE_SINCE = "@since"  # the event time at which the state before was entered; null where a key begins in it


@dataclass(frozen=True)
class RecordForm:
    """How to read an event from text, where that differs from the default of the format.

    Attributes:
        regex: for ``format: text``: an RE2 expression that must match the whole line; its named groups are
            the attributes. None: no source may have this format, unless `has_json`.
        further: more of these; the first that matches a line says what it holds.
        has_json: True if a line of ``format: text`` is JSON from its first brace on.
        ignores_unmatched: True if a line that does not match is skipped instead of reported as bad.
        time_formats: the formats of a TIMESTAMP, tried in this order; empty: ISO 8601.
        year: the year of times whose format has none; None: it follows from `newest_us`.
        newest_us: a time without a year is in the last year that puts it at most a day after this time, in
            microseconds since 1970.
        zone: the time zone of times whose format has none; None: UTC.
        empty_is_null: True if an empty text is null.
        preset: the name of the preset that says what lines are; None: the regex is the user's own.
    """

    regex: str | None = None
    has_json: bool = False
    ignores_unmatched: bool = False
    time_formats: tuple[str, ...] = ()
    year: int | None = None
    newest_us: int | None = None
    zone: str | None = None
    empty_is_null: bool = False
    preset: str | None = None
    further: tuple[str, ...] = ()

    @property
    def regexes(self) -> tuple[str, ...]:
        """`regex`, if there is one, and `further`."""
        return () if self.regex is None else (self.regex, *self.further)

    @property
    def reads_text(self) -> bool:
        """True if a source may be text."""
        return self.regex is not None or self.has_json

    @property
    def omits_year(self) -> bool:
        """True if a time may be written without its year."""
        return not all(map(has_year, self.time_formats))

    @property
    def lacks_year(self) -> bool:
        """True if the year of a time can only be told from the time of its file."""
        return self.year is None and self.omits_year


ORDINARY = RecordForm()


Merge = Literal["selection", "detection"]
Close = Literal["completion", "window"]
Order = Literal["sequence", "conjunction", "disjunction"]
PLAIN_TYPES = frozenset({"BIGINT", "BOOLEAN", "DATE", "DOUBLE", "STRING", "TIMESTAMP"})
Strategy = Literal["queues", "production_sets", "merger_filter"]


@dataclass(frozen=True)
class Field:
    """A named, typed attribute. All integers are BIGINT, all floats DOUBLE.

    The members of a STRUCT are attributes too and follow it: ``user`` (a STRUCT), then ``user.id``.
    """

    name: str
    type: TypeName

    @property
    def is_plain(self) -> bool:
        """True if compiled code reads the attribute from JSON: no DECIMAL, no parts, no escaped name."""
        return self.type in PLAIN_TYPES and self.name.isprintable() and not {'"', "\\"} & set(self.name)


@dataclass(frozen=True)
class SideTable:
    """A small table. The row with an event's key is joined to the event, as a STRUCT.

    Attributes:
        name: the name of the STRUCT.
        path: the path of a CSV or Parquet file, or of the folder of a Delta table.
        on: the key, as pairs (attribute of the event, column of the table).
        columns: the members of the STRUCT, without its name in front.
        refresh_us: the time after which a running job looks for changes of the table; None: it never does.
    """

    name: str
    path: str
    on: tuple[tuple[str, str], ...]
    columns: tuple[Field, ...]
    refresh_us: int | None = None

    @property
    def fields(self) -> tuple[Field, ...]:
        """The attributes that the table adds to an event: the STRUCT and its members."""
        inside = (Field(f"{self.name}.{column.name}", column.type) for column in self.columns)
        return (Field(self.name, STRUCT), *inside)


@dataclass(frozen=True)
class EventSchema:
    """The attributes of an event, and how they are read and ordered.

    Attributes:
        fields: the attributes, in the order of the rule file, then those of side tables.
        event_time: the name of a TIMESTAMP attribute, or of a BIGINT one that counts `time_unit`s since 1970.
        tie_break: the attributes that order events of the same event time, before source and offset do.
        time_unit: the unit of a BIGINT `event_time`; None for a TIMESTAMP.
        side_tables: the tables that are joined to events before rules see them.
        form: how to read an event from text.
        rules: if the events are matches, the names in ``from``, which their attribute ``rule`` has.

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
    rules: tuple[str, ...] = ()

    @property
    def own(self) -> EventSchema:
        """The schema without side tables: that of the records of a source."""
        joined = {field for table in self.side_tables for field in table.fields}
        fields = tuple(field for field in self.fields if field not in joined)
        return replace(self, fields=fields, side_tables=())

    @property
    def structs(self) -> frozenset[str]:
        """The names of the STRUCTs."""
        return frozenset(field.name for field in self.fields if field.type == STRUCT)

    def path_of(self, name: str) -> tuple[str, ...]:
        """The path to an attribute: the names of its STRUCTs, outermost first, then its own name."""
        return tuple(name.split(".")) if name.partition(".")[0] in self.structs else (name,)


def column_name(attribute: str) -> str:
    """The column of `matches` for an attribute of `partition_by`, such as ``user_id`` for ``user.id``."""
    return attribute.replace(".", "_")


@dataclass(frozen=True)
class Within:
    """The length of a window: `time_us` microseconds, `events` events, or what ends first if both are set.

    At least one of them is set. `spark_pace.core.match.stream` computes where such a window ends.
    """

    time_us: int | None = None
    events: int | None = None


@dataclass(frozen=True)
class Conjunct:
    """A condition over several components, or over a group.

    `components` are the indices of the components that it names, ascending; at most one of them is negated.
    A column in `expr` names a component that stands for one event, an aggregate one that stands for a group.
    If it names members of disjunctions, `stated` is what the rule says (`spark_pace.core.plan.members`).
    """

    expr: Expr
    components: tuple[int, ...]
    stated: Expr | None = None

    @property
    def is_order(self) -> bool:
        """True if it says that one event stands before another (`spark_pace.core.plan.shape.in_turn`)."""
        sides = self.expr.arguments if isinstance(self.expr, Call) else ()
        return any(isinstance(side, Column) and side.attribute == SEQ for side in sides)


@dataclass(frozen=True)
class Absence:
    """A negated component in first place: no event stands for the first component behind one that forbids it.

    Attributes:
        component: the negated component.
        within_us: how long before the other event an event forbids; None: however long.
        where: the conditions on both events; columns name the components.
    """

    component: Component
    within_us: int | None
    where: tuple[Expr, ...] = ()


@dataclass(frozen=True)
class Context:
    """The name of a parameter context: its selection policy and its consumption policy.

    `spark_pace.core.match.contexts.context_of` returns the context of this name.
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
    any order, but for the sequences in it (`spark_pace.core.plan.shape.sequences_of`). In a "disjunction"
    each of these sequences, and each component in none, is an alternative. `absences` are the negated
    components in first place; they are not among `components`.
    `taking` are the conditions of `where` that name an optional component in last place: they say which event
    it takes, and nothing about whether there is a match. They are not among those in the attribute `where`.
    """

    components: tuple[Component, ...]
    where: tuple[Conjunct, ...]
    within: Within | None
    context: Context
    close: Close = "completion"
    contiguity: Contiguity = "relaxed"
    order: Order = "sequence"
    strategy: Strategy | None = None  # the search for *earliest, selected*; None: the program chooses
    absences: tuple[Absence, ...] = ()
    taking: tuple[Conjunct, ...] = ()

    @property
    def conditions(self) -> tuple[Conjunct, ...]:
        """The conditions of the attribute `where`, without those of sequences in a conjunction."""
        return tuple(one for one in self.where if not one.is_order)

    @property
    def every_condition(self) -> tuple[Conjunct, ...]:
        """The attribute `where`, then `taking`."""
        return (*self.where, *self.taking)

    @property
    def every(self) -> tuple[Component, ...]:
        """All components, as they are listed in the rule file."""
        return (*(absence.component for absence in self.absences), *self.components)

    @property
    def predicates(self) -> tuple[Expr, ...]:
        """The predicates of components, then of `absences`, then of `endings`: a bit of ``@mask`` for each.

        The bit of a group that has an end also says that the event does not end it.
        """
        components = (*self.components, *(absence.component for absence in self.absences))
        ends = (ending.predicate for ending in self.endings)
        return (*(component.predicate for component in components), *ends)

    @property
    def over_several(self) -> tuple[Expr, ...]:
        """The conditions over several events: of `where`, and on further events of groups."""
        further = (one.further for one in self.components if one.further is not None)
        return (*(conjunct.expr for conjunct in self.every_condition), *further)

    @property
    def endings(self) -> tuple[Ending, ...]:
        """What ends groups, in the order of their components."""
        return tuple(one.until for one in self.components if one.until is not None)


@dataclass(frozen=True)
class PredicateSpan:
    """A selection from an event that satisfies `open` to the first later event that closes it.

    An event closes the selection if `close`, a predicate over that event alone, and all of `close_where`
    hold. In `close_where`, columns of the component ``open`` belong to the opening event, columns without a
    component to the closing event.
    """

    open: Expr  # P_s of docs/semantics.md
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
    """Selections of `size` events each, which open at the `seq` 0, `every`, 2 * `every`, and so on."""

    every: int
    size: int


@dataclass(frozen=True)
class SessionSpan:
    """Runs of events, none more than `gap_us` after the last one, nor `within_us` after the first one."""

    gap_us: int
    within_us: int | None = None


Span = PredicateSpan | GridSpan | CountSpan | SessionSpan


@dataclass(frozen=True)
class EmitField:
    """A computed field of a match. `expr` is None where a Python function yields it."""

    name: str
    type: TypeName
    expr: Expr | None


@dataclass(frozen=True)
class Rule:
    """A checked rule. At most one of `pattern`, `operator`, `fold` and `rows` is set.

    An `operator` needs a `span`, and so does a rule with none of them: it aggregates the events of each span,
    and `having`, if it is set, says which spans give a match. A `fold`, or the row pattern `rows`, has no
    span, and its matches are in the order of their detection. The measures of a row pattern are those of
    `emit`, in the same order.

    `forget_key_after_us` needs `partition_by`. A gap of more than that many microseconds between two events
    ends the stream of a key. No window of time in the rule is longer, but those of a pattern in a span.

    `reads` are the rules whose matches are its events, in the order of `from`; empty: it reads the events of
    the input. `schema` is then of these matches. A rule that `hands_on` gives the events of the input to
    another one, as its matches; `spark_pace.core.plan.lower_rules` makes it, and no table has its matches.

    A rule that is not `enabled` is paused: it was checked with the others, and nothing runs it.

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
    enabled: bool = True
    rows: RowPattern | None = None

    @property
    def conditions(self) -> tuple[Expr, ...]:
        """The predicates of components or the conditions of moves. Each has a bit in an event's ``@mask``."""
        if isinstance(self.fold, StateMachine):
            return self.fold.conditions
        return () if self.pattern is None else self.pattern.predicates

    @property
    def function(self) -> str | None:
        """The Python function that the rule calls; None where it calls none."""
        return self.fold.function if isinstance(self.fold, PythonFold) else self.operator
