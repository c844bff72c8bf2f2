"""Expressions over one table of awkward values, shared by the tests of the core and of Spark."""

from __future__ import annotations

import random
from decimal import Decimal

import pyarrow as pa

from spark_pace.core.expr import ARROW_TYPES, Aggregate, Expr, array_element
from spark_pace.core.plan.rule import EventSchema, Field
from spark_pace.rules.document import Place, Report, Scalar
from spark_pace.rules.expressions.compile import compile_value
from spark_pace.rules.expressions.scopes import event_scope

SCHEMA = EventSchema(
    fields=(
        Field("t", "TIMESTAMP"),
        Field("u", "TIMESTAMP"),
        Field("d", "DATE"),
        Field("i", "BIGINT"),
        Field("j", "BIGINT"),
        Field("x", "DOUBLE"),
        Field("y", "DOUBLE"),
        Field("s", "STRING"),
        Field("z", "STRING"),
        Field("p", "BOOLEAN"),
        Field("q", "BOOLEAN"),
        Field("odd `name`", "BIGINT"),
        Field("m", "DECIMAL(10,2)"),
        Field("w", "DECIMAL(24,6)"),
        Field("li", "ARRAY<BIGINT>"),
        Field("lx", "ARRAY<DOUBLE>"),
        Field("ls", "ARRAY<STRING>"),
        Field("lm", "ARRAY<DECIMAL(10,2)>"),
        Field("ld", "ARRAY<DATE>"),
    ),
    event_time="t",
)

LEAST, MOST = -(2**63), 2**63 - 1
NAN, INF = float("nan"), float("inf")
_DAY_US = 86_400_000_000

POOLS: dict[str, list[object]] = {
    "BOOLEAN": [True, False, None],
    "BIGINT": [
        0,
        1,
        -1,
        2,
        3,
        7,
        -7,
        60,
        LEAST,
        LEAST + 1,
        MOST,
        MOST - 1,
        2**53,
        2**53 + 1,
        -(2**53) - 1,
        2**32,
        3_037_000_500,
        None,
    ],
    "DOUBLE": [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        -0.5,
        1.5,
        2.5,
        -2.5,
        0.49999999999999994,
        -0.49999999999999994,
        0.9999999999999999,
        2.0**53,
        2251799813685248.5,
        -2251799813685249.5,
        4503599627370497.5,
        9007199254740991.0,
        60.0,
        -7.25,
        0.1,
        0.3,
        1e300,
        -1e300,
        5e-324,
        1.7e308,
        9.3e18,
        -9.3e18,
        2.0**63,
        -(2.0**63),
        INF,
        -INF,
        NAN,
        None,
    ],
    "STRING": [
        "",
        "a",
        "b",
        "ab",
        "EWR",
        "ewr",
        " EWR ",
        "\tEWR\n",
        "é",
        "É",
        "ß",
        "İ",
        "日本",
        "🙂x",
        "\uffff",
        "\U00010000",
        "a%b",
        "a_b",
        "100",
        "naïve",
        "A" * 40,
        None,
    ],
    "TIMESTAMP": [
        0,
        -1,
        1,
        999_999,
        -1_000_000,
        -1_000_001,
        1_356_998_400_000_000,
        1_388_534_399_999_999,
        951_782_400_000_000,
        -2_208_988_800_000_000,
        7_258_118_400_000_000 - 1,
        1_357_000_000_123_456,
        None,
    ],
    "DECIMAL(10,2)": [
        *map(
            Decimal,
            ["0", "1", "-1", "60", "0.50", "-0.05", "99.95", "1.50", "99999999.99", "-99999999.99", "7.25"],
        ),
        None,
    ],
    "DECIMAL(24,6)": [
        *map(Decimal, ["0", "1", "-1", "60", "0.5", "99.95", "0.000001", "1.005", "-123456789012.654321"]),
        None,
    ],
    "DATE": [0, -1, 1, 15_706, 16_070, 11_016, -25_567, 84_005, None],
}


def table(rows: int, seed: int) -> pa.Table:
    """Random rows from the pools, with some ordinary random numbers between them."""
    chance = random.Random(seed)
    columns = {}
    for field in SCHEMA.fields:
        values = [_value(field.type, chance) for _ in range(rows)]
        columns[field.name] = pa.array(values, type=ARROW_TYPES[field.type])
    return pa.table(columns)


def _value(kind: str, chance: random.Random) -> object:
    if (element := array_element(kind)) is not None:
        values = [_value(element, chance) for _ in range(chance.randrange(4))]
        return values if chance.random() < 0.9 else None
    if chance.random() < 0.7:
        return chance.choice(POOLS[kind])
    if kind == "BIGINT":
        return chance.randrange(LEAST, MOST) if chance.random() < 0.3 else chance.randrange(-100, 100)
    if kind == "DOUBLE":
        return chance.uniform(-1e3, 1e3)
    if kind == "STRING":
        return "".join(chance.choice("abEWR é%_ß🙂\\'\"\n") for _ in range(chance.randrange(6)))
    if kind == "TIMESTAMP":
        return chance.randrange(-25_567 * _DAY_US, 84_005 * _DAY_US)
    return chance.choice(POOLS[kind])


class TableColumns:
    """The columns of a table as `spark_pace.core.expr.evaluation` wants them."""

    def __init__(self, events: pa.Table) -> None:
        self.rows = events.num_rows
        self._events = events.combine_chunks()

    def column(self, component: str | None, attribute: str) -> pa.Array:
        assert component is None
        return self._events.column(attribute).combine_chunks()

    def aggregate(self, one: Aggregate) -> pa.Array:
        raise AssertionError("no aggregate is about one event")


def compiled(text: str) -> Expr:
    """The expression, which must be right."""
    report = Report()
    expr = compile_value(Scalar(Place("test"), text, text, None), event_scope(SCHEMA), report)
    assert report.clean, report.problems
    assert expr is not None
    return expr
