"""What of a query is Spark's, and how it is written for Spark."""

from __future__ import annotations

import pyarrow as pa
import pytest

from spark_pace.core.expr import Column
from spark_pace.core.plan.meaning import columns_of
from spark_pace.core.plan.row_pattern import Navigation, final_columns
from spark_pace.errors import ConfigError
from spark_pace.rules.row_patterns.expressions import OF_SPARK
from spark_pace.rules.row_patterns.meaning import beforehand, plan_of
from spark_pace.rules.row_patterns.queries import Rewriting, file_query, occurrences_in, replaced
from spark_pace.rules.row_patterns.words import read_query
from tests.support.row_pattern_cases import found_rows
from tests.unit.row_patterns.test_bad_queries import ROWS

CLAUSE = "MATCH_RECOGNIZE (ORDER BY t PATTERN (A))"


def rewritten(text: str, dialect: str = "spark") -> tuple[str, list[str]]:
    """The query around the views v0, v1, …, and the queries for their inputs."""
    query = read_query(text, "query", dialect)
    inputs: list[str] = []

    def view(number: int, of_input: str) -> str:
        inputs.append(" ".join(of_input.split()))
        return f"v{number}"

    outer = replaced(Rewriting(query, occurrences_in(query)), view)
    return " ".join(outer.split()), inputs


@pytest.mark.parametrize(
    ("table", "alias"),
    [
        ("t", ""),
        ("a.b.t", "AS m"),
        ("`odd name`.t", "m"),
        ("(SELECT * FROM u WHERE x IN (1, 2))", "m"),
        ("range(5)", ""),
        ("parquet.`/a/b`", "m"),
    ],
)
@pytest.mark.parametrize("named", ["", " AS r", " r"])
def test_the_input_is_what_stands_before_it(table: str, alias: str, named: str) -> None:
    outer, inputs = rewritten(f"SELECT * FROM u JOIN {table}{named} {CLAUSE} {alias} ON m.x = u.x")
    assert inputs == [f"SELECT * FROM {table}{named}"]
    assert outer == " ".join(f"SELECT * FROM u JOIN v0 {alias} ON m.x = u.x".split())


@pytest.mark.parametrize(
    "table",
    [
        "t TABLESAMPLE (5 ROWS)",
        "VALUES (1) AS t(a)",
        "(VALUES (1, 90), (2, 80)) t(id, x)",
        "(SELECT 1, 2) AS t (id, x)",
        "u AS t (id)",
        "a.b.u t (id)",
        "range(5) AS t (id)",
    ],
)
def test_whatever_follows_a_table_belongs_to_the_input(table: str) -> None:
    outer, inputs = rewritten(f"SELECT * FROM u JOIN {table} {CLAUSE} AS m ON m.x = u.x")
    assert inputs == [f"SELECT * FROM {table}"]
    assert outer == "SELECT * FROM u JOIN v0 AS m ON m.x = u.x"


def test_inner_clauses_come_before_those_around_them() -> None:
    outer, inputs = rewritten(f"SELECT * FROM (SELECT x FROM t {CLAUSE}) {CLAUSE}, u {CLAUSE} AS w;")
    assert inputs == ["SELECT * FROM t", "SELECT * FROM (SELECT x FROM v0 )", "SELECT * FROM u"]
    assert outer == "SELECT * FROM v1 , v2 AS w"


@pytest.mark.parametrize("alias", ["m", "AS M", ""])
def test_the_name_of_the_result_may_stand_before_columns(alias: str) -> None:
    before = "m." if alias else ""
    query = read_query(
        f"SELECT {before}k, {before}x AS n FROM r MATCH_RECOGNIZE (PARTITION BY k MEASURES m.x AS x"
        f" PATTERN (m)) {alias} ORDER BY {before}k, x DESC",
        "query",
        "spark",
    )
    rows = ROWS.from_pylist([{"k": k, "x": x} for x, k in enumerate("baa", 1)], schema=ROWS.schema)
    found = file_query(query).answer(rows, 1).to_pylist()
    assert [tuple(row.items()) for row in found] == [
        (("k", k), ("n", n)) for k, n in (("a", 3), ("a", 2), ("b", 1))
    ]


def test_names_of_with_are_known_to_the_clauses_behind_them() -> None:
    outer, inputs = rewritten(
        f"WITH a AS (SELECT 1 x), b (y) AS (SELECT * FROM a {CLAUSE}), c AS (SELECT 2) "
        f"SELECT * FROM b {CLAUSE}"
    )
    assert inputs == [
        "WITH a AS (SELECT 1 x) SELECT * FROM a",
        "WITH a AS (SELECT 1 x), b (y) AS (SELECT * FROM v0 ), c AS (SELECT 2) SELECT * FROM b",
    ]
    assert outer == "WITH a AS (SELECT 1 x), b (y) AS (SELECT * FROM v0 ), c AS (SELECT 2) SELECT * FROM v1"


def test_comments_and_texts_are_no_clauses() -> None:
    text = "SELECT 'FROM t MATCH_RECOGNIZE (', \"it's\" -- MATCH_RECOGNIZE (\n/* a /* b */ c ( */ FROM t"
    assert rewritten(text) == (" ".join(text.split()), [])


@pytest.mark.parametrize(
    ("dialect", "text", "expected"),
    [
        ("spark", "`a``b` \"c\" 'it\\'s' r'\\d'", "`a``b` \"c\" 'it\\'s' r'\\d'"),
        ("trino", '"a`b" "say ""x""" \'it\'\'s\' \'a\\d\\\'', "`a``b` `say \"x\"` 'it\\'s' 'a\\\\d\\\\'"),
        ("snowflake", "\"a\" 'it\\'s' 'it''s' 'a\\\\' 'b'", "`a` 'it\\'s' 'it\\'s' 'a\\\\' 'b'"),
        ("flink", "`a` 'x\\y' '''' ''", "`a` 'x\\\\y' '\\'' ''"),
        ("oracle", "x \"X\" 'q'", "x `X` 'q'"),
    ],
)
def test_names_and_texts_are_written_as_spark_writes_them(dialect: str, text: str, expected: str) -> None:
    assert rewritten(f"SELECT {text}", dialect)[0] == f"SELECT {expected}"


def test_variables_may_have_the_names_of_keywords_and_quoted_names() -> None:
    query = """SELECT * FROM r MATCH_RECOGNIZE (ORDER BY t
        MEASURES WHEN.x AS e, CLASSIFIER() AS v,
          CASE WHEN WHEN.x > 1 AND CLASSIFIER(when) = 'WHEN' THEN LAST("is b".x + "is b".y) END + 1 AS c
        PATTERN (when+ "is b") SUBSET "or" = (WHEN, "is b")
        DEFINE when AS WHEN.x < 3 AND "is b".k IS NULL AND "or".y < 1, "is b" AS k = 'it''s')"""
    rows = ROWS.from_pylist(
        [{"k": k, "x": x, "y": 0.5} for k, x in (("a", 1), ("a", 2), ("it's", 5))], schema=ROWS.schema
    )
    assert found_rows(query, rows, "trino") == [{"e": 2, "v": "is b", "c": 6.5}]


def test_what_spark_computes_reads_measures_in_its_place() -> None:
    text = """SELECT * FROM r MATCH_RECOGNIZE (ORDER BY t
        MEASURES x AS m, soundex(A.k) || k || AVG(y) AS `s``1`, COUNT(*) AS n
        ALL ROWS PER MATCH PATTERN (A))"""
    query = read_query(text, "query", "spark")
    (one,) = occurrences_in(query)
    schema = ROWS.schema
    plan = plan_of(query, one.clause, schema, in_spark=lambda name: name == "soundex")
    assert [measure.name for measure in plan.measures] == ["m", "@s`1.0", "@s`1.1", "@s`1.2", "n"]
    (outside,) = plan.outside
    assert outside.sql == "soundex(`@s``1.2`) || `@s``1.1` || `@s``1.0`"
    names = [name for name, _ in final_columns(plan, tuple(ROWS.column_names))]
    assert names == ["t", "m", "s`1", "n", "k", "x", "y", "a"]
    with pytest.raises(ConfigError, match='must be a known function; got "soundex"'):
        plan_of(query, one.clause, schema, in_spark=lambda name: False)


COMPUTED_BEFORE = """SELECT soundex(k) FROM r MATCH_RECOGNIZE (ORDER BY t
        MEASURES SUM(length(sub(A.k, 1 & 1, 2))) AS a, soundex(upper(k)) AS b, CAST(x AS CHAR(3)) AS c
        PATTERN (A B+) SUBSET u = (A, B)
        DEFINE A AS k IN ('a', 'b') AND soundex(A."k" || 'q') = 'q',
          B AS soundex(upper(k)) = PREV(soundex(B.K)) AND uuid() <> soundex(u.k)%s)"""


def test_what_spark_computes_before_is_a_column_of_the_clause() -> None:
    """Of one row, in a condition or inside a navigation; what reads the match stays as it is."""
    further = " AND soundex(PREV(k)) = soundex(A.k || k) AND other(k)"
    whole = read_query(COMPUTED_BEFORE % further, "query", "trino")
    asked: list[str] = []

    def is_sparks(name: str, call: str) -> bool:
        asked.append(call)
        return name != "other"

    found = beforehand(whole, occurrences_in(whole)[0].clause, ROWS.schema, is_sparks)
    places = {name.removesuffix(OF_SPARK): place for name, place in found.items()}
    assert places == {
        "sub(`k`, 1 & 1, 2)": "query:2:29",
        "soundex(`k` || 'q')": "query:4:41",
        "soundex(upper(k))": "query:5:16",
        "soundex(`K`)": "query:5:41",
        "uuid()": "query:5:59",
        "soundex(`k`)": "query:5:69",
    }
    assert [call for call in asked if call not in places] == ["other(k)"]
    query = read_query(COMPUTED_BEFORE % "", "query", "trino")
    (one,) = occurrences_in(query)
    columns = pa.schema([*ROWS.schema, *((name, pa.string()) for name in found)])
    plan = plan_of(query, one.clause, columns, in_spark=bool)
    assert plan.outside
    assert {*found} <= {*columns_of(plan.reads)}
    navigations = [one for part in plan.computed for one in part.slots if isinstance(one, Navigation)]
    slots = {one.of.attribute: one for one in navigations if isinstance(one.of, Column)}
    assert slots[f"soundex(`K`){OF_SPARK}"].variables == (1,)
    assert slots[f"soundex(`k`){OF_SPARK}"].variables == (0, 1)
    assert slots[f"uuid(){OF_SPARK}"].variables is None


def test_a_condition_may_be_a_constant() -> None:
    rows = ROWS.from_pylist([{"x": 1}, {"x": 2}], schema=ROWS.schema)
    query = (
        "SELECT m.* FROM r MATCH_RECOGNIZE(ORDER BY x MEASURES x AS m, 1 AS one PATTERN (A) DEFINE A AS {}) M"
    )
    assert found_rows(query.format("TRUE"), rows) == [{"m": 1, "one": 1}, {"m": 2, "one": 1}]
    assert found_rows(query.format("NULL"), rows) == []


@pytest.mark.parametrize(
    ("pattern", "counts"), [("A B{,}", [3, 1]), ("A B{,}? C", [2, 2]), ("A B{0,} C", [4])]
)
def test_rows_are_counted_whatever_constant_is_named(pattern: str, counts: list[int]) -> None:
    """And bounds may be left out, both of them."""
    rows = ROWS.from_pylist([{"x": x} for x in (9, 8, 7, 9)], schema=ROWS.schema)
    query = f"""SELECT * FROM r MATCH_RECOGNIZE (MEASURES COUNT(*) AS n, COUNT(1) AS o, COUNT() AS p,
        COUNT('x') AS q PATTERN ({pattern}) DEFINE B AS x < PREV(x) AND COUNT(r'a') > 1)"""
    assert [list(row.values()) for row in found_rows(query, rows)] == [[count] * 4 for count in counts]


@pytest.mark.parametrize(
    "before",
    ["", "t,", "FROM (t)), (SELECT 1", "FROM t JOIN u ON t.x = u.x", "FROM t WHERE x > 1"],
)
def test_what_is_no_input_is_refused(before: str) -> None:
    query = read_query(f"SELECT * {before} {CLAUSE}", "query", "spark")
    with pytest.raises(ConfigError, match="must follow a table, a view or a subquery"):
        occurrences_in(query)
