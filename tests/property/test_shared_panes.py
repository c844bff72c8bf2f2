"""Rules that share panes, and that come and go, each give the oracle's rows, as if each were alone."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from spark_pace.core.order import OrderSpec
from spark_pace.core.plan.plan import build_plan
from spark_pace.core.plan.rule import GridSpan, Rule
from spark_pace.core.split.task import shares_of
from tests.property.test_changed_rules import Stay, plans_of
from tests.property.test_panes import with_sums
from tests.support.checks import assert_equal, expected_rows
from tests.support.drawn_rules import rules
from tests.support.draws import built_once, chosen, composite
from tests.support.drive import drive
from tests.support.loaded_rules import aggregating
from tests.support.streams import SECOND, Arrival, Parallelism, arrivals, parallelisms

GRIDS = [GridSpan(every * SECOND, size * SECOND) for every, size in [(1, 2), (1, 5), (2, 3), (3, 2), (4, 1)]]
HAVING = [
    None,
    *(aggregating("n: count(*)", where).having for where in ("count(*) >= 2", "avg(z) < stddev(z)")),
]
MORE = [(), (), aggregating("computed_sum: sum(x + y), computed_last: last(x + y)").emit]


@built_once
def rules_over(grid: GridSpan) -> st.SearchStrategy[Rule]:
    span = f"{{every: {grid.every_us} us, size: {grid.size_us} us}}"
    return rules("aggregates | aggregates, forgotten keys", span=span)


TWO_TO_FOUR_GRIDS = st.lists(st.sampled_from(GRIDS), min_size=2, max_size=4)


@composite
def sharing_rules(draw: st.DrawFn) -> list[Rule]:
    """Rules of one stream over grids of panes of a second, with some of the same functions."""
    grids = draw(TWO_TO_FOUR_GRIDS)
    longest = max(grids, key=lambda grid: grid.size_us)
    rule = with_sums(draw(rules_over(longest)))
    if rule.forget_key_after_us is not None:  # no key may be forgotten in a window
        rule = replace(rule, forget_key_after_us=max(rule.forget_key_after_us, longest.size_us))
    return [
        replace(
            rule,
            name=f"rule{place}",
            span=grid,
            having=chosen(draw, HAVING),
            emit=(*rule.emit[: draw(st.integers(1, len(rule.emit)))], *chosen(draw, MORE)),
        )
        for place, grid in enumerate(grids)
    ]


@composite
def changes(draw: st.DrawFn) -> tuple[Arrival, list[Stay]]:
    arrival = draw(arrivals())
    steps = len(arrival.batches) + 1
    stays = []
    for rule in draw(sharing_rules()):
        first = chosen(draw, [0, 0, 0, *range(steps)])
        stays.append(Stay(rule, first, chosen(draw, [steps, steps, *range(first + 1, steps)])))
    return arrival, stays


@given(sharing_rules())
def test_rules_of_one_stream_share_panes_whatever_functions_they_have(sharing: list[Rule]) -> None:
    plan = build_plan(sharing, order=OrderSpec(), slots=3, buckets=2)
    for units in plan.units:
        for share in shares_of(plan, units):
            assert [planned.rule for planned in share.rules] == sharing
    fewer = replace(sharing[1], emit=sharing[1].emit[:1], having=None)
    together = build_plan([sharing[0], replace(fewer, name="fewer")], order=OrderSpec())
    assert [len(share.rules) for share in shares_of(together, together.units[0])] == [2]
    sketch = aggregating("about: approx_count_distinct(k)").emit
    apart = [
        sharing[0],
        replace(sharing[1], emit=(*sharing[1].emit, *sketch)),
        replace(sharing[1], merge="time"),
    ]
    alone = build_plan(
        [replace(rule, name=str(place)) for place, rule in enumerate(apart)], order=OrderSpec()
    )
    assert [len(share.rules) for share in shares_of(alone, alone.units[0])] == [1, 1, 1]


@given(changes(), parallelisms())
def test_rules_that_share_panes_give_the_oracles_rows_though_others_come_and_go(
    drawn: tuple[Arrival, list[Stay]], spread: Parallelism
) -> None:
    arrival, stays = drawn
    tables = arrival.tables(stays[0].rule)
    steps = drive(plans_of(arrival, stays, spread), tables, finish=True, parts=2)
    matches = pa.concat_tables([step.matches for step in steps], promote_options="default")
    for stay in stays:
        if stay.end > len(tables):
            read = [event for batch in arrival.batches[stay.first :] for event in batch]
            assert_equal(stay.rule, expected_rows(stay.rule, read), matches)
