"""Sums and averages of DECIMALs: their types, and what they come to."""

from decimal import Decimal

import pyarrow as pa
import pytest

from spark_pace import load_rules, replay
from spark_pace.core.expr.canonical_text import canonical_text

AVERAGES = """
events: {schema: "t TIMESTAMP, kind STRING, d DECIMAL(10,2)", event_time: t}
rules:
  - {name: spans, span: {every: 10 s, size: 20 s}, emit: {mean: avg(d)}, where: avg(d) > 0.1}
  - name: groups
    pattern: {sequence: [{name: a, when: kind = 'a', times: 1+}, b: kind = 'b']}
    where: avg(a.d) < b.d
    within: 1 min
    context: next, selected
    emit: {mean: avg(a.d), more: b.d - avg(a.d)}
"""


def test_averages_of_decimals_have_four_digits_more() -> None:
    values = [("a", "0.10"), ("a", None), ("a", "0.20"), ("a", "0.15"), ("b", "0.16")]
    events = [
        {"t": f"2024-01-01T00:00:0{second}Z", "kind": kind, "d": None if d is None else Decimal(d)}
        for second, (kind, d) in enumerate(values)
    ]
    found = replay(AVERAGES, events).matches
    assert found.schema.field("mean").type == pa.decimal128(14, 6)
    groups, *spans = found.select(["rule", "mean", "more"]).to_pylist()
    assert groups == {"rule": "groups", "mean": Decimal("0.150000"), "more": Decimal("0.010000")}
    assert [row["mean"] for row in spans] == [Decimal("0.152500")] * 2
    (rule,) = load_rules(AVERAGES)[1:]
    assert rule.pattern is not None
    assert canonical_text(rule.pattern.where[0].expr) == "avg(a.d) < cast(b.d as decimal(14,6))"


LONG_SUMS = """
events: {schema: "t TIMESTAMP, kind STRING, d DECIMAL(38,36), e DECIMAL(30,0)", event_time: t}
rules:
  - {name: span, span: {every: 10 s, size: 10 s}, emit: {s: sum(d), m: avg(d), t: sum(e), n: avg(e)}}
  - name: group
    pattern: {sequence: [{name: a, when: kind = 'a', times: 2+}, b: kind = 'b']}
    within: 1 min
    context: each, zero
    emit: {s: sum(a.d), m: avg(a.d), t: sum(a.e), n: avg(a.e)}
  - name: so_far
    pattern: {sequence: [{name: a, when: kind = 'a' and sum(a.e) + e > 0, times: 2+}, b: kind = 'b']}
    within: 1 min
    context: next, selected
    emit: {s: sum(a.d), m: avg(a.d), t: sum(a.e), n: avg(a.e)}
  - name: rows
    match_recognize: >-
      ORDER BY t MEASURES SUM(a.d) AS s, AVG(a.d) AS m, SUM(a.e) AS t, AVG(a.e) AS n
      PATTERN (a+ b) WITHIN interval '1' minutes
      DEFINE a AS kind = 'a' AND (SUM(a.d) IS NULL OR SUM(a.e) > 0), b AS kind = 'b'
"""


@pytest.mark.parametrize(("large", "total"), [("40", "80"), ("60", None)])
def test_sums_have_at_most_38_digits_and_are_null_above(large: str, total: str | None) -> None:
    most, twice = Decimal(10**30 - 1), Decimal(2 * 10**30 - 2)
    kinds = [("a", Decimal(large), most), ("a", Decimal(large), most), ("b", None, None)]
    events = [
        {"t": f"2024-01-01T00:00:0{second}Z", "kind": kind, "d": d, "e": e}
        for second, (kind, d, e) in enumerate(kinds)
    ]
    found = replay(LONG_SUMS, events).matches
    types = {"s": (38, 36), "m": (38, 38), "t": (38, 0), "n": (34, 4)}
    assert {name: found.schema.field(name).type for name in types} == {
        name: pa.decimal128(*digits) for name, digits in types.items()
    }
    rows = {row.pop("rule"): tuple(row.values()) for row in found.select(["rule", *types]).to_pylist()}
    assert rows == dict.fromkeys(
        ("span", "group", "so_far", "rows"), (total and Decimal(total), None, twice, most)
    )


def test_a_span_adds_up_decimals() -> None:
    values = [Decimal("0.10"), Decimal("0.20"), None, Decimal("99999999.99"), Decimal("0.01")]
    times = pa.array(range(5), pa.timestamp("s"))
    events = pa.table({"t": times, "d": pa.array(values, pa.decimal128(10, 2))})
    rows = replay(
        load_rules(
            'events: {schema: "t TIMESTAMP, d DECIMAL(10,2)", event_time: t}\n'
            "rules: [{name: r, span: {every: 2 events, size: 3 events},\n"
            "  emit: {total: sum(d), least: min(d), most: max(d), n: count(d)}}]\n"
        ),
        events,
    ).matches
    found = rows.select(["total", "least", "most", "n"]).to_pylist()
    assert found == [
        {"total": Decimal("0.30"), "least": Decimal("0.10"), "most": Decimal("0.20"), "n": 2},
        {
            "total": Decimal("100000000.00"),
            "least": Decimal("0.01"),
            "most": Decimal("99999999.99"),
            "n": 2,
        },
    ]
    assert rows.schema.field("total").type == pa.decimal128(20, 2)
