"""The expression language: what text compiles to, what it gives on columns, and how it is written back."""

import pickle
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from spark_pace.core.expr import (
    ARROW_TYPES,
    Call,
    Column,
    Expr,
    Literal,
    conjunction,
    evaluate,
    evaluate_mask,
    walk,
)
from spark_pace.core.expr.canonical_text import canonical_text
from spark_pace.core.plan.rule import Component, EventSchema
from spark_pace.rules.document import Place, Report, Scalar
from spark_pace.rules.expressions.compile import compile_condition, compile_parts, compile_value
from spark_pace.rules.expressions.scopes import OfMatches, event_scope
from tests.support.expression_cases import NAN, SCHEMA, TableColumns, compiled, table
from tests.support.expression_texts import texts

MATCH = OfMatches(SCHEMA, [Component(name, conjunction([])) for name in "ab"], ("s",)).scope


def scalar(text: str) -> Scalar:
    return Scalar(Place("rules.yaml", 3, 11, "rules[0].where"), text, text, 11)


ROWS = pa.table(
    {
        "i": pa.array([1, None, 2**63 - 1, -(2**63), 0]),
        "x": pa.array([1.5, None, NAN, -0.0, -2.5]),
        "s": pa.array(["aB", None, "é", "", " b "]),
        "p": pa.array([True, None, False, True, False]),
        "t": pa.array([0, None, -1, 1_356_998_400_000_000, 5], pa.timestamp("us")),
    }
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("i + 1", [2, None, None, -(2**63) + 1, 1]),
        ("i * -1", [-1, None, -(2**63) + 1, None, 0]),
        ("-i", [-1, None, -(2**63) + 1, None, 0]),
        ("abs(i)", [1, None, 2**63 - 1, None, 0]),
        ("1 / i", [1.0, None, 1 / 2**63, -1 / 2**63, None]),
        ("-7 % i", [0, None, -7, -7, None]),
        ("x = x", [True, None, True, True, True]),
        ("x > 1e300", [False, None, True, False, False]),
        ("x = 0", [False, None, False, True, False]),
        ("greatest(x, 1)", [1.5, 1.0, NAN, 1.0, 1.0]),
        ("floor(x)", [1, None, 0, 0, -3]),
        ("round(x)", [2.0, None, NAN, 0.0, -3.0]),
        ("p or null", [True, None, None, True, None]),
        ("p and null", [None, None, False, None, False]),
        ("i in (1, null)", [True, None, None, None, None]),
        ("s <=> null", [False, True, False, False, False]),
        ("s || '!'", ["aB!", None, "é!", "!", " b !"]),
        ("upper(s)", ["AB", None, "é", "", " B "]),
        ("length(s)", [2, None, 1, 0, 3]),
        ("substring(trim(s), 2)", ["B", None, "", "", ""]),
        ("s like '_'", [False, None, True, False, False]),
        ("case when p then i else 7 end", [1, 7, 7, -(2**63), 7]),
        ("year(t)", [1970, None, 1969, 2013, 1970]),
        ("unix_seconds(t)", [0, None, -1, 1_356_998_400, 0]),
        ("cast(x as bigint)", [1, None, None, 0, -2]),
    ],
)
def test_edge_cases_have_the_values_of_the_reference(text: str, expected: list[object]) -> None:
    values = evaluate(compiled(text), TableColumns(ROWS)).to_pylist()
    assert [str(value) if value != value else value for value in values] == [
        str(value) if value != value else value for value in expected
    ]


def test_what_lies_just_below_a_half_is_rounded_down() -> None:
    values = [
        0.49999999999999994,
        -0.49999999999999994,
        -0.3,
        0.5,
        -0.5,
        2251799813685248.5,
        4503599627370497.0,
        -1e300,
        None,
    ]
    rounded = evaluate(compiled("round(x)"), TableColumns(pa.table({"x": values}))).to_pylist()
    assert str(rounded) == str(
        [0.0, 0.0, 0.0, 1.0, -1.0, 2251799813685249.0, 4503599627370497.0, -1e300, None]
    )


@pytest.mark.parametrize("text", texts())
def test_a_value_has_the_declared_type_for_no_rows_too(text: str) -> None:
    expr = compiled(text)
    values = evaluate(expr, TableColumns(table(0, seed=0)))
    assert isinstance(values, pa.Array)
    assert values.type == ARROW_TYPES[expr.type]
    assert len(values) == 0


@pytest.mark.parametrize("text", texts())
def test_an_expression_survives_pickling_and_writing_back(text: str) -> None:
    expr = compiled(text)
    assert pickle.loads(pickle.dumps(expr)) == expr
    assert compiled(canonical_text(expr)) == expr


def test_null_counts_as_false_in_a_mask() -> None:
    mask = evaluate_mask(compiled("p"), TableColumns(pa.table({"p": pa.array([True, None, False])})))
    assert mask.dtype == np.bool_
    assert mask.tolist() == [True, False, False]


def test_an_equality_of_two_plain_columns_stays_one() -> None:
    ((_, equality),) = compile_parts(scalar("a.i = b.i"), MATCH, Report())
    assert equality == Call("=", (Column("a", "i", "BIGINT"), Column("b", "i", "BIGINT")), "BOOLEAN")


def test_numbers_of_two_types_meet_as_double() -> None:
    ((_, equality),) = compile_parts(scalar("a.i = b.x"), MATCH, Report())
    assert equality == Call(
        "=", (Call("cast", (Column("a", "i", "BIGINT"),), "DOUBLE"), Column("b", "x", "DOUBLE")), "BOOLEAN"
    )


def test_a_condition_is_split_at_its_top_level_and() -> None:
    parts = compile_parts(scalar("a.p and (b.p and a.i between 1 and b.i) and (a.q or b.q)"), MATCH, Report())
    assert [canonical_text(part) for _, part in parts] == [
        "a.p",
        "b.p",
        "a.i >= 1 and a.i <= b.i",
        "a.q or b.q",
    ]


def test_a_long_chain_becomes_a_balanced_tree() -> None:
    expr = compiled(" or ".join(f"i = {number}" for number in range(500)))
    assert depth(expr) <= 11
    assert evaluate_mask(expr, TableColumns(pa.table({"i": [499, 500]}))).tolist() == [True, False]


def depth(expr: Expr) -> int:
    return (
        1 + max((depth(argument) for argument in expr.arguments), default=0) if isinstance(expr, Call) else 1
    )


def test_an_attribute_of_the_key_needs_no_component() -> None:
    assert compile_value(scalar("s"), MATCH, Report()) == Column("a", "s", "STRING")


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("i =< 2", 14),
        ("i = > 2", 15),
        ("i = 1 and nosuch = 2", 21),
        ("x > 1 and s > 5", 21),
        ("i = greatst(1, 2)", 15),
        ("i = 1 and", 17),
        ("i + x", 11),
    ],
)
def test_a_problem_points_into_the_expression(text: str, column: int) -> None:
    report = Report()
    assert compile_condition(scalar(text), event_scope(SCHEMA), report) is None
    (problem,) = report.problems
    assert problem.where == f"rules.yaml:3:{column} rules[0].where"


@pytest.mark.parametrize(
    ("text", "column", "must"),
    [
        ("q and p = s like 'a%'", 17, "be values of one type"),
        ("p = i < j", 11, "be values of one type"),
        ("p = i between 1 and 2", 11, "be values of one type"),
        ("i between 1 and j = p", 29, "be a whole expression"),
        ("p = i not in (1, 2)", 11, "be values of one type"),
        ("i in (1, 2) = p", 23, "be a whole expression"),
        ("if(p = i < j, 1, 2) = 1", 14, "be values of one type"),
        ("case when q then p = i < j end", 28, "be values of one type"),
        ("p is true = q", 21, "be a whole expression"),
        ("p <=> i >= j", 11, "be values of one type"),
        ("p = not q", 15, "be a whole expression"),
        ("p in (q) in (p)", 23, "be a whole expression"),
    ],
)
def test_the_first_of_several_comparisons_is_made_first(text: str, column: int, must: str) -> None:
    report = Report()
    assert compile_condition(scalar(text), event_scope(SCHEMA), report) is None
    (problem,) = report.problems
    assert (problem.where, problem.must) == (f"rules.yaml:3:{column} rules[0].where", f"must {must}")


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("p = (i < j)", "p = (i < j)"),
        (
            "(p = (s like 'a%')) = q and i between 1 and 2 and p = q",
            "(p = (s like 'a%')) = q and (i >= 1 and i <= 2) and p = q",
        ),
        ("i < j = p = q", "((i < j) = p) = q"),
        ("p = q in (true, i < j)", "(p = q) in (true, (i < j))"),
        ("p = q <> (i = j) is null", "((p = q) <> (i = j)) is null"),
        ("not p = q is null", "not ((p = q) is null)"),
        (
            "p in (i < j, q) or case when i < j then p else q = p end",
            "p in ((i < j), q) or case when (i < j) then p else (q = p) end",
        ),
    ],
)
def test_comparisons_are_read_as_spark_sql_reads_them(text: str, written: str) -> None:
    assert compiled(text) == compiled(written)


@pytest.mark.parametrize(
    "text",
    [
        "i; drop table t",
        "(select 1)",
        "i as x",
        "i x",
        "a[0]",
        "i -> 1",
        "x::int",
        "current_date",
        "interval 5 minutes",
        "i in (select 1)",
        "i rlike 'a'",
        "s rlike z",
        "s rlike any ('a', 'b')",
        r"s rlike 'a\d'",
        "s rlike 'a' 'b'",
        "s like s",
        "s ilike 'a'",
        "s like 'a' escape '!'",
        "i & 1",
        "i div 2",
        "sum(i) over ()",
        "count(*)",
        "*",
        "__import__('os')",
        "i.real",
        "0x1F",
        ":p",
        "s like 'a\\\\_'",
        "s + 1",
        "not i",
        "p < q",
        "i and p",
        "upper(i)",
        "abs(s)",
        "length(i)",
        "substring(s, 0)",
        "substring(s, i)",
        "contains(s, z)",
        "year(s)",
        "hour(d)",
        "t = '2013-01-01'",
        "t + 1",
        "d = s",
        "cast(s as double)",
        "cast(i as int)",
        "cast(i as array<int>)",
        "case when i then 1 end",
        "greatest(p, q)",
        "if(p, 1, 's')",
        "-s",
        "null",
    ],
)
def test_what_is_not_in_the_language_is_refused(text: str) -> None:
    report = Report()
    assert compile_value(scalar(text), event_scope(SCHEMA), report) is None
    assert not report.clean


@pytest.mark.parametrize(
    "text",
    [
        "(" * 3000,
        "not " * 2000 + "p",
        "- " * 3000 + "i",
        "nullif(" * 20 + "i" + ", 1)" * 20,
        " + ".join(["i"] * 2000),
        "case when " * 900,
    ],
)
def test_what_is_too_large_is_refused_at_once(text: str) -> None:
    report = Report()
    assert compile_value(scalar(text), event_scope(SCHEMA), report) is None
    assert len(report.problems) == 1


def test_walk_gives_parents_first() -> None:
    assert [type(node).__name__ for node in walk(compiled("i + 1 = j"))] == [
        "Call",
        "Call",
        "Column",
        "Literal",
        "Column",
    ]


@pytest.mark.parametrize(
    "text", ["i = case when end < 5 then 1 else 2 end", "end = case when 1 + end < 5 then end else end end"]
)
def test_an_attribute_may_be_named_end(text: str) -> None:
    report = Report()
    schema = EventSchema(
        (*SCHEMA.fields, replace(SCHEMA.fields[0], name="end", type="BIGINT")), SCHEMA.event_time
    )
    assert compile_condition(scalar(text), event_scope(schema), report) is not None
    assert report.clean


def test_a_conjunction_of_nothing_is_true() -> None:
    assert conjunction([]) == Literal(True, "BOOLEAN")
