"""Collects the facts about a rule over rules: what it reads, its level, how long its events wait at most."""

from __future__ import annotations

from collections.abc import Sequence

from spark_pace.core.expr import Literal
from spark_pace.core.expr.canonical_text import canonical_duration, canonical_text
from spark_pace.core.match.delay import delay_us
from spark_pace.core.plan.lower_rules import EVENTS, levels_of, name_in_from
from spark_pace.core.plan.rule import Rule
from spark_pace.rules.explanation.facts import LevelFacts, LowerFacts


def level_facts(rule: Rule) -> LevelFacts | None:
    """The facts about a rule over rules; None for a rule over the events of the input."""
    if not rule.reads:
        return None
    lower = tuple(map(_lower, rule.reads))
    return LevelFacts(levels_of([rule])[rule.name], lower, _shown(_wait_us(rule)), _warning(lower))


def _warning(lower: Sequence[LowerFacts]) -> str | None:
    if not any(one.rule == EVENTS and one.condition is None for one in lower):
        return None
    what = "all events of the input go to one core of the driver"
    return f"{what}; read a rule of one component instead, which picks those that are needed"


def _lower(rule: Rule) -> LowerFacts:
    condition = None
    if rule.hands_on and rule.pattern is not None:
        predicate = rule.pattern.components[0].predicate
        condition = None if predicate == Literal(True, "BOOLEAN") else canonical_text(predicate)
    return LowerFacts(name_in_from(rule), condition, _shown(_late_us(rule)))


def _wait_us(rule: Rule) -> int:
    """The longest wait of a rule's event for others that can come before it, from all levels below."""
    return max((_wait_us(lower) + _late_us(lower) for lower in rule.reads), default=0)


def _late_us(rule: Rule) -> int:
    """The greatest delay, in microseconds, with which matches of a lower rule go out."""
    return delay_us(rule) or 0


def _shown(time_us: int) -> str | None:
    return canonical_duration(time_us) if time_us else None
