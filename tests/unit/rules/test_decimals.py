"""DECIMAL attributes: what is read, what is computed, and what comes out."""

from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spark_pace import check, load_rules, replay
from spark_pace.core.expr import Call, Column, decimal_digits, evaluate, walk
from spark_pace.core.match.search.programs import is_program
from spark_pace.core.plan.rule import EventSchema, Field
from spark_pace.io.event_files import read_events
from spark_pace.io.text.column_types import typed
from spark_pace.rules.document import Place, Report, Scalar
from spark_pace.rules.expressions.compile import compile_value
from spark_pace.rules.expressions.scopes import event_scope
from tests.oracle.expressions import NULL_TOLERANT, OF_DECIMALS, ORDINARY, Bindings, value_of
from tests.support.expression_cases import SCHEMA as CASES
from tests.support.expression_cases import TableColumns, compiled, table
from tests.support.expression_texts import texts

RULES = """
events: {schema: "t TIMESTAMP, kind STRING, price DECIMAL(10,2), fee decimal(30, 6)", event_time: t}
rules:
  - name: dearer
    partition_by: [price]
    pattern: {sequence: [a: kind = 'a' and price >= 1.5, b: kind = 'b']}
    where: b.fee > a.fee
    within: 1 h
    emit: {more: b.fee, exact: cast(a.price as double)}
  - name: sums
    pattern: {sequence: [{name: a, when: kind = 'a', times: 1+}, b: kind = 'b']}
    within: 1 h
    context: earliest, selected
    emit: {total: sum(a.price), least: min(a.price), most: max(a.fee), newest: last(a.fee), n: count(a)}
"""
SCHEMA = EventSchema((Field("t", "TIMESTAMP"), Field("d", "DECIMAL(5,2)")), "t")
READ = {
    "1.5": "1.50",
    '"1.5"': "1.50",
    "1.005": "1.01",
    "-1.005": "-1.01",
    "1e2": "100.00",
    '"+.5"': "0.50",
    "999.99": "999.99",
    "null": None,
}
BAD = ["999.995", "1000", "true", '""', '" 1"', '"NaN"', '"1,000"', "[1]"]


def events(tmp_path: Path, name: str, text: str) -> pa.Table:
    path = tmp_path / name
    path.write_text(text)
    return read_events(str(path), name.partition(".")[2], SCHEMA, "file")


def test_a_json_number_or_text_is_rounded_to_the_digits_declared(tmp_path: Path) -> None:
    lines = [f'{{"t":"2024-01-01","d":{value}}}' for value in [*READ, *BAD]]
    read = events(tmp_path, "a.json", "\n".join(lines))
    assert [None if d is None else str(d) for d in read.events["d"].to_pylist()] == list(READ.values())
    assert read.bad["offset"].to_pylist() == list(range(len(READ), len(lines)))
    assert {reason.partition(";")[0] for reason in read.bad["reason"].to_pylist()} == {
        "d — must be DECIMAL(5,2)"
    }


@pytest.mark.parametrize("format", ["json", "csv"])
@pytest.mark.parametrize("digits", ["5,2", "2,2", "38,2", "38,0", "38,38"])
def test_no_number_that_is_too_large_is_read_as_another(tmp_path: Path, format: str, digits: str) -> None:
    whole = int(digits.split(",")[0]) - int(digits.split(",")[1])
    schema = EventSchema((Field("t", "TIMESTAMP"), Field("d", f"DECIMAL({digits})")), "t")  # type: ignore[arg-type]
    large = [f"{sign}{digit}e+{power}" for power in range(whole, 80) for digit in "179" for sign in ("", "-")]
    large += [f"{'9' * more}.{'9' * 9}" for more in range(whole + 1, 76)]
    large += [f"{first}{'0' * more}.5" for more in range(whole, 60) for first in (1, "115792089237", 579)]
    texts = [text for one in large for text in (one, "0")]
    if format == "json":
        lines = [f'{{"t":"2024-01-01","d":{text}}}' for text in texts]
    else:
        lines = ["t,d", *(f"2024-01-01,{text}" for text in texts)]
    (tmp_path / "a").write_text("\n".join(lines))
    read = read_events(str(tmp_path / "a"), format, schema, "file")
    assert read.events["@offset"].to_pylist() == list(range(1, len(texts), 2))
    assert set(read.events["d"].to_pylist()) == {0}


def test_a_number_that_is_too_large_is_found_in_lists_and_structs(tmp_path: Path) -> None:
    kinds = "t TIMESTAMP, l ARRAY<DECIMAL(5,2)>, o STRUCT<d: DECIMAL(5,2)>"
    rest = [
        '"l":[1, 115792.5]',
        '"l": ["115792.5", 1]',
        '"o":{"d":115792.5}',
        r'"l":[1],"o":{"\u0064":115792.5}',  # names and numbers may be written with escapes
        r'"\u006c":[1, 115792.5],"o":{"d":2}',
        r'"l":["\u0031\u0031\u0035792.5"],"o":{"d":2}',
        '"l":[1],"o":{"d":2},"n":115792.5',
        r'"l":[1],"o":{"\u0064":2},"n":115792.5',
    ]
    (tmp_path / "a").write_text("\n".join(f'{{"t":"2024-01-01",{one}}}' for one in rest))
    schema = load_rules(
        f"events: {{schema: '{kinds}', event_time: t}}\n"
        "rules: [{name: r, pattern: {sequence: [a: o.d > 0]}}]"
    )[0].schema
    assert read_events(str(tmp_path / "a"), "json", schema, "file").events["@offset"].to_pylist() == [6, 7]


def test_a_column_of_parquet_must_fit(tmp_path: Path) -> None:
    for number, (values, fits) in enumerate(
        [
            (pa.array([Decimal("1.5")], pa.decimal128(4, 1)), True),
            (pa.array([Decimal("1.555")], pa.decimal128(4, 3)), False),
            (pa.array([1.5]), False),
            (pa.array([7], pa.int64()), True),
            (pa.array([10**9], pa.int64()), False),
            (pa.array(["1.5"]), False),
        ]
    ):
        path = tmp_path / f"{number}.parquet"
        pq.write_table(pa.table({"t": pa.array([0], pa.timestamp("us")), "d": values}), path)
        read = read_events(str(path), "parquet", SCHEMA, "file")
        assert (read.events.num_rows, read.bad.num_rows) == ((1, 0) if fits else (0, 1)), values


def test_rules_compare_and_add_up_decimals(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(RULES)
    lines = [
        ("a", "1.50", "0.1"),
        ("a", "2.25", "0.3"),
        ("a", "0.25", "99999999999999999.5"),
        ("b", "1.50", "0.100001"),
        ("b", "2.25", "0.3"),
    ]
    (tmp_path / "e.json").write_text(
        "\n".join(
            f'{{"t":"2024-01-01T00:00:0{number}","kind":"{kind}","price":{price},"fee":"{fee}"}}'
            for number, (kind, price, fee) in enumerate(lines)
        )
    )
    rules = load_rules(str(tmp_path / "rules.yaml"))
    found = replay(rules, read_events(str(tmp_path / "e.json"), "json", rules[0].schema, "e").events).matches
    rows = {row["rule"]: row for row in found.to_pylist()}
    assert len(rows) == len(found) == 2
    assert found.schema.field("total").type == pa.decimal128(20, 2)
    dearer, sums = rows["dearer"], rows["sums"]
    assert (dearer["key"], dearer["price"]) == ('{"price":1.50}', Decimal("1.50"))
    assert (str(dearer["more"]), dearer["exact"]) == ("0.100001", 1.5)
    assert [str(sums[name]) for name in ("total", "least", "most", "newest", "n")] == [
        "4.00",
        "0.25",
        "99999999999999999.500000",
        "99999999999999999.500000",
        "3",
    ]


@pytest.mark.parametrize(("number", "problems"), [(999, 0), (1_000, 1)])
def test_the_comma_of_a_decimal_counts_no_attribute(number: int, problems: int) -> None:
    schema = ", ".join(["t TIMESTAMP", *(f"d{place} DECIMAL(10,2)" for place in range(number))])
    rule = {"name": "r", "pattern": {"sequence": [{"a": "d1 > 0"}]}}
    found = check({"events": {"schema": schema, "event_time": "t"}, "rules": [rule]})
    assert len(found.problems) == problems


@pytest.mark.parametrize("kind", ["DECIMAL(0,0)", "DECIMAL(39,2)", "DECIMAL(5,6)", "DECIMAL(x)"])
def test_a_decimal_has_1_to_38_digits(tmp_path: Path, kind: str) -> None:
    (tmp_path / "rules.yaml").write_text(RULES.replace("DECIMAL(10,2)", kind))
    with pytest.raises(Exception, match=r"must give price a type; got .*Write 1 to 38 digits"):
        load_rules(str(tmp_path / "rules.yaml"))


@pytest.mark.parametrize(
    "text",
    [
        "m = x",
        "m + x",
        "sqrt(m)",
        "m + 1.2345678901234567",
        "cast(w as decimal(38,38)) + cast(m as decimal(38,0))",
        "cast(m as decimal(38,0)) / cast(w as decimal(38,38))",
        "round(m, i)",
        "round(m, 39)",
        "round(x, 2)",
        "cast(x as decimal(10,2))",
        "cast(m as boolean)",
        "cast('1.234' as decimal(5,2))",
        "cast(1 as decimal(39,2))",
        "m = 1.2345678901234567",
        "w = cast('1' as decimal(38,30))",
    ],
)
def test_what_cannot_be_exact_is_refused(text: str) -> None:
    report = Report()
    assert compile_value(Scalar(Place("test"), text, text, None), event_scope(CASES), report) is None
    assert len(report.problems) == 1


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("m + 1", "DECIMAL(11,2)", "2.50"),
        ("m - 0.005", "DECIMAL(12,3)", "1.495"),
        ("m * m", "DECIMAL(21,4)", "2.2500"),
        ("m * 1.1", "DECIMAL(13,3)", "1.650"),
        ("m / 7", "DECIMAL(14,6)", "0.214286"),
        ("m % 0.4", "DECIMAL(2,2)", "0.30"),
        ("-m", "DECIMAL(10,2)", "-1.50"),
        ("abs(-m)", "DECIMAL(10,2)", "1.50"),
        ("round(m)", "DECIMAL(9,0)", "2"),
        ("round(-m)", "DECIMAL(9,0)", "-2"),
        ("round(m * 1.01, 2)", "DECIMAL(13,2)", "1.52"),
        ("m / 0", "DECIMAL(14,6)", "None"),
        ("m + null", "DECIMAL(11,2)", "None"),
        ("cast(m * 1000000000 as decimal(10,2))", "DECIMAL(10,2)", "None"),
        ("cast(m * 1.01 as decimal(10,2))", "DECIMAL(10,2)", "1.52"),
        ("cast(m as bigint)", "BIGINT", "1"),
        ("cast(w * w as bigint)", "BIGINT", "None"),
        ("cast(m / 10000000 as string)", "STRING", "0.00000015000"),
        ("cast(-m as string)", "STRING", "-1.50"),
        ("cast(i as decimal(3,1))", "DECIMAL(3,1)", "7.0"),
        ("cast(i * 100 as decimal(3,1))", "DECIMAL(3,1)", "None"),
    ],
)
def test_arithmetic_gives_the_digits_of_spark(text: str, kind: str, value: str) -> None:
    row = pa.table({
        "m": pa.array([Decimal("1.50")], pa.decimal128(10, 2)),
        "w": pa.array([Decimal("123456789012.654321")], pa.decimal128(24, 6)),
        "i": [7],
    })  # fmt: skip
    expr = compiled(text)
    (found,) = evaluate(expr, TableColumns(row)).to_pylist()
    assert (expr.type, str(found)) == (kind, value)


def test_the_oracle_computes_what_the_core_computes() -> None:
    events = table(60, seed=4)
    known = {*OF_DECIMALS, *ORDINARY, *NULL_TOLERANT, "cast", "and", "or", "case"}
    compared = 0
    for text in texts():
        nodes = list(walk(expr := compiled(text)))
        decimals = any(decimal_digits(node.type) for node in nodes)
        if decimals and all(not isinstance(node, Call) or node.function in known for node in nodes):
            compared += 1
            expected = [value_of(expr, Bindings(event)) for event in events.to_pylist()]
            assert evaluate(expr, TableColumns(events)).to_pylist() == expected, text
    assert compared > 80


def test_compiled_programs_leave_decimals_to_columns() -> None:
    sides = (Column("a", "d", "DECIMAL(10,2)"), Column("b", "d", "DECIMAL(10,2)"))
    for function in ("+", "-", "*", "/"):
        condition = Call("is_null", (Call(function, sides, "DECIMAL(21,4)"),), "BOOLEAN")
        assert not is_program(condition, {"a": 0, "b": 1})
        whole = Call("cast", (Call(function, sides, "DECIMAL(21,4)"),), "BIGINT")
        assert not is_program(Call("is_null", (whole,), "BOOLEAN"), {"a": 0, "b": 1})


def test_a_long_row_of_nines_is_rounded_up() -> None:
    """Arrow itself leaves some of them as they are."""
    texts = ["9999999999999999.99999999999999999999", "99999999999999999.999999999999999999999999999"]
    found = typed(pa.chunked_array([texts]), "DECIMAL(38,19)").to_pylist()
    assert found == [Decimal("1e16"), Decimal("1e17")]
    assert list(map(str, found)) == [f"1{'0' * 16}.{'0' * 19}", f"1{'0' * 17}.{'0' * 19}"]
