"""Rules over rules: whatever reads what, and however the stream is cut, the rows are the oracle's."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given, note
from hypothesis import strategies as st

from spark_pace.core.local_run import run
from spark_pace.core.plan.lower_rules import name_in_from
from spark_pace.core.plan.rule import Rule
from tests.property.test_invariance import plan_of
from tests.support.checks import told
from tests.support.drive import drive
from tests.support.graph_strategies import evaluated, graphs
from tests.support.results import Row, brief, difference, from_core, from_oracle
from tests.support.streams import Arrival, Parallelism, arrivals, dense_streams, parallelisms, streams

MANY = st.integers(13, 24).flatmap(dense_streams)


def expected_of(rules: list[Rule], arrival: Arrival) -> dict[str, list[Row]]:
    events = arrival.on_time()[0]
    found = evaluated(rules, events)
    note("stream: " + ", ".join(told(event) for event in sorted(events, key=lambda event: event.time)))
    expected = {rule.name: from_oracle(rule, found[rule.name]) for rule in rules}
    for rule in rules:
        reads = ", ".join(map(name_in_from, rule.reads)) or "events"
        note(f"{rule.name} from {reads}:\n" + "\n".join(map(brief, expected[rule.name])))
    return expected


def assert_all_equal(rules: list[Rule], expected: dict[str, list[Row]], matches: pa.Table) -> None:
    apart = {rule.name: difference(expected[rule.name], from_core(rule, matches)) for rule in rules}
    assert not any(apart.values()), "\n".join(f"\n{name}: {found}" for name, found in apart.items() if found)


@given(graphs(), arrivals(of=streams() | MANY), parallelisms())
def test_rules_over_rules_give_the_oracles_matches_in_any_batches(
    rules: list[Rule], arrival: Arrival, spread: Parallelism
) -> None:
    """Also with their state saved and restored between all batches."""
    plan, tables = plan_of(rules, arrival, spread), arrival.tables(rules_input(rules))
    expected = expected_of(rules, arrival)
    assert_all_equal(rules, expected, run(plan, [table for table in tables if table.num_rows]).matches)
    steps = drive(plan, tables, finish=True)
    assert_all_equal(rules, expected, pa.concat_tables([step.matches for step in steps]))


def rules_input(rules: list[Rule]) -> Rule:
    """A rule that reads the events of the input."""
    return next(rule for rule in rules if not rule.reads)
