"""Rules over rules that come, go or start anew between two batches, with those that read them."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_pace.core.order import OrderSpec
from spark_pace.core.plan.lower_rules import every_rule, readers_of
from spark_pace.core.plan.plan import Plan, RulePlace, build_plan, dealt_out
from spark_pace.core.plan.rule import Rule
from tests.property.test_levels_at_random import MANY, assert_all_equal, expected_of, rules_input
from tests.support.drive import drive
from tests.support.graph_strategies import graphs
from tests.support.results import from_core
from tests.support.streams import Arrival, Parallelism, arrivals, parallelisms

CHANGES = ("come", "go", "start anew")


def with_readers(name: str, rules: list[Rule]) -> set[str]:
    """The rule, all that read it, and what hands events on to these."""
    names = readers_of({name}, rules)
    hands_on = (one for rule in rules if rule.name in names for one in rule.reads if one.hands_on)
    return names | {one.name for one in hands_on}


def plans_of(
    rules: list[Rule], arrival: Arrival, spread: Parallelism, changing: set[str], change: str
) -> list[Plan]:
    """The plan of each batch, the end of the input among them: the change is behind the first half of all."""
    steps = len(arrival.batches) + 1
    since = steps // 2
    every = dealt_out(rules, spread.slots, spread.buckets)
    staying = {name: place for name, place in every.items() if name not in changing}
    anew = dealt_out(rules, spread.slots, spread.buckets, staying, since)
    before, after = {"come": (staying, anew), "go": (every, staying), "start anew": (every, anew)}[change]

    def plan(places: dict[str, RulePlace]) -> Plan:
        order = OrderSpec(arrival.delay_us)
        return build_plan(
            rules, order=order, slots=spread.slots, buckets=spread.buckets, lanes=spread.lanes, places=places
        )

    return [plan(before)] * since + [plan(after)] * (steps - since)


@settings(max_examples=settings().max_examples // 2)
@given(graphs(), arrivals(of=MANY), parallelisms(), st.sampled_from(CHANGES), st.data())
def test_a_rule_that_comes_goes_or_starts_anew_leaves_those_alone_that_do_not_read_it(
    rules: list[Rule], arrival: Arrival, spread: Parallelism, change: str, data: st.DataObject
) -> None:
    changing = with_readers(data.draw(st.sampled_from(rules)).name, rules)
    tables = arrival.tables(rules_input(rules))
    found = []
    for used in (spread, Parallelism(1, spread.buckets, 1)):
        steps = drive(plans_of(rules, arrival, used, changing, change), tables, finish=True)
        found.append(pa.concat_tables([step.matches for step in steps], promote_options="default"))
    staying = [rule for rule in rules if rule.name not in changing]
    assert_all_equal(staying, expected_of(rules, arrival), found[0])
    for rule in every_rule(rules):
        if rule.name in changing and not rule.hands_on:
            rows = [from_core(rule, matches) for matches in found]
            assert rows[0] == rows[1]
            numbers = found[0].filter(pa.compute.equal(found[0]["rule"], rule.name))["out_seq"].to_pylist()
            assert sorted(numbers) == list(range(len(numbers)))
