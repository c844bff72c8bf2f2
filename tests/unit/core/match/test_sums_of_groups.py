"""Every way in which numbers are added up gives the exact sum, null where it does not fit, and one mean."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Context, Decimal
from fractions import Fraction
from functools import reduce
from operator import add
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from spark_pace import replay
from spark_pace.core.expr import Aggregate, Column
from spark_pace.core.match.compiled import operations as do
from spark_pace.core.match.compiled.between import begun, ended, grown, nearest_double
from spark_pace.core.match.row_patterns.result import summary_of
from spark_pace.core.match.search.groups import aggregated
from spark_pace.core.match.search.programs import as_programs, numbers_of
from spark_pace.core.plan.row_pattern import Summary
from spark_pace.core.summaries.sums import sums_of, sums_of_stored
from tests.support.edge_numbers import edge_numbers
from tests.support.loaded_rules import CONTEXTS

NANOSECONDS = [1_700_000_000_000_000_000 + step for step in range(6)]
Groups = list[list[int | None]]


def groups_of(most: int, seed: int) -> Groups:
    """Groups of up to nine numbers, among them the epochs of six events in nanoseconds, and empty ones."""
    chance = Random(seed)
    numbers: list[int | None] = [*edge_numbers(most, chance), None]
    near: list[int | None] = [most, -most, most - 1, 1, -1, None]
    random = [chance.choices(chance.choice((numbers, near)), k=chance.randrange(10)) for _ in range(150)]
    return [[min(one, most) for one in NANOSECONDS], [most, 1], [-most, -most], [], [None], *random]


def wanted(groups: Groups, function: str, most: int) -> list[Any]:
    found: list[Any] = []
    for group in groups:
        known = [one for one in group if one is not None]
        total = sum(known)
        if not known:
            found.append(None)
        elif function == "avg":
            found.append(float(total) / len(known))
        else:
            found.append(total if -most - 1 <= total <= most else None)
    return found


def by_kernel(function: str, groups: Sequence[Sequence[Any]], kind: pa.DataType) -> list[Any]:
    values, null = numbers_of(column_of(groups, kind))
    ints, nulls = np.array([values, np.zeros(len(values), np.int64)]), np.array([null, null])
    code = (do.SUM if function == "sum" else do.AVG) + do.OF_DOUBLES * (kind == pa.float64())
    programs, row, found = as_programs([], ints, nulls, 1, [(0, code, 0, 1)]), 0, list[Any]()
    for group in groups:
        begun(programs, 0, 0)
        for _ in group:
            with np.errstate(over="ignore"):  # machine code says nothing, either
                grown(programs, 0, 0, row)
            row += 1
        ended(programs, 0, 0)
        held = programs.ints if code == do.SUM else programs.doubles
        found.append(None if programs.nulls[1, 0] else held[1, 0].item())
    return found


def column_of(groups: Sequence[Sequence[Any]], kind: pa.DataType) -> pa.Array:
    return pa.array([one for group in groups for one in group], kind)


@pytest.mark.parametrize("function", ["sum", "avg"])
def test_bigints_are_added_up_exactly_by_columns_and_one_by_one(function: Any) -> None:
    groups = groups_of(2**63 - 1, 1)
    groups[3:3] = [[-(2**63)], [-(2**63), -1, 1]]
    should = wanted(groups, function, 2**63 - 1)
    kind = "BIGINT" if function == "sum" else "DOUBLE"
    owner = np.repeat(np.arange(len(groups)), list(map(len, groups)))
    one = Aggregate(function, "a", "x", kind)
    assert aggregated(one, column_of(groups, pa.int64()), owner, len(groups)).to_pylist() == should
    known = [[number for number in group if number is not None] for group in groups]
    end = np.cumsum(list(map(len, known)))
    summary = Summary(function, None, False, Column(None, "x", "BIGINT"), kind)
    values = pa.array([number for group in known for number in group], pa.int64())
    assert summary_of(summary, values, end - list(map(len, known)), end).to_pylist() == should
    assert by_kernel(function, groups, pa.int64()) == should


@pytest.mark.parametrize("function", ["sum", "avg"])
def test_doubles_of_groups_are_added_one_after_the_other(function: Any) -> None:
    chance = Random(6)
    values = [0.1, 0.7, 1e16, -1e16, 1e308, 1e308, -0.0, float("inf"), None]
    groups = [chance.choices(values, k=chance.randrange(9)) for _ in range(200)]
    known = [[one for one in group if one is not None] for group in groups]
    totals = [reduce(add, group, 0.0) / (len(group) if function == "avg" else 1) for group in known if group]
    owner = np.repeat(np.arange(len(groups)), list(map(len, groups)))
    found = aggregated(Aggregate(function, "a", "x", "DOUBLE"), column_of(groups, pa.float64()), owner, 200)
    assert found.drop_null().to_pylist() == totals
    assert found.to_pylist() == by_kernel(function, groups, pa.float64())


@pytest.mark.parametrize(("precision", "scale"), [(38, 10), (38, 38), (30, 6), (28, 0), (18, 4), (10, 2)])
def test_decimals_are_added_up_exactly_and_null_above_38_digits(precision: int, scale: int) -> None:
    groups, digits = groups_of(10**precision - 1, 2), min(precision + 10, 38)
    should = wanted(groups, "sum", 10**digits - 1)
    should = [None if one is None or one == -(10**digits) else decimal(one, scale) for one in should]
    values = [[None if one is None else decimal(one, scale) for one in group] for group in groups]
    column = pa.array([one for group in values for one in group], pa.decimal128(precision, scale))
    kind = f"DECIMAL({digits},{scale})"
    owner = np.repeat(np.arange(len(groups)), list(map(len, groups)))
    found = aggregated(Aggregate("sum", "a", "x", kind), column, owner, len(groups))
    assert (found.type, found.to_pylist()) == (pa.decimal128(digits, scale), should)
    assert (should[1] is None) == (precision == 38)


def decimal(units: int, scale: int) -> Decimal:
    return Decimal(units).scaleb(-scale, Context(prec=100))


def test_what_panes_keep_of_sums_gives_the_same() -> None:
    groups = groups_of(2**63 - 1, 3)
    sizes = np.array(list(map(len, groups)))
    end, count = np.cumsum(sizes), np.array([sum(one is not None for one in group) for group in groups])
    panes = sums_of(column_of(groups, pa.int64())).over(end - sizes, end).stored()
    rows = np.arange(len(groups))
    kept = sums_of_stored(panes, rows, rows + 1)
    assert kept.totals(pa.int64(), count).to_pylist() == wanted(groups, "sum", 2**63 - 1)
    assert kept.means(count).to_pylist() == wanted(groups, "avg", 2**63 - 1)


def test_a_kernel_rounds_a_sum_once() -> None:
    chance = Random(4)
    for high in edge_numbers(2**62 - 1, chance, 60):
        for low in (0, 1, 2**31, 2**32 - 1, 2**40 + 1, chance.randrange(2**50)):
            assert nearest_double(low, high - (low >> 32)) == float(Fraction(low % 2**32 + high * 2**32))


@pytest.mark.parametrize("context", CONTEXTS, ids=str)
def test_a_condition_may_read_a_sum_of_doubles_in_every_context(context: object) -> None:
    rules = f"""
    events: {{schema: "time TIMESTAMP, type STRING, x DOUBLE", event_time: time}}
    rules:
      - name: r
        pattern: {{sequence: [{{name: a, when: type = 'a', times: 2+}}, c: type = 'c']}}
        where: sum(a.x) > 1 and coalesce(sum(a.x) < 9, false)
        within: 1 h
        context: {context}
    """
    events = [{"time": f"2024-01-01T00:00:0{at}Z", "type": one, "x": 1.0} for at, one in enumerate("aac")]
    assert replay(rules, events).matches["rule"].to_pylist() == ["r"]
