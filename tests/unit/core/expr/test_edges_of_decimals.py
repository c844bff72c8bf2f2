"""DECIMALs near powers of 2 and 10, and at the ends of their types, give what Python's whole numbers give."""

from __future__ import annotations

from decimal import Context, Decimal
from fractions import Fraction
from functools import cache
from itertools import product
from random import Random

import pyarrow as pa
import pytest

from spark_pace.core.expr import ARROW_TYPES, Call, Column, Expr, decimal_digits, evaluate
from spark_pace.core.expr.decimals import to_decimal
from spark_pace.rules.expressions.types import computed_decimal, rounded
from tests.oracle.expressions import in_range
from tests.support.edge_numbers import edge_numbers
from tests.support.expression_cases import TableColumns

KINDS = [(38, 0), (38, 6), (38, 19), (38, 38), (28, 28), (20, 0), (19, 10), (18, 4), (10, 2), (3, 3), (1, 0)]
ROWS = 300
_WIDE = Context(prec=200)

Numbers = list[int | None]


@cache
def units_of(most: int, seed: int) -> Numbers:
    chance = Random(seed)
    numbers = edge_numbers(most, chance)
    return [None, *(chance.choice(numbers) for _ in range(ROWS - 1))]


def decimals_of(units: Numbers, digits: tuple[int, int]) -> pa.Array:
    values = [None if one is None else Decimal(one).scaleb(-digits[1], _WIDE) for one in units]
    return pa.array(values, pa.decimal128(*digits))


@cache
def column(digits: tuple[int, int], seed: int) -> pa.Array:
    return decimals_of(units_of(10 ** digits[0] - 1, seed), digits)


def nearest(number: int, divisor: int) -> int:
    """The quotient rounded half away from zero."""
    whole, rest = divmod(abs(number), abs(divisor))
    whole += 2 * rest >= abs(divisor)
    return whole if (number < 0) == (divisor < 0) else -whole


def fitted(number: int, scale: int, digits: tuple[int, int]) -> int | None:
    """A number with `scale` digits behind the point in units of another type, if it fits there."""
    units = nearest(number * 10 ** digits[1], 10**scale)
    return units if abs(units) < 10 ** digits[0] else None


def expected(
    name: str, left: int, right: int, scales: tuple[int, int], digits: tuple[int, int]
) -> int | None:
    scale = max(scales)
    one, other = (units * 10 ** (scale - its) for units, its in zip((left, right), scales, strict=True))
    if name in "+-":
        return fitted(one + other if name == "+" else one - other, scale, digits)
    if name == "*":
        return fitted(left * right, sum(scales), digits)
    if right == 0:
        return None
    if name == "%":
        return fitted((1 if one > 0 else -1) * (abs(one) % abs(other)), scale, digits)
    units = nearest(one * 10 ** digits[1], other)
    return units if abs(units) < 10 ** digits[0] else None


def units_in(column: pa.Array) -> Numbers:
    """The units of the values, by their texts, which Arrow writes digit by digit."""
    texts = column.view(pa.decimal128(column.type.precision, 0)).cast(pa.string()).to_pylist()
    return [None if text is None else int(text) for text in texts]


def type_name(digits: tuple[int, int]) -> str:
    return f"DECIMAL({digits[0]},{digits[1]})"


@pytest.mark.parametrize("name", ["+", "-", "*", "/", "%"])
def test_each_operation_on_two_types_is_exact(name: str) -> None:
    wrong, compared = [], 0
    for left, right in product(KINDS, KINDS):
        call = computed_decimal(
            name, [Column(None, "a", type_name(left)), Column(None, "b", type_name(right))]
        )
        if not isinstance(call, Call):
            continue  # it would need more digits than there are
        compared += 1
        units = units_of(10 ** left[0] - 1, 1), units_of(10 ** right[0] - 1, 2)
        found = evaluate(call, TableColumns(pa.table({"a": column(left, 1), "b": column(right, 2)})))
        digits = decimal_digits(call.type)
        assert digits is not None
        assert found.type == ARROW_TYPES[call.type]
        for one, other, got in zip(*units, units_in(found), strict=True):
            known = None if one is None or other is None else (one, other)
            should = known and expected(name, *known, (left[1], right[1]), digits)
            if got != should:
                wrong.append(f"{left} {one} {name} {right} {other}: {got}, not {should}")
    assert not wrong, f"{len(wrong)}, such as {wrong[0]}"
    assert compared > 100


def test_a_bigint_beside_a_decimal_is_exact() -> None:
    whole = [*units_of(2**63 - 1, 3)[1:], -(2**63)]
    for name, right in product("+-*/%", KINDS):
        call = computed_decimal(name, [Column(None, "a", "BIGINT"), Column(None, "b", type_name(right))])
        if not isinstance(call, Call):
            continue
        units = units_of(10 ** right[0] - 1, 4)
        table = pa.table({"a": pa.array(whole, pa.int64()), "b": column(right, 4)})
        found = evaluate(call, TableColumns(table))
        digits = decimal_digits(call.type)
        assert digits is not None
        should = [
            None if one is None or other is None else expected(name, one, other, (0, right[1]), digits)
            for one, other in zip(whole, units, strict=True)
        ]
        assert units_in(found) == should, (name, right)


def test_casts_and_roundings_are_exact() -> None:
    for source in KINDS:
        units = units_of(10 ** source[0] - 1, 5)
        table = TableColumns(pa.table({"a": column(source, 5)}))
        given = Column(None, "a", type_name(source))
        for target in KINDS:
            found = evaluate(Call("cast", (given,), type_name(target)), table)
            assert units_in(found) == [
                None if one is None else fitted(one, source[1], target) for one in units
            ], (source, target)
        for places in (0, 2, source[1]):
            call = rounded(given, places)
            digits = decimal_digits(call.type)
            assert digits is not None
            found = evaluate(call, table)
            assert units_in(found) == [
                None if one is None else fitted(one, source[1], digits) for one in units
            ], (source, places)


def test_casts_to_and_from_other_types_are_exact() -> None:
    whole = [*units_of(2**63 - 1, 5)[1:], -(2**63)]
    for digits in KINDS:
        found = to_decimal(pa.array(whole, pa.int64()), pa.decimal128(*digits))
        assert units_in(found) == [None if one is None else fitted(one, 0, digits) for one in whole], digits
        units = units_of(10 ** digits[0] - 1, 6)
        table = TableColumns(pa.table({"a": column(digits, 6)}))
        given, unit = Column(None, "a", type_name(digits)), 10 ** digits[1]
        known = [one for one in units if one is not None]
        signs = [1 if one > 0 else -1 for one in known]
        should: dict[str, list[object]] = {
            "BIGINT": [in_range(abs(one) // unit * sign) for one, sign in zip(known, signs, strict=True)],
            "DOUBLE": [float(Fraction(one, unit)) for one in known],
            "STRING": [f"{Decimal(one).scaleb(-digits[1], _WIDE):f}" for one in known],
        }
        for target, values in should.items():
            assert evaluate(Call("cast", (given,), target), table).to_pylist() == [None, *values], digits
        assert units_in(evaluate(Call("abs", (given,), given.type), table)) == [None, *map(abs, known)]
        assert units_in(evaluate(Call("negate", (given,), given.type), table)) == [
            None,
            *(-one for one in known),
        ]


def test_an_average_is_the_exact_sum_divided() -> None:
    counts: Numbers = [None if one is None else 1 + abs(one) for one in units_of(10**9, 8)]
    for precision, scale in [(38, 2), (38, 38), (28, 6), (20, 4), (12, 2)]:
        units = units_of(10**precision - 1, 1)
        digits = (min(precision + 4, 38), min(scale + 4, 38))
        sides: tuple[Expr, Expr] = (
            Column(None, "a", type_name((precision, scale))),
            Column(None, "n", "DECIMAL(20,0)"),
        )
        table = pa.table({"a": column((precision, scale), 1), "n": decimals_of(counts, (20, 0))})
        found = evaluate(Call("avg", sides, type_name(digits)), TableColumns(table))
        assert units_in(found) == [
            None if one is None or n is None else expected("/", one, n, (scale, 0), digits)
            for one, n in zip(units, counts, strict=True)
        ], (precision, scale)


def test_rows_without_values_and_slices_are_computed() -> None:
    values = decimals_of([2**64 - 1, None, 2**64, 5], (38, 0))
    given = Column(None, "a", "DECIMAL(38,0)")
    for part in (values.slice(0, 0), values.slice(1, 1), values.slice(1, 3)):
        found = evaluate(Call("/", (given, given), "DECIMAL(38,6)"), TableColumns(pa.table({"a": part})))
        assert found.to_pylist() == [None if one is None else Decimal(1) for one in part.to_pylist()]
