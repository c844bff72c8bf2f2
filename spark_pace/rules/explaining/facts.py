"""What is told of a rule, as facts: text and JSON are both made of these.

The names of the fields are the keys of the JSON objects, which `docs/rules.md` lists. They stay as they are;
what a release adds are further ones. Lengths of time are written as in a rule file.
"""

from __future__ import annotations

from dataclasses import dataclass

from spark_pace.core.match.search.technique import Begin, How

INTAKE = "intake"  # on whole columns, before events are put in order
IN_ORDER = "splitter, in stream order"  # on whole columns, when events are in order
IN_SPANS = "operators, in each span"
CANDIDATES = "candidates"
FORBIDDING = "candidates and what may forbid them"
ON_SPANS = "spans"


@dataclass(frozen=True)
class ConditionFacts:
    """A condition, and where it is decided: at one of the places above."""

    condition: str
    decided: str


@dataclass(frozen=True)
class ComponentFacts:
    """A component of a pattern.

    Attributes:
        name: its name.
        condition: what an event must satisfy.
        decided: where that is decided in the end.
        parts: what of the condition is decided where, in this order.
        times: how many events its group has, as a rule file writes it; None: it stands for one event.
        negated: whether its events forbid.
        takes: of a group, which events it takes, and how many.
        forbids: of a negated component, which events forbid.
        decided_by: of one in last place, what ends the wait for such an event.
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


@dataclass(frozen=True)
class PatternFacts:
    """A pattern. `strict` says which events count as neighbours; None where contiguity is relaxed."""

    order: str
    components: tuple[ComponentFacts, ...]
    where: tuple[ConditionFacts, ...]
    strict: str | None
    context: str
    within: str | None
    close: str


@dataclass(frozen=True)
class SpanFacts:
    """A span. Of a grid, or of events, `every` and `size` are set, of one between events the others."""

    kind: str  # "time", "events" or "between events"
    every: str | None = None
    size: str | None = None
    open: str | None = None
    close: str | None = None
    within: str | None = None


@dataclass(frozen=True)
class AggregateFacts:
    """What is aggregated: `of` which events in each span; `where` says which spans give a match."""

    of: str
    where: ConditionFacts | None


@dataclass(frozen=True)
class LookupFacts:
    """A side table of which the rule uses `attributes`, the name of the table itself if it asks for null.

    `on` are the attributes of an event by which it finds its row.
    """

    name: str
    path: str
    on: tuple[str, ...]
    attributes: tuple[str, ...]


@dataclass(frozen=True)
class MoveFacts:
    """A move of a fold: from which states to which, what an event must satisfy, and whether it gives a match.

    `condition` is None where any event does.
    """

    sources: tuple[str, ...]
    condition: ConditionFacts | None
    target: str
    emits: bool


@dataclass(frozen=True)
class FoldFacts:
    """A fold: a function of which version, or the state in which a key begins, and the moves."""

    function: str | None
    version: int | None
    initial: str | None
    moves: tuple[MoveFacts, ...]


@dataclass(frozen=True)
class KeyFacts:
    """What splits the stream before selections do.

    Attributes:
        partition_by: the attributes of the key; empty: one stream.
        forget_after: how long after its last event a key is forgotten; None: never.
        join: the attribute by whose values carried events are looked up; None where they are not.
    """

    partition_by: tuple[str, ...]
    forget_after: str | None
    join: str | None


@dataclass(frozen=True)
class ParallelFacts:
    """What the operators do, on lanes of what, whether keys are spread over buckets, and why it is so."""

    operators: str  # "match", "enumerate", "compute fields" or "work on spans"
    lanes: str  # of "selections", "keys", "closed selections", "matches" or "spans"
    buckets: bool
    why: str


@dataclass(frozen=True)
class CarriedFacts:
    """What is carried from batch to batch: events, and what of keys beside them; what bounds the events.

    `last_values` are the attributes of each key's last events that ``prev`` reads, and of how many.
    """

    events: str
    keys: str | None
    last_values: tuple[str, ...]
    bounded: bool
    bound: str


@dataclass(frozen=True)
class OrderFacts:
    """The order of matches: by "selection" or "detection", and what a match waits for, in this order."""

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
        component: the component it stands for.
        found: "by place": a binary search among the component's events; "by equality": among those of them
            that have the equal value.
        equality: the condition by which it is looked up.
        ranked: conditions of which each test compares two numbers.
        evaluated: conditions that are evaluated for each candidate.
        between: whether events between it and the one before are counted or may forbid.
    """

    component: str
    found: str
    equality: str | None
    ranked: tuple[str, ...]
    evaluated: tuple[str, ...]
    between: bool


@dataclass(frozen=True)
class SearchCost:
    """How matches are searched.

    Attributes:
        each: what a search begins with: "initiator" or "terminator".
        method: how it goes on; `METHODS` in `cost` says what each is.
        compiled: whether compiled code searches, if there are many combinations of events.
        steps: what each search goes through, in this order; empty where one event is a match,
            and for conjunctions.
    """

    each: Begin
    method: How
    compiled: bool
    steps: tuple[StepCost, ...]


@dataclass(frozen=True)
class Cost:
    """What a rule costs: counts, and how they grow.

    Attributes:
        conditions_per_event: how many distinct conditions are evaluated for each event at the intake.
        carried: when a carried event is looked at.
        search: how matches are searched; None where an operator is called, or for forms not told of here.
        fields_per_match: how many fields are computed.
        dominant: what grows fastest: "events", "tests", "candidates" or "calls"; None: not told.
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
    """A rule that is read, a lower rule.

    Attributes:
        rule: its name; "events" are those of the input.
        condition: of the events of the input, which are read; None: all, as of matches.
        waits: for how long its matches can wait for each other; None: they do not.
    """

    rule: str
    condition: str | None
    waits: str | None


@dataclass(frozen=True)
class LevelFacts:
    """Where a rule over rules stands.

    Attributes:
        level: the number of levels that it stands above the rules that read the events of the input.
        reads: its lower rules, in the order of ``from``.
        waits: for how long an event of the rule can wait for others that may come before it, because of all
            rules below; None: it does not.
    """

    level: int
    reads: tuple[LowerFacts, ...]
    waits: str | None


@dataclass(frozen=True)
class Explanation:
    """All that is told of a rule. One of `pattern`, `operator`, `fold` and `aggregates` is set.

    `levels` is set if the rule reads other rules, `json` if it reads the events of the input.
    """

    rule: str
    levels: LevelFacts | None
    filter: ConditionFacts | None
    pattern: PatternFacts | None
    operator: str | None
    fold: FoldFacts | None
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
