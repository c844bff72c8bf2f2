"""The facts about a rule, from which `explain` makes text and JSON.

The names of the fields are the keys of the JSON objects, which `docs/rules/explain.md` lists. They do not
change; a release may add some. Lengths of time are written as in a rule file.
"""

from __future__ import annotations

from dataclasses import dataclass

from spark_pace.core.match.search.technique import Begin, How

INTAKE = "intake"  # decided on whole columns, before events are put in order
IN_ORDER = "splitter, in stream order"  # decided on whole columns, when events are in order
IN_SPANS = "operators, in each span"
CANDIDATES = "candidates"
FORBIDDING = "candidates and what may forbid them"
TAKING = "events behind a match"
ON_SPANS = "spans"


@dataclass(frozen=True)
class ConditionFacts:
    """A condition and the place, one of those above, where it is decided."""

    condition: str
    decided: str


@dataclass(frozen=True)
class MemberFacts:
    """A component that a disjunction lists: its name and its condition, part by part."""

    name: str
    parts: tuple[ConditionFacts, ...]


@dataclass(frozen=True)
class ComponentFacts:
    """A component of a pattern.

    Attributes:
        name: its name.
        condition: the condition that an event must satisfy.
        decided: where the last part of the condition is decided.
        parts: the parts of the condition, each with its place, in this order.
        times: the number of events of its group, as in a rule file; None: it stands for one event.
        negated: True if its events forbid a match.
        takes: for a group, which events it takes, and how many.
        forbids: for a negated component, which events forbid.
        decided_by: for a negated or an optional component in last place, what ends the wait for its events.
        follows: what stands before its event, or before those of its group, if no other event may.
        members: what a disjunction lists; empty for other components.
        until: for a group, the condition at which it ends, if it has one.
        further: for a group, what is asked of its events behind the first, if anything is.
    """

    name: str
    condition: str
    decided: str
    parts: tuple[ConditionFacts, ...]
    times: str | None
    negated: bool
    takes: str | None
    forbids: str | None
    decided_by: str | None
    follows: str | None
    members: tuple[MemberFacts, ...] = ()
    until: str | None = None
    further: str | None = None


@dataclass(frozen=True)
class PatternFacts:
    """A pattern. `strict` says which events count as neighbours; None if contiguity is relaxed."""

    order: str
    components: tuple[ComponentFacts, ...]
    where: tuple[ConditionFacts, ...]
    strict: str | None
    context: str
    within: str | None
    close: str
    sequences: tuple[tuple[str, ...], ...] = ()  # in another order: which components come so


@dataclass(frozen=True)
class SpanFacts:
    """A span. A grid of time or events has `every` and `size`; one between events `open`, `close`, `within`.

    Sessions have a `gap`, and `within` if that ends them too.
    """

    kind: str  # "time", "events", "between events" or "sessions"
    every: str | None = None
    size: str | None = None
    open: str | None = None
    close: str | None = None
    within: str | None = None
    gap: str | None = None


@dataclass(frozen=True)
class AggregateFacts:
    """The aggregates of a rule: `of` says which events of a span, `where` which spans give a match."""

    of: str
    where: ConditionFacts | None


@dataclass(frozen=True)
class LookupFacts:
    """A side table that the rule uses.

    `attributes` are those that it uses, and the table's name if it asks whether there is a row. `on` are the
    attributes by which an event finds its row.
    """

    name: str
    path: str
    on: tuple[str, ...]
    attributes: tuple[str, ...]


@dataclass(frozen=True)
class MoveFacts:
    """A move of a fold, from states to a state. `emits` is True if it gives a match.

    `condition` is None if every event satisfies it.
    """

    sources: tuple[str, ...]
    condition: ConditionFacts | None
    target: str
    emits: bool


@dataclass(frozen=True)
class FoldFacts:
    """A fold: either a Python function and its version, or the initial state and the moves."""

    function: str | None
    version: int | None
    initial: str | None
    moves: tuple[MoveFacts, ...]


@dataclass(frozen=True)
class VariableFacts:
    """A variable of a row pattern, and how its condition is tested; None: every event fits."""

    name: str
    tested: str | None


@dataclass(frozen=True)
class RowPatternFacts:
    """A row pattern. `then` says where the next match is sought after one.

    `before` is how many events before its first one a match reads, `behind` for how many behind its last one
    it waits.
    """

    pattern: str
    variables: tuple[VariableFacts, ...]
    within: str | None
    then: str
    compiled: bool
    before: int
    behind: int


@dataclass(frozen=True)
class KeyFacts:
    """How keys split the stream.

    Attributes:
        partition_by: the attributes of the key; empty: one stream.
        forget_after: how long after its last event a key is forgotten; None: never.
        join: the attribute by whose value carried events are looked up; None: by no value.
    """

    partition_by: tuple[str, ...]
    forget_after: str | None
    join: str | None


@dataclass(frozen=True)
class ParallelFacts:
    """The work of operators: what they do, on which lanes, if keys are spread over buckets, and why."""

    operators: str  # "match", "enumerate", "compute fields" or "work on spans"
    lanes: str  # the things in a lane: "selections", "keys", "closed selections", "matches" or "spans"
    buckets: bool
    why: str


@dataclass(frozen=True)
class CarriedFacts:
    """The state carried from batch to batch: events, values of keys, and the bound on the events.

    `last_values` says which attributes of each key's last events are kept for ``prev``, `forbidding` what is
    kept of the events that negated components in first place name.
    """

    events: str
    keys: str | None
    last_values: tuple[str, ...]
    bounded: bool
    bound: str
    forbidding: tuple[str, ...] = ()


@dataclass(frozen=True)
class OrderFacts:
    """The order of matches, by "selection" or "detection", and what a match waits for, in this order."""

    by: str
    waits_until: tuple[str, ...]


@dataclass(frozen=True)
class EmitFacts:
    """A computed field."""

    name: str
    type: str


@dataclass(frozen=True)
class StepCost:
    """How one more event of a candidate is found.

    Attributes:
        component: the component of the event.
        found: "by place": by a binary search among the component's events; "by equality": likewise among
            those with the equal value.
        equality: the condition with that equality.
        ranked: conditions that are tested by comparing two numbers.
        evaluated: conditions that are evaluated for each candidate.
        between: True if events between it and the one before are counted or may forbid.
    """

    component: str
    found: str
    equality: str | None
    ranked: tuple[str, ...]
    evaluated: tuple[str, ...]
    between: bool


@dataclass(frozen=True)
class SearchCost:
    """The search for matches.

    Attributes:
        each: the event that a search begins with: "initiator" or "terminator".
        method: how it goes on; `METHODS` in `cost` describes each method.
        compiled: True if compiled code searches.
        steps: the steps of a search, in order; empty if one event is a match, and for conjunctions.
    """

    each: Begin
    method: How
    compiled: bool
    steps: tuple[StepCost, ...]


@dataclass(frozen=True)
class Cost:
    """The cost of a rule: counts, and how they grow.

    Attributes:
        conditions_per_event: the number of distinct conditions that are evaluated for each event at the
            intake.
        carried: when a carried event is read.
        search: the search for matches; None for operators, folds and aggregates.
        fields_per_match: the number of computed fields.
        dominant: what grows fastest: "events", "tests", "candidates" or "calls".
        growth: how it grows.
    """

    conditions_per_event: int
    carried: str
    search: SearchCost | None
    fields_per_match: int
    dominant: str | None
    growth: str


@dataclass(frozen=True)
class LowerFacts:
    """A lower rule, which a rule over rules reads.

    Attributes:
        rule: its name; "events" for the events of the input.
        condition: for the events of the input, which of them are read; None: all, as for matches.
        waits: how long a match of it can wait at most, and others with it; None: none waits.
    """

    rule: str
    condition: str | None
    waits: str | None


@dataclass(frozen=True)
class LevelFacts:
    """The level of a rule over rules.

    Attributes:
        level: the number of levels above the rules that read the events of the input.
        reads: its lower rules, in the order of ``from``.
        waits: how long an event of the rule can wait at most for others that may come before it, because of
            all rules below; None: it does not.
        warning: a cost that the rule need not have; None: none is known.
    """

    level: int
    reads: tuple[LowerFacts, ...]
    waits: str | None
    warning: str | None


@dataclass(frozen=True)
class Explanation:
    """All facts about a rule.

    One of `pattern`, `operator`, `fold`, `match_recognize` and `aggregates` is set.

    `levels` is set if the rule reads other rules, `json` if it reads events that may be JSON.
    """

    rule: str
    levels: LevelFacts | None
    filter: ConditionFacts | None
    pattern: PatternFacts | None
    operator: str | None
    fold: FoldFacts | None
    match_recognize: RowPatternFacts | None
    aggregates: AggregateFacts | None
    span: SpanFacts | None
    key: KeyFacts
    lookup: tuple[LookupFacts, ...]
    json: str | None
    splitter: str
    parallel: ParallelFacts
    carried: CarriedFacts
    order: OrderFacts
    emits: tuple[EmitFacts, ...]
    cost: Cost
