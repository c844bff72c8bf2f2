"""Graphs of rules, each with a stream, its ways, and how it is spread: the same seed, the same graphs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from random import Random

import pyarrow as pa
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from spark_pace.core.local_run import run
from spark_pace.core.plan.lower_rules import levels_of
from spark_pace.core.plan.plan import panes_of
from spark_pace.core.plan.rule import Rule
from tests.long.differential.choices import drawn, taken_with
from tests.property.test_invariance import plan_of
from tests.property.test_levels_at_random import MANY, assert_all_equal, expected_of, rules_input
from tests.property.test_upper_frontiers import assert_each_goes_out_with_the_frontier
from tests.support.drive import drive
from tests.support.graph_strategies import graphs
from tests.support.streams import Arrival, Parallelism, adds_up, arrivals, parallelisms, streams

GRAPHS = 50


@dataclass
class Tally:
    """What graphs came to: how many there were, in how many a rule over rules had a match, what differed.

    `forms` says in how many of them there were rules of a form, or one over another.
    """

    graphs: int = 0
    matched: int = 0
    differing: list[str] = field(default_factory=list)
    forms: Counter[str] = field(default_factory=Counter)

    def add(self, other: Tally) -> None:
        """Count the others' too."""
        self.graphs += other.graphs
        self.matched += other.matched
        self.differing += other.differing
        self.forms.update(other.forms)

    def __str__(self) -> str:
        """For people."""
        share = 100 * self.matched / max(1, self.graphs)
        forms = ", ".join(f"{count:,} {form}" for form, count in sorted(self.forms.items()))
        told = f"{self.graphs:,} graphs, {share:.0f} % with a match above, {len(self.differing)} differ"
        return f"{told} ({forms})"


def forms_of(rules: list[Rule]) -> set[str]:
    """Which forms of folds and panes there are in a graph."""
    found = {"three levels"} if max(levels_of(rules).values()) > 1 else set[str]()
    for rule in rules:
        below = {form_of(lower) for lower in rule.reads}
        form = form_of(rule)
        found |= {form, *(f"{form} over {other}" for other in below)} if form != "pattern" else set()
    return found


def form_of(rule: Rule) -> str:
    if rule.fold is not None:
        return "fold"
    return "pane" if panes_of(rule) is not None else "events" if rule.hands_on else "pattern"


def run_chunk(start: int, number: int) -> Tally:
    """The graphs of chunk `number` of the run with the seed `start`."""
    tally = Tally()

    @seed((start << 32) + number)
    @settings(
        max_examples=GRAPHS,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(graphs(), arrivals(of=streams() | MANY), parallelisms(), st.integers(0, 2**32 - 1))
    def compare(rules: list[Rule], arrival: Arrival, spread: Parallelism, chance: int) -> None:
        if adds_up(rules) and chance % 3 == 0:
            arrival = arrival.enlarged(Random(chance))
        expected = expected_of(rules, arrival)
        tally.graphs += 1
        tally.matched += any(expected[rule.name] for rule in rules if rule.reads)
        tally.forms.update(forms_of(rules))
        try:
            if chance % 4 == 1:
                with taken_with(drawn(Random(chance)), chance):
                    assert_each_goes_out_with_the_frontier(rules, arrival, spread)
            else:
                assert_all_equal(rules, expected, _matches(rules, arrival, spread, chance))
        except Exception as error:
            tally.differing.append(f"graph {tally.graphs} of the chunk: {type(error).__name__}: {error}")

    compare()
    return tally


def _matches(rules: list[Rule], arrival: Arrival, spread: Parallelism, chance: int) -> pa.Table:
    plan, tables = plan_of(rules, arrival, spread), arrival.tables(rules_input(rules))
    with taken_with(drawn(Random(chance)), chance):
        if chance % 2:
            return run(plan, [table for table in tables if table.num_rows]).matches
        return pa.concat_tables([step.matches for step in drive(plan, tables, finish=True)])
