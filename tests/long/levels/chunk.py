"""Graphs of rules, each with a stream, its ways, and how it is spread: the same seed, the same graphs."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

import pyarrow as pa
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from spark_pace.core.local_run import run
from spark_pace.core.plan.rule import Rule
from tests.long.differential.choices import drawn, taken_with
from tests.property.test_invariance import plan_of
from tests.property.test_levels_at_random import MANY, assert_all_equal, expected_of, rules_input
from tests.support.drive import drive
from tests.support.graph_strategies import graphs
from tests.support.streams import Arrival, Parallelism, arrivals, parallelisms, streams

GRAPHS = 50


@dataclass
class Tally:
    """What graphs came to: how many there were, in how many a rule over rules had a match, what differed."""

    graphs: int = 0
    matched: int = 0
    differing: list[str] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        """Count the others' too."""
        self.graphs += other.graphs
        self.matched += other.matched
        self.differing += other.differing

    def __str__(self) -> str:
        """For people."""
        share = 100 * self.matched / max(1, self.graphs)
        return f"{self.graphs:,} graphs, {share:.0f} % with a match above, {len(self.differing)} differ"


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
        expected = expected_of(rules, arrival)
        tally.graphs += 1
        tally.matched += any(expected[rule.name] for rule in rules if rule.reads)
        try:
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
