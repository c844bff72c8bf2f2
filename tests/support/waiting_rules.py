"""Rules of which many matches wait: from seeds, so that there are as many of each kind."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from spark_pace.core.expr import Aggregate
from spark_pace.core.plan.rule import (
    Component,
    Conjunct,
    Context,
    EmitField,
    Ending,
    EventSchema,
    GridSpan,
    Merge,
    Pattern,
    PredicateSpan,
    Rule,
    SessionSpan,
    Times,
    Within,
)
from spark_pace.rules.pattern.components import with_bits
from tests.support.optional_strategies import WITH_OPTIONAL_LAST
from tests.support.strategies import CONTEXTS, FIELDS, OPERATORS, column, condition, typed
from tests.support.streams import SECOND

SHAPES = (
    *("plain", "plain", "group", "not", "optional", "conjunction"),
    *("spans", "operator", "in spans", "in windows", "in sessions"),
)
NEXT = Context("next", "selected")
KNOWN = "tests.support.operators:known"


def waiting_rule(random: Random) -> Rule:
    """A rule whose matches may wait, with a key or without, that is not forgotten or is."""
    shape, length_us = random.choice(SHAPES), random.choice([3, 5, 8, 100]) * SECOND
    schema, keys = EventSchema(FIELDS, "time"), random.choice([(), (), ("k",), ("k", "y")])
    rule = Rule("rule", schema, None, keys, None, None, None, "selection", ())
    if keys and random.random() < 0.2:
        rule = replace(rule, forget_key_after_us=length_us)
    if shape == "spans":
        count = Aggregate("count", None, None, "BIGINT")
        having = condition(">", Aggregate("sum", None, "x", "BIGINT"), Aggregate("min", None, "y", "BIGINT"))
        span, fields = between(random, length_us), (EmitField("n", "BIGINT", count),)
        return replace(rule, span=span, emit=fields, having=random.choice([None, having]))
    if shape == "operator":
        fields = tuple(EmitField(name, kind, None) for name, kind in OPERATORS[KNOWN])  # type: ignore[arg-type]
        return replace(rule, span=between(random, length_us), operator=KNOWN, emit=fields)
    pattern = pattern_of(random, shape, length_us)
    if pattern.context == NEXT and random.random() < 0.5:
        rule = replace(rule, merge="detection")
    if shape == "in spans":
        return replace(rule, pattern=pattern, span=between(random, length_us))
    if shape == "in windows":
        return replace(rule, pattern=pattern, span=GridSpan(2 * SECOND, min(length_us, 8 * SECOND)))
    if shape == "in sessions":
        longest = None if pattern.within is not None and random.random() < 0.5 else length_us
        return replace(rule, pattern=pattern, span=SessionSpan(random.choice([1, 2, 3]) * SECOND, longest))
    return replace(rule, pattern=pattern)


def between(random: Random, length_us: int) -> PredicateSpan:
    """Spans from an event to one that has an equal value."""
    equal = condition("=", column("x"), column("x", "open"))
    return PredicateSpan(typed(random.choice(["a", "ab"])), typed("b"), (equal,), length_us)


def pattern_of(random: Random, shape: str, length_us: int) -> Pattern:
    """An a and a b whose values fit, by chance with a group, or a c that may not, or need not, come."""
    contexts = [*CONTEXTS, *[NEXT] * 6, *CONTEXTS[:3]]
    if shape == "conjunction":
        contexts = [context for context in CONTEXTS if context.selection != "next"]
    in_span = shape in ("in spans", "in windows", "in sessions")
    extra = random.choice(["plain", "group", "not", "optional"]) if in_span else shape
    if extra == "optional":
        contexts = [context for context in contexts if context in WITH_OPTIONAL_LAST]
    components = [Component("p", typed(random.choice(["a", "a", "ab"]))), Component("q", typed("b"))]
    if extra == "group":
        group = Component(
            "g", typed(random.choice("cb")), Times(*random.choice([(0, None), (1, 2), (1, None)]))
        )
        components.insert(1, group)
    if extra == "not":
        components.insert(random.choice([1, 2, 2]), Component("c", typed("c"), negated=True))
    if extra == "optional":
        components = with_bits([*components, optional_last(random)])
    last = next(place for place, component in enumerate(components) if component.name == "q")
    name, sign = random.choice(["x", "x", "y", "k"]), random.choice(["=", "=", "<", "<="])
    fits = condition("=" if name == "k" else sign, column(name, "p"), column(name, "q"))
    context = random.choice(contexts)
    may_stay_open = context == CONTEXTS[0] and all(component.times is None for component in components)
    close = "window" if may_stay_open and random.random() < 0.3 else "completion"
    most = random.choice([None, None, None, random.randint(2, 8)])
    within = None if in_span and random.random() < 0.3 else Within(length_us, most)
    order = "conjunction" if shape == "conjunction" else "sequence"
    taking = conditions_of_last(random, components) if extra == "optional" else ()
    where = (Conjunct(fits, (0, last)),)
    return Pattern(tuple(components), where, within, context, close, order=order, taking=taking)  # type: ignore[arg-type]


def conditions_of_last(random: Random, components: list[Component]) -> tuple[Conjunct, ...]:
    """By chance a condition that says which event the last component takes, if it takes one."""
    place, last = random.randrange(len(components) - 1), components[-1]
    if last.times != Times(0, 1) or random.random() < 0.5:
        return ()
    own, other = Aggregate("first", last.name, "x", "BIGINT"), column("x", components[place].name)
    return (Conjunct(condition(random.choice(["=", "<=", ">"]), own, other), (place, len(components) - 1)),)


def optional_last(random: Random) -> Component:
    """A component for a c or none, whose group may end before it has one."""
    last = Component("l", typed("c"), Times(0, random.choice([1, 1, 2, None])))
    if random.random() < 0.5:
        return replace(last, until=Ending(typed(random.choice("ab")), 0))
    return replace(last, follows="strict") if random.random() < 0.3 else last


def forbidden_behind(random: Random) -> Rule:
    """A rule with a negated component in last place, which may forbid several candidates at a time."""
    components = [Component("p", typed(random.choice(["a", "ab", "ab"]))), Component("q", typed("b"))]
    if random.random() < 0.3:
        components.insert(1, Component("m", typed(random.choice("ab"))))
    last, name = len(components) - 1, random.choice(["x", "x", "y"])
    sign = random.choice(["=", "=", "<", "<="])
    where = [Conjunct(condition(sign, column(name, "p"), column(name, "q")), (0, last))]
    if random.random() < 0.3:
        where.append(Conjunct(condition("=", column("k", "c"), column("k", "p")), (0, last + 1)))
    pattern = Pattern(
        (*components, Component("c", typed("c"), negated=True)),
        tuple(where),
        Within(random.choice([3, 5, 8]) * SECOND),
        random.choice([*CONTEXTS, Context("latest", "zero"), Context("earliest", "selected")]),
        "completion",
    )
    length_us, keys = random.choice([5, 8, 12]) * SECOND, random.choice([(), (), ("k",)])
    spans = between(random, length_us), GridSpan(2 * SECOND, length_us), SessionSpan(2 * SECOND, length_us)
    span = random.choice([None, None, None, *spans])
    merge: Merge = random.choice(["selection", "selection", "selection", "detection"])
    return Rule("rule", EventSchema(FIELDS, "time"), None, keys, pattern, span, None, merge, ())
