"""Predicates of many rules are looked up by their constants, and hold where each of them alone holds."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from spark_pace.core.expr import EventColumns, evaluate_mask
from spark_pace.core.intake.pack import as_bools, bitmap_of, bitmap_of_rows, held, pack, side_by_side, wanted
from spark_pace.core.order import OrderSpec
from spark_pace.core.plan.plan import Plan, bits_column, build_plan
from spark_pace.core.tables import HOME, OFFSET, SOURCE, TIME, has_bit, numbers
from spark_pace.rules import load_rules

EVENTS = (
    'events: {schema: "at TIMESTAMP, id BIGINT, name STRING, day DATE, size DOUBLE, price DECIMAL(6,2)", '
    "event_time: at}"
)
CONDITIONS = (
    "id = {n} and name = 'n1'", "{n} = id and size > 3.0 and size < 20", "size = {n}.0",
    "name = 'n{n}' or id = 3",
    "id = {n} and id = 4", "size = id and id = {n} and name <> 'n1'", "id = {n} and id is not null",
    "name = 'n{n}' and day > date '2024-01-02'", "price = {n}.50", "id = {n} and id = null",
    "day = date '{day}'", "at = timestamp '{day} 00:00:00' and size is not null", "size > {n}",
)  # fmt: skip
CONSTANTS = 35  # of each condition: so many are looked up
VALUES = 40  # that an attribute of events has: some that no rule seeks
FIRST = date(2024, 1, 1)
LOOKED_UP = {"id", "name", "day", "at"}


def day(number: int) -> date:
    return FIRST + timedelta(days=number)


@pytest.fixture(scope="module")
def plan() -> Plan:
    """Rules that differ in their constants; some have a filter."""
    texts = []
    for number in range(CONSTANTS * len(CONDITIONS)):
        constant, kind = divmod(number, len(CONDITIONS))
        condition = CONDITIONS[kind].format(n=1 + constant, day=day(constant))
        pattern = f'pattern: {{sequence: [a: "{condition}", b: "name = \'n{number}\'"]}}, within: 1 s'
        rest = "context: 'next, selected'" + ", filter: size >= 4.0" * (number % 2)
        texts.append(f"  - {{name: r{number}, {pattern}, {rest}}}\n")
    return build_plan(load_rules(f"{EVENTS}\nrules:\n{''.join(texts)}"), order=OrderSpec(), slots=2)


def events(count: int, most: int = VALUES) -> pa.Table:
    """Random events; every attribute is null here and there. Of the ids, `most` are in some event."""
    random = np.random.default_rng(count)

    def column(values: list[object], kind: pa.DataType) -> pa.ChunkedArray:
        taken = [None if n == len(values) else values[n] for n in random.integers(0, len(values) + 1, count)]
        return pa.chunked_array([taken[: count // 2], taken[count // 2 :]], kind)

    values = range(VALUES)
    midnight = datetime(2024, 1, 1)
    return pa.table({
        TIME: pa.array(np.arange(count)),
        SOURCE: pa.array(["s"] * count, pa.string()).dictionary_encode(),
        OFFSET: pa.array(np.arange(count)),
        "at": column([midnight + timedelta(days=n) for n in values], pa.timestamp("us")),
        "id": column(list(range(most)), pa.int64()),
        "name": column([*(f"n{n}" for n in values), ""], pa.string()),
        "day": column([day(n) for n in values], pa.date32()),
        "size": column([-0.0, float("nan"), *map(float, values)], pa.float64()),
        "price": column([Decimal(n) + Decimal("0.50") for n in values], pa.decimal128(6, 2)),
    })  # fmt: skip


def masks_of(plan: Plan, table: pa.Table) -> tuple[list[npt.NDArray[np.bool_]], list[npt.NDArray[np.bool_]]]:
    """Where each predicate holds, and which events each rule's stream has: one by one."""
    masks = [evaluate_mask(predicate, EventColumns(table)) for predicate in plan.predicates]
    members = []
    for planned in plan.rules:
        member = np.logical_or.reduce([masks[predicate] for _, predicate in planned.bits])
        members.append(member if planned.filter_bit is None else member & masks[planned.filter_bit])
    return masks, members


def test_constants_of_types_with_one_representation_are_looked_up(plan: Plan) -> None:
    lookups = plan.lookups
    sought = {one.number: one for lookup in lookups.columns for one in lookup.sought}
    assert {lookup.column.attribute for lookup in lookups.columns} == LOOKED_UP
    assert any(one.shared for one in sought.values()) and any(one.rest for one in sought.values())
    assert sorted([*sought, *lookups.others]) == list(range(len(plan.predicates)))


@pytest.mark.parametrize("count", [0, 1, 63, 64, 1_000, 9_000])
@pytest.mark.parametrize("most", [2, VALUES, 4_000])
def test_a_predicate_holds_where_it_holds_alone(plan: Plan, count: int, most: int) -> None:
    """Those that are looked up too, whatever else they say, for few events and for most."""
    table = events(count, most)
    masks, members = masks_of(plan, table)
    for mask, bitmap in zip(masks, held(plan, table), strict=True):
        assert (as_bools(bitmap, count) == mask).all()
    assert (wanted(plan, table) == np.logical_or.reduce(members)).all()


@pytest.mark.parametrize(("count", "most"), [(1, VALUES), (500, 2), (9_000, VALUES), (9_000, 4_000)])
def test_every_slot_gets_the_events_of_its_rules_with_all_bits(plan: Plan, count: int, most: int) -> None:
    table = events(count, most)
    masks, members = masks_of(plan, table)
    homes = np.zeros(count, np.int64)
    frames = dict(pack(plan, table.combine_chunks()))
    for slot, units in enumerate(plan.units):
        rows = np.flatnonzero(np.logical_or.reduce([members[unit.rule_index] for unit in units]))
        assert (slot in frames) == bool(len(rows))
        if slot in frames:
            frame = frames[slot]
            assert numbers(frame, OFFSET).tolist() == rows.tolist()
            homes[rows] += numbers(frame, HOME)
            for number, mask in enumerate([*masks, *members]):
                name, bit = bits_column(number)
                assert (has_bit(numbers(frame, name), bit) == mask[rows]).all()
    assert (homes == np.logical_or.reduce(members)).all()


@pytest.mark.parametrize("count", [1, 64, 65, 5_000])
@pytest.mark.parametrize("share", [0.0, 0.001, 0.05, 0.5, 1.0])
def test_a_bitmap_names_the_events_that_it_was_made_of(count: int, share: float) -> None:
    holds = np.random.default_rng(count).random(count) < share
    rows = np.flatnonzero(holds)
    for bitmap in (bitmap_of(holds), bitmap_of_rows(rows, count)):
        assert (as_bools(bitmap, count) == holds).all()


@pytest.mark.parametrize("count", [1, 64, 65, 5_000])
@pytest.mark.parametrize("bitmaps", [1, 7, 8])
def test_events_get_a_bit_of_each_bitmap_in_their_order(count: int, bitmaps: int) -> None:
    holds = np.random.default_rng(count).random((bitmaps, count)) < 0.5
    bits = sum(one.astype(np.uint8) << np.uint8(place) for place, one in enumerate(holds))
    assert (side_by_side([bitmap_of(one) for one in holds], count) == bits).all()
