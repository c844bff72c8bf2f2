"""Expressions over one table of awkward values, shared by the tests of the core and of Spark."""

from __future__ import annotations

import random
from decimal import Decimal

import pyarrow as pa

from spark_pace.core.expr import ARROW_TYPES, Aggregate, Expr, array_element
from spark_pace.core.plan.rule import EventSchema, Field
from spark_pace.rules.document.document import Scalar
from spark_pace.rules.document.report import Place, Report
from spark_pace.rules.expressions.compile import compile_value
from spark_pace.rules.expressions.scopes import EventScope

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
    expr = compile_value(Scalar(Place("test"), text, text, None), EventScope(SCHEMA), report)
    assert report.clean, report.problems
    assert expr is not None
    return expr


# One line for every operator and function at least; values of every type.
EXPRESSIONS = """
i = j | x = y | s = z | t = u | p = q | d = date '2013-01-01' | i = x
i <> j | x <> y | s <> z | i != 3 | x = 0 | x = -0.0 | x <> 0.0
i < j | x < y | s < z | t < u | i < x | i <= j | x <= y | s <= z | t <= u
i > j | x > y | s > z | i >= j | x >= y | s >= z | t >= u | d < t | d >= date '2000-02-29'
i <=> j | x <=> y | s <=> z | p <=> q | i is distinct from j | s is not distinct from z
i is null | x is not null | p is true | p is not false | null is null
p and q | p or q | not p | p and null | p or null | not (p and q or i > 3)
i between 0 and 7 | i not between j and 60 | x between -1 and y | s between 'a' and 'b'
t between u and timestamp '2013-06-01 12:30:00'
i in (1, 2, 3, 60) | i in (1, null) | i not in (1, 2, 3) | s in ('a', 'EWR', '') | x in (0.0, 1.5, 2.5, 60)
i in (j, 7) | s not in ('a', null)
x in (0.0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13)
i + j | i - j | i * j | i / j | i % j | -i | x + y | x - y | x * y | x / y | x % y | -x | i + x | i / 2
i % 7 | i * 3 - j | i + 1 | -(-i)
-9223372036854775808 | 9223372036854775807 | i - 9223372036854775807 | 1e300 * x | 0.1 + 0.2 | 1 / 3 | -5 % 3
5 % 0 | 1 / 0
abs(i) | abs(x) | ceil(x) | floor(x) | ceil(i) | floor(i) | round(x) | round(i) | sqrt(x) | sqrt(i) | isnan(x)
isnan(i)
greatest(i, j) | greatest(x, y) | greatest(s, z) | greatest(t, u) | greatest(i, x, 3) | greatest(i, null)
greatest(i, j, 5, null)
least(i, j) | least(x, y) | least(s, z) | least(t, u) | least(d, date '2000-01-01')
coalesce(i, j) | coalesce(x, y, 0) | coalesce(s, z, 'none') | coalesce(p, q) | coalesce(null, i, x)
nullif(i, j) | nullif(x, 0) | nullif(s, 'a') | if(p, i, j) | if(i > 0, 'plus', s) | if(p, null, x)
case when p then i when q then j end | case when p then 1 else x end
case i when 1 then 'one' when 2 then 'two' else s end
length(s) | lower(s) | upper(s) | trim(s) | concat(s, z) | concat(s, '-', z, s) | s || z | substring(s, 1, 2)
substring(s, 2) | substring(s, 3, 0)
startswith(s, 'E') | endswith(s, 'R') | contains(s, 'a') | contains(s, '') | s like 'a%' | s like '_'
s regexp 'a' | s not rlike r'^[A-Z]{3}$' | s rlike '' | s rlike r'\\s+(?:E|\\d)' | s rlike 'a.\\\\z'
s like '%b' | s not like 'E_R' | s like '' | s like '%'
s = 'it\\'s' | concat(s, '\\\\') | s like '%(.)[a]%'
year(t) | month(t) | day(t) | dayofweek(t) | hour(t) | minute(t) | second(t) | year(d) | month(d) | day(d)
dayofweek(d)
unix_micros(t) | unix_seconds(t) | unix_micros(t) - unix_micros(u)
(unix_seconds(t) - unix_seconds(u)) / 60 > 30
t - u > interval '5' minutes | t - u <= interval 5 minutes | u - t = interval '1 day 2 hours 30 minutes'
t - u between interval '-1' day and interval '1' week | interval '1' day + interval '2' hours < t - u
t - interval '90' seconds < u | interval '0.5' second + u | u - interval -3 hours | t - u <> null
(t - u) - (u - t) > interval '0' seconds | d - date '2013-01-01' >= interval '3' days
t - d < interval '1' week
t > u + (t - u) - interval '1' microsecond | not t - u < interval '1' millisecond
date_trunc('year', t) | date_trunc('quarter', t) | date_trunc('month', t) | date_trunc('week', t)
date_trunc('day', t) | date_trunc('hour', t) | date_trunc('minute', t) | date_trunc('second', t)
date_trunc('MILLISECOND', t) | date_trunc('hour', d) | date_trunc('month', d) = d
datediff(t, u) | datediff(d, t) | date_diff(t, d) > 3 | quarter(t) | quarter(d) | dayofyear(t) | dayofyear(d)
timestamp_micros(unix_micros(t)) | timestamp_micros(60)
cast(i as double) | cast(x as bigint) | cast(i as string) | cast(p as bigint) | cast(p as string)
cast(t as date)
cast(d as timestamp) | cast(null as string)
timestamp '2013-01-01 00:00:00' | timestamp '2013-01-01T12:00:00.5+02:00' | date '1969-12-31' | 'text' | true
60 | 60.5 | `odd ``name```
m = w | m <> w | m < w | w <= m | m > 5 | m >= 99.95 | m = 1.5 | 1.005 = m | m <=> w | m is null | -0.05 < m
m = i | i < w | m = 9223372036854775807 | m between -1 and w | m in (0, 1.5, 99.95) | w in (m, 1, null)
m in (0.0, 1, 2, 99.95BD) | m = cast('1.50' as decimal(5,2)) | w > 0.0000001BD
m = cast(null as decimal(10,2))
coalesce(m, w) | coalesce(m, 0) | greatest(m, w) | least(m, 1.005) | nullif(m, 60) | if(p, m, w) | if(p, m, i)
case when p then m end | cast(m as double) | cast(w as double)
cast(m as double) * 2 > x | cast(m as decimal(24,6))
size(li) | size(ls) > 1 | array_contains(li, 3) | array_contains(li, -7) | array_contains(lx, -0.0) | size(ld)
array_contains(lx, 5) | array_contains(ls, 'EWR') | not array_contains(ls, 'a') | array_contains(lm, 99.95)
array_contains(lm, 1) | array_contains(ld, date '1970-01-01') | ls is null | li is not null
array_contains(lx, 0.0) and size(lx) = 2
element_at(li, 1) | element_at(li, -1) | element_at(li, 2147483647) | element_at(ls, 2) | element_at(lx, -2)
element_at(lm, 3) | element_at(ld, 1) | element_at(ls, 1) || 'x' | element_at(li, 2) + i > 0
cast(i as decimal(22,2)) | cast(3 as decimal(5,2)) | 99.95BD | -99.95
"""


def texts() -> list[str]:
    """Every expression of the table above."""
    return [text.strip() for line in EXPRESSIONS.strip().splitlines() for text in line.split(" | ")]


_LONGS = "0 1 -3 60 5000000000 9223372036854775807 -9223372036854775808"
_CONSTANTS = {
    "BOOLEAN": ["true", "false", "p and null"],
    "BIGINT": [*_LONGS.split(), "nullif(i, i)"],
    "DOUBLE": ["0.0", "-0.0", "1.5", "1e300", "-2.25"],
    "STRING": ["''", "'a'", "'EWR'", "'é%'", "'b\\'\\\\'"],
    "TIMESTAMP": ["timestamp '2013-01-01 00:00:00'", "timestamp '1969-12-31 23:59:59.999999'"],
    "DECIMAL(10,2)": ["99.95BD", "cast('-0.05' as decimal(10,2))"],
    "DATE": ["date '2013-03-31'", "date '1900-01-01'"],
}

# {B} and so on stand for expressions of that type: Boolean, I for BIGINT, Double, String, Time, dAte
_FORMS = {
    "BOOLEAN": "{I} = {I}|{D} <> {D}|{I} < {D}|{S} >= {S}|{D} <= {D}|{T} > {T}|{A} < {T}"
    "|{D} > {D}|{D} <=> {D}"
    "|{S} is null|{D} is not null|{B} and {B}|{B} or {B}|not {B}"
    "|{I} between {I} and {I}|{D} in (0, {D}, 1.5)|{S} in ('a', 'b', 'EWR', 'é')"
    "|{I} not in (0, 1, {I})|{S} like '%a%'"
    "|array_contains(li, 1)|array_contains(ls, 'a')|size(lx) < {I}|{M} = {M}"
    "|{M} < {M}|{M} >= {I}|{M} in ({M}, 1.5)|{M} is null"
    "|{S} not like '_b%'|{S} rlike r'^[^a-z]\\w*?'|startswith({S}, 'E')|contains({S}, 'é')"
    "|{T} - {T} > interval '1' hour|{T} - {A} <= interval '100' days"
    "|isnan({D})|{B} is true|{B} <=> {B}|if({B}, {B}, {B})",
    "BIGINT": "{I} + {I}|{I} - {I}|{I} * {I}|{I} % {I}|-{I}|abs({I})|ceil({D})|floor({D})|greatest({I}, {I})"
    "|least({I}, {I})|coalesce({I}, {I})|nullif({I}, {I})|if({B}, {I}, {I})"
    "|length({S})|year({T})|month({A})|day({T})|dayofweek({A})|hour({T})|minute({T})|second({T})"
    "|datediff({A}, {T})|quarter({A})|dayofyear({T})"
    "|unix_micros({T})|unix_seconds({T})|element_at(li, 1)|size(ls)|cast({D} as bigint)|cast({B} as bigint)"
    "|case when {B} then {I} when {B} then {I} else {I} end|case {S} when 'a' then {I} end",
    "DOUBLE": "{D} + {D}|{D} - {I}|{D} * {D}|{I} / {D}|{D} / {D}|{D} % {D}|-{D}|abs({D})|round({D})|sqrt({D})"
    "|greatest({D}, {I})|least({D}, {D})|coalesce({D}, {I})"
    "|nullif({D}, {I})|cast({I} as double)|if({B}, {D}, {I})|case when {B} then {D} end",
    "STRING": "element_at(ls, -1)"
    "|lower({S})|upper({S})|trim({S})|substring({S}, 2, 3)|concat({S}, {S})|concat({S}, '-', {S})"
    "|greatest({S}, {S})|least({S}, {S})|coalesce({S}, {S})|nullif({S}, {S})"
    "|cast({I} as string)|cast({B} as string)|if({B}, {S}, {S})|case when {B} then {S} end",
    "TIMESTAMP": "greatest({T}, {T})|least({T}, {A})|coalesce({T}, {T})"
    "|if({B}, {T}, {T})|cast({A} as timestamp)|date_trunc('week', {T})|date_trunc('quarter', {A})",
    "DECIMAL(10,2)": "nullif({M}, {M})|coalesce({M}, {M})|greatest({M}, {M})|if({B}, {M}, {M})",
    "DATE": "cast({T} as date)|least({A}, {A})|coalesce({A}, {A})|nullif({A}, {A})",
}
_HOLES = {"{B}": "BOOLEAN", "{I}": "BIGINT", "{D}": "DOUBLE"}
_HOLES |= {"{M}": "DECIMAL(10,2)", "{S}": "STRING", "{T}": "TIMESTAMP", "{A}": "DATE"}


def random_text(kind: str, depth: int, chance: random.Random) -> str:
    """A random expression of a type, `depth` operators deep at most."""
    if depth == 0 or chance.random() < 0.1:
        names = [field.name for field in SCHEMA.fields if field.type == kind and " " not in field.name]
        return chance.choice(names * 2 + _CONSTANTS[kind])
    text = chance.choice(_FORMS[kind].split("|"))
    for hole, inner in _HOLES.items():
        while hole in text:
            text = text.replace(hole, f"({random_text(inner, depth - 1, chance)})", 1)
    return text
