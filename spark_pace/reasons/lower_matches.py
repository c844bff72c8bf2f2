"""Finds the matches of lower rules that the events of a rule over rules are made of, down to the input."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.columns import OFFSET, SOURCE, TIME
from spark_pace.core.expr import ARROW_TYPES
from spark_pace.core.levels import matches_as_events
from spark_pace.core.local_run import LocalRun
from spark_pace.core.plan.lower_rules import every_rule, handing_on
from spark_pace.core.plan.plan import Level, Plan
from spark_pace.core.plan.rule import Rule
from spark_pace.errors import ConfigError
from spark_pace.reasons.answer_parts import LowerMatch, Match
from spark_pace.reasons.rule_stream import match_told

MOST_LOWER = 100  # matches in the answer


@dataclass(frozen=True)
class LowerMatches:
    """The matches of all rules below a rule over rules.

    Attributes:
        level: the rule, and what it reads.
        of_rules: for each rule with matches, the table of them.
    """

    level: Level
    of_rules: Mapping[str, pa.Table]

    @staticmethod
    def of(level: Level, below: Plan, events: pa.Table) -> LowerMatches:
        """Run the rules below over the events of the input."""
        return LowerMatches(level, LocalRun(below).step(events, finish=True).of_rules)

    def events(self) -> pa.Table:
        """The matches of the rules that the rule reads, as its events."""
        found = matches_as_events(self.level, self.of_rules)
        if found is not None:
            return found
        fields = {
            field.name: pa.array([], ARROW_TYPES[field.type]) for field in self.level.plan.schema.fields
        }
        nowhere = pa.array([], pa.string()).dictionary_encode()
        ours = {TIME: pa.array([], pa.int64()), SOURCE: nowhere, OFFSET: pa.array([], pa.int64())}
        return pa.table({**ours, **fields})

    def made_of(self, source: str, offset: int, matches: tuple[Match, ...]) -> tuple[LowerMatch, ...]:
        """The lower matches that make up an event and these matches, upper levels first."""
        waiting = [(source, offset), *_positions(matches)]
        found: dict[tuple[str, int], LowerMatch] = {}
        for name, number in waiting:
            table = self.of_rules.get(name)
            if table is None or (name, number) in found or len(found) == MOST_LOWER:
                continue
            rows = np.flatnonzero(pc.equal(table["out_seq"], number).to_numpy())
            for row in table.take(pa.array(rows)).to_pylist():
                found[name, number] = LowerMatch(name, match_told(row))
                waiting += _positions([found[name, number].match])
        return tuple(found.values())


def _positions(matches: tuple[Match, ...] | list[Match]) -> Iterator[tuple[str, int]]:
    return ((one.event.source, one.event.offset) for match in matches for one in match.events)


def reading_all(rule: Rule) -> Rule:
    """The rule, changed to read all events of the input if it reads some, so that any can be asked about.

    Raises:
        ConfigError: a rule below has a Python operator, or the rule or one below has a fold in Python.
    """
    for lower in every_rule(rule.reads):
        if lower.function is not None:
            what = "operator" if lower.operator is not None else "fold"
            must = f"must stand above rules without a Python {what}, for none is called here"
            raise ConfigError.of(
                "--rule", must, f"{rule.name} above {lower.name}", f"Ask about {lower.name}."
            )
    if rule.reads and rule.function is not None:
        must, got = "must have no Python fold above other rules, for none is called here", f"{rule.name}"
        raise ConfigError.of("--rule", must, got, f"Ask about {rule.reads[0].name}.")
    reads = (handing_on(rule.name, one.schema) if one.hands_on else one for one in rule.reads)
    return replace(rule, reads=tuple(reads))
