"""What a rule over rules reads, at which level it stands, and how long its events wait at most."""

from __future__ import annotations

from collections.abc import Sequence

from spark_pace.core.expr import Literal
from spark_pace.core.expr.canonical import canonical_duration, canonical_text
from spark_pace.core.match.delay import delay_us
from spark_pace.core.plan.lower_rules import EVENTS, levels_of, name_in_from
from spark_pace.core.plan.rule import Rule
from spark_pace.rules.explaining.facts import LevelFacts, LowerFacts


def level_facts(rule: Rule) -> LevelFacts | None:
    """What a rule over rules reads; None where a rule reads the events of the input."""
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
    """How long an event of a rule waits at most for those that can come before it, at all levels below."""
    return max((_wait_us(lower) + _late_us(lower) for lower in rule.reads), default=0)


def _late_us(rule: Rule) -> int:
    """How far behind their time its matches can go out: of a rule that is read this is known."""
    return delay_us(rule) or 0


def _shown(time_us: int) -> str | None:
    return canonical_duration(time_us) if time_us else None
