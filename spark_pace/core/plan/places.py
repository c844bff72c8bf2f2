"""The places of rules: each rule's buckets of partition keys are dealt out to slots."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from spark_pace.core.plan.lower_rules import every_rule
from spark_pace.core.plan.panes import sharing
from spark_pace.core.plan.rule import Rule


@dataclass(frozen=True)
class RulePlace:
    """The slots that run a rule.

    Attributes:
        slots: the slot of each of its buckets of partition keys; empty if the rule reads matches, because the
            merger runs such rules.
        since: the first batch whose events belong to the rule's stream.
    """

    slots: tuple[int, ...]
    since: int = 0


def dealt_out(
    rules: Sequence[Rule],
    slots: int,
    buckets: int,
    kept: Mapping[str, RulePlace] | None = None,
    since: int = 0,
) -> dict[str, RulePlace]:
    """Deal all rules, lower rules included, out to slots; rules that share panes get the same place.

    Args:
        rules: the rules.
        slots: the number of slots.
        buckets: the number of buckets of each rule with `partition_by`.
        kept: the places of rules that stay where they are.
        since: the first batch whose events belong to the streams of the other rules.
    """
    rules = every_rule(rules)
    places = {rule.name: kept[rule.name] for rule in rules if rule.name in kept} if kept else {}
    load = [0] * slots
    for place in places.values():
        for slot in place.slots:
            load[slot] += 1
    shared: dict[Hashable, RulePlace] = {}
    for rule in rules:
        if rule.name in places:
            continue
        if rule.reads:
            places[rule.name] = RulePlace((), since)
            continue
        stream = sharing(rule)
        if stream is not None and stream in shared:
            places[rule.name] = shared[stream]
            continue
        taken = tuple(_least(load) for _ in range(buckets if rule.partition_by else 1))
        places[rule.name] = shared[stream] = RulePlace(taken, since)
    return places


def _least(load: list[int]) -> int:
    """The slot with the fewest units, to which one more goes."""
    slot = load.index(min(load))
    load[slot] += 1
    return slot
