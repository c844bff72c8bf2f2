"""Texts of expressions over the table of `expression_cases`: a fixed list, and random ones."""

from __future__ import annotations

import random

from tests.support.expression_cases import SCHEMA

# One line for every operator and function at least; values of every type.
EXPRESSIONS = """
i = j | x = y | s = z | t = u | p = q | d = date '2013-01-01' | i = x
i <> j | x <> y | s <> z | i != 3 | x = 0 | x = -0.0 | x <> 0.0
i < j | x < y | s < z | t < u | i < x | i <= j | x <= y | s <= z | t <= u
i > j | x > y | s > z | i >= j | x >= y | s >= z | t >= u | d < t | d >= date '2000-02-29'
i <=> j | x <=> y | s <=> z | p <=> q | i is distinct from j | s is not distinct from z
i is null | x is not null | p is true | p is not false | null is null
p = q is null | p = q in (true, i < j) | i < j = p | i = j <> q | not p = q is not null
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
timestamp_micros(unix_micros(t)) | timestamp_micros(60) | weekday(t) | weekday(d) | weekofyear(t)
weekofyear(d) | unix_millis(t) | date_add(d, 1) | date_add(t, -400) | dateadd(d, 31) = u | date_sub(d, 5)
date_sub(t, 1) | date_add(d, i % 1000) | dateadd(MONTH, 1, t) | dateadd(YEAR, -4, d) | date_add(HOUR, 5, t)
timestampadd(QUARTER, 3, t) | timestampadd(WEEK, -2, t) | timestampadd(day, 40, d)
timestampadd(MONTH, i % 1000, t) | timestampadd(SECOND, i % 100000, t) | timestampadd(MICROSECOND, 1, t) > t
timestampadd(MILLISECOND, -1, t) | timestampdiff(SECOND, t, u) | timestampdiff(MINUTE, u, t)
timestampdiff(MICROSECOND, t, u) | timestampdiff(MONTH, t, u) | timestampdiff(YEAR, u, t)
timestampdiff(QUARTER, d, t) | timestampdiff(week, t, u) | datediff(DAY, t, u) | date_diff(HOUR, u, d)
timestampdiff(MONTH, t, timestampadd(MONTH, i % 100, t)) | date_diff(MILLISECOND, t, u)
trunc(t, 'MM') | trunc(d, 'year') | trunc(d, 'WEEK') | trunc(t, 'quarter') = d | last_day(t) | last_day(d) > u
extract(hour from t) = 12 | extract(YEAR from d) | extract(week from t) | extract(dow from t)
extract(doy from u) | extract(MINUTES FROM t) | date_part('month', t) | date_part('Quarter', d)
t - u > interval '1' minute * 2 | 3 * interval '1' hour < u - t | (t - u) * (i % 7) = u - t
(t - u) * 0.5D > interval '1' day | abs(t - u) > interval '1' hour | -(t - u) < interval '100' days
abs(t - u) * 1.1D between interval '1' hour and interval '1000' days | t + interval '1' hour * 5 > u
t - u > interval '1 00:00:05' day to second | t - u < interval '-2 3:04' day to minute
t + interval '5:00:00.25' hour to second | t + interval '100' hour * -1 | t - u <> interval '3 4' day to hour
t - interval '12:30' minute to second
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
m + w | w - m | m * w | m / w | w / m | m % w | w % m | -m | -w < 0 | abs(m) | abs(w - m) > 1 | m + 1 | 2 - m
m * 1.1 | m * -0.05 < w | m / 3 | 1 / m | m % 1 = 0 | m % 0.3 | i + m | m - j | i * m | m / i | i / w | j % m
m + null | null * w | m * m * m | w * w | w * w * w | m / m / m | w / w * w - m | (m + w) * (m - w) / 7
round(m) | round(w) | round(m, 1) | round(w, 4) | round(m, 5) | round(-0.005BD, 2) | round(w * 1.005, 3)
cast(m as bigint) | cast(w as bigint) | cast(w * 1000000000 as bigint) | cast(m as string) | cast(w as string)
cast(m / 300000000 as string) | cast(-0.000000001BD as string) | cast(0.000000001BD as string) || 'x'
cast(w as decimal(10,2)) | cast(w as decimal(38,0)) | cast(m * 1.5 as decimal(10,2)) | cast(i as decimal(5,2))
cast(m / 7 as double) | m + 0.5 > 1 | m * 1.1 < w | w + 99999999999999999999999.5BD | m + i * 2
cast(w as decimal(38,10)) * cast(w as decimal(38,10)) | cast(w as decimal(38,20)) * cast(m as decimal(38,28))
cast(w as decimal(38,25)) / cast(m as decimal(38,20))
cast(m as decimal(38,28)) / 0.00000000000000000000000003BD
cast(w as decimal(38,38)) / 3 | cast(m / 1000000000 as decimal(38,38)) / 7
cast(m / 1000000000 as decimal(38,38)) * 3
cast(w as decimal(38,6)) + cast(m as decimal(38,20)) | cast(w as decimal(38,0)) * cast(w as decimal(38,0))
cast(m as decimal(38,26)) % cast(w as decimal(20,3)) | cast(w as decimal(38,0)) * 99999999999999999999999999BD
element_at(lm, 1) * 2 - m | greatest(m * 2, w) | coalesce(m / w, 0) | if(p, m + 1, w)
case when m + w > 0 then m * w end
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
    "|datediff({A}, {T})|quarter({A})|dayofyear({T})|weekday({T})|weekofyear({A})"
    "|timestampdiff(HOUR, {T}, {A})|timestampdiff(MONTH, {A}, {T})|unix_millis({T})"
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
    "|if({B}, {T}, {T})|cast({A} as timestamp)|date_trunc('week', {T})|date_trunc('quarter', {A})"
    "|timestampadd(DAY, i % 1000, {T})|timestampadd(MONTH, j % 100, {A})",
    "DECIMAL(10,2)": "nullif({M}, {M})|coalesce({M}, {M})|greatest({M}, {M})|if({B}, {M}, {M})"
    "|-{M}|abs({M})|cast({M} + {M} as decimal(10,2))|cast({M} * {M} as decimal(10,2))"
    "|cast({M} / {M} as decimal(10,2))|cast({M} - {I} as decimal(10,2))|cast({M} % {M} as decimal(10,2))",
    "DATE": "cast({T} as date)|trunc({T}, 'month')|last_day({A})|date_add({A}, i % 1000)"
    "|least({A}, {A})|coalesce({A}, {A})|nullif({A}, {A})",
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
