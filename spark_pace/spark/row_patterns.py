"""Queries with ``MATCH_RECOGNIZE`` in a Spark session: the clauses are ours, everything else is Spark's.

Spark brings the rows of a partition to one task, which sorts all its rows in Python, in a third of the time
that Spark takes to sort them, and searches them. Without ``PARTITION BY`` one task has all rows. The plan is
lazy and reads its input once. Rows that are equal in ``ORDER BY`` come in the order of the input.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from uuid import uuid4

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as kinds

from spark_pace.core.expr import Call, Expr, Literal, walk
from spark_pace.core.expr import Column as ColumnOfExpression
from spark_pace.core.expr.time_functions import KERNELS
from spark_pace.core.match.row_patterns.result import result_of
from spark_pace.core.match.row_patterns.rows import expression_type, sorted_table
from spark_pace.core.operate.match_table import TAKEN_COLUMNS
from spark_pace.core.plan.meaning import attributes_of, columns_of
from spark_pace.core.plan.row_pattern import (
    Measure,
    OrderKey,
    Outside,
    RowPattern,
    final_columns,
    output_columns,
)
from spark_pace.core.plan.rule import EmitField, EventSchema, Field, Rule
from spark_pace.core.tables import concat
from spark_pace.errors import ConfigError, one_line
from spark_pace.io.delta_tables import quoted
from spark_pace.rules.match_recognize import require_bound, require_streaming
from spark_pace.rules.row_patterns.clause import Clause
from spark_pace.rules.row_patterns.expressions import OF_SPARK
from spark_pace.rules.row_patterns.meaning import beforehand, plan_of
from spark_pace.rules.row_patterns.queries import Rewriting, occurrences_in, replaced
from spark_pace.rules.row_patterns.words import Query, read_query
from spark_pace.spark.detect import UTC, arrow_type, detect
from spark_pace.spark.internals import spark_schema

AT_ONCE_ROWS = 1 << 20  # rows of the result that a task hands over at a time, at most
_AT = "\0"  # names the column of the place that a row has in the input; no column of a user has that name

Batches = Iterator[pa.RecordBatch]

_UNCERTAIN = "INVALID_NON_DETERMINISTIC_EXPRESSIONS"
_OF_SEVERAL_ROWS = ("INVALID_WHERE_CONDITION", "UNSUPPORTED_GENERATOR", "WINDOW_FUNCTION")  # Spark's errors
_FIRST_WORDS = 6  # CREATE OR REPLACE GLOBAL TEMPORARY VIEW
_ANY_ZONE = {"unix_millis", "unix_micros", "unix_seconds", "timestamp_micros"}
_DELAY = "spark.watermarkDelayMs"  # the key under which Spark notes the delay beside a column


def sql(spark: SparkSession, text: str, dialect: str, most_steps: int) -> DataFrame:
    """Do what `spark_pace.sql` says."""
    query = read_query(text, "query", dialect)
    rewriting = Rewriting(query, occurrences_in(query))
    _refuse_view(rewriting)
    views: list[str] = []

    def view(number: int, of_input: str) -> str:
        frame = spark.sql(of_input)
        names, clause = tuple(frame.columns), rewriting.occurrences[number].clause
        if not frame.isStreaming:
            further = beforehand(query, clause, _arrow_schema(frame), partial(_is_sparks, frame))
            _require_certain(frame, further)
            frame = frame.select("*", *(_computed_by(name).alias(name) for name in further))
        plan = plan_of(query, clause, _arrow_schema(frame), most_steps, spark.catalog.functionExists)
        _require_usable(frame, plan)
        views.append(f"spark_pace_{uuid4().hex}")
        found = _streamed(frame, plan, query, clause) if frame.isStreaming else matched(frame, plan)
        whole = _typed(frame, plan, found)
        for measure in plan.outside:
            _require_of_one_row(whole, measure, query, clause)
        _named(names, plan, whole).createOrReplaceTempView(views[-1])
        return views[-1]

    try:
        return spark.sql(replaced(rewriting, view))
    finally:
        for name in views:  # the plan of the query does not need them any more
            spark.catalog.dropTempView(name)


def _refuse_view(rewriting: Rewriting) -> None:
    """Refuse a statement that keeps its text, in which the views are named that are dropped at its end.

    Raises:
        ConfigError: it makes a view.
    """
    words = rewriting.query.words
    named = [word.upper for word in words[: _FIRST_WORDS if rewriting.occurrences else 0]]
    if named[:1] == ["CREATE"] and "VIEW" in named:
        must, do = "must be a query, not a view of one", "Call createOrReplaceTempView of the result."
        rewriting.query.fail(words[named.index("VIEW")], must, "CREATE VIEW", do)


def _typed(frame: DataFrame, plan: RowPattern, found: DataFrame) -> DataFrame:
    """The rows of the result, with names and types, before Spark computes measures; `found` has numbers."""
    columns = output_columns(plan, tuple(frame.columns))
    return found.select(
        *(F.col(str(at)).cast(_type(frame, name, one)).alias(name) for at, (name, one) in enumerate(columns))
    )


def is_of_one_row(frame: DataFrame, sql: str) -> bool:
    """Tell whether an expression has no aggregate, no window function, and nothing that makes several rows.

    Spark takes none of these in WHERE, and says so at once. What else is wrong is told where it is selected.
    """
    try:
        frame.where(F.expr(sql).isNull())
    except AnalysisException as error:
        return not str(error.getCondition()).startswith(_OF_SEVERAL_ROWS)
    return True


def _is_sparks(frame: DataFrame, function: str, call: str) -> bool:
    """Tell whether Spark can compute a call of a function of one row of a DataFrame."""
    if not frame.sparkSession.catalog.functionExists(function):
        return False
    try:
        frame.select(F.expr(call))
    except AnalysisException:
        return False
    return is_of_one_row(frame, call)


def _computed_by(name: str) -> Column:
    """What Spark computes as a further column."""
    return F.expr(name.removesuffix(OF_SPARK))


def _require_certain(frame: DataFrame, further: dict[str, str]) -> None:
    """Refuse a function whose value does not follow from the row: written twice it would have one value.

    Spark takes none of these in the condition of a join, and says so at once.

    Raises:
        ConfigError: there is one.
    """
    other = frame.sparkSession.range(0).select(F.lit(1).alias("@other"))
    for name, place in further.items():
        try:
            frame.join(other, _computed_by(name).isNull())
        except AnalysisException as error:
            if error.getCondition() != _UNCERTAIN:
                raise
            must = "must be a function whose value follows from the row"
            do = "Compute it in a subquery as a column, and read that column."
            got = f'"{one_line(name.removesuffix(OF_SPARK))}"'
            raise ConfigError.of(place, must, got, do) from error


def _require_of_one_row(whole: DataFrame, measure: Outside, query: Query, clause: Clause) -> None:
    """Refuse a measure by which Spark would put matches together, or make several rows of one.

    Raises:
        ConfigError: it does.
    """
    if is_of_one_row(whole, measure.sql):
        return
    text = next(named.text for named in clause.measures if named.name.text == measure.name)
    must = "must be a value of one match: count, sum, avg, min and max are the aggregates of its rows"
    do = "Compute other aggregates from ALL ROWS PER MATCH, grouped by MATCH_NUMBER() and the partition."
    query.fail(text.word, must, query.shown(query.words[text.at : text.end]), do)


def _named(names: tuple[str, ...], plan: RowPattern, whole: DataFrame) -> DataFrame:
    """The rows of the result with the measures that Spark computes; `names` are those of the input."""
    final = final_columns(plan, names)
    return whole.select(*(F.expr(one.sql if one else quoted(name)).alias(name) for name, one in final))


def matched(frame: DataFrame, plan: RowPattern) -> DataFrame:
    """The rows of the result, with numbers for names."""
    names, rows = _columns_read(frame, plan)
    types = [_type(frame, name, one) for name, one in output_columns(plan, names)]
    schema = kinds.StructType([kinds.StructField(str(at), kind) for at, kind in enumerate(types)])
    keys = [str(names.index(name)) for name in plan.partition]
    rows = rows.withColumn(_AT, F.monotonically_increasing_id())
    together = rows.repartition(*keys) if keys else rows.repartition(1)
    return together.mapInArrow(searching(plan, names), schema)


def _columns_read(frame: DataFrame, plan: RowPattern) -> tuple[tuple[str, ...], DataFrame]:
    """The names of the columns that a task must have, and a DataFrame of these columns, named by numbers.

    `mapInArrow` takes a dot in a name for a field of a struct, and it is handed all columns that there are.
    """
    names, every = tuple(frame.columns), range(len(frame.columns))
    needed = set(names)
    if plan.rows == "one":
        order, stored = (key.column for key in plan.order), (one.stored for one in plan.measures)
        read = {*plan.partition, *order, *columns_of(plan.reads), *stored}
        needed = {name for name in names if name in read} or {names[0]}
    places = [at for at in every if names[at] in needed]
    numbered = frame.toDF(*map(str, every)).select(*(F.col(quoted(str(at))) for at in places))
    return tuple(names[at] for at in places), numbered.toDF(*map(str, range(len(places))))


def _type(frame: DataFrame, name: str, one: Measure | None) -> kinds.DataType:
    column = name if one is None else one.stored
    if one is None or column is not None:
        return frame.schema[column or name].dataType
    return spark_schema(pa.schema([("", one.type)]))[0].dataType


def _arrow_schema(frame: DataFrame) -> pa.Schema:
    """The columns as expressions know them; those that they cannot read count as bytes."""
    return pa.schema([(field.name, arrow_type(field.dataType)) for field in frame.schema])


def searching(plan: RowPattern, names: tuple[str, ...]) -> Callable[[Batches], Batches]:
    """What a task does with all rows of some partitions: it sorts and searches them.

    Errors come without the calls that led to them, which Spark would show with them.
    """

    def search(batches: Batches) -> Batches:
        tables = [pa.Table.from_batches([batch]) for batch in batches if batch.num_rows]
        if not tables:
            return
        rows = concat(tables).rename_columns([*names, _AT])
        tables.clear()  # frees their memory
        rows = sorted_table(rows, plan.partition, (*plan.order, OrderKey(_AT, False, True)))
        try:
            found = result_of(plan, rows.drop_columns(_AT))
            named = found.rename_columns(list(map(str, range(found.num_columns))))
            yield from named.combine_chunks().to_batches(AT_ONCE_ROWS)
        except ConfigError as error:
            raise error.with_traceback(None) from None

    return search


def _require_usable(frame: DataFrame, plan: RowPattern) -> None:
    """Refuse times that would be read in another zone than Spark reads them.

    Raises:
        ConfigError: there are some.
    """
    zone = str(frame.sparkSession.conf.get("spark.sql.session.timeZone"))
    if zone in UTC:
        return
    here = replace(plan, measures=tuple(one for one in plan.measures if one.stored is None))
    computed = (*(part.expr for part in here.computed), *here.reads)
    if any(_depends_on_zone(node, frame) for expr in computed for node in walk(expr)):
        must = "hours, days, constants of times and times without a zone must be computed in UTC"
        do = "Set spark.sql.session.timeZone to UTC, or compute them in a subquery."
        raise ConfigError.of(plan.where, must, f"a session in {zone}", do)


def _depends_on_zone(node: Expr, frame: DataFrame) -> bool:
    if isinstance(node, Literal):
        return node.type == "TIMESTAMP" and node.value is not None
    if isinstance(node, ColumnOfExpression):
        named = node.attribute in frame.columns  # else it is a slot
        return named and isinstance(frame.schema[node.attribute].dataType, kinds.TimestampNTZType)
    if not isinstance(node, Call):
        return False
    times = "TIMESTAMP" in (node.type, *(one.type for one in node.arguments))
    return times and (
        node.function == "cast" or (node.function in KERNELS and node.function not in _ANY_ZONE)
    )


def _streamed(frame: DataFrame, plan: RowPattern, query: Query, clause: Clause) -> DataFrame:
    """The key and the measures of each match in a streaming DataFrame, found as `detect` finds them.

    Both are named by their numbers, in the order of the result.

    Raises:
        ConfigError: the clause asks for what a stream cannot answer.
    """
    delay_us = _delay_us(frame, plan, query, clause)
    order = tuple(key.column for key in plan.order)
    used = {*attributes_of(plan.reads), *plan.partition, *order}
    fields = tuple(_field(frame.schema[name], plan) for name in frame.columns if name in used)
    schema = EventSchema(fields, order[0], order[1:])
    require_streaming(query, clause, plan, schema)
    require_bound(query, clause, plan, "forget_key_after to a rule with match_recognize")
    types = {field.name: field.type for field in fields}
    emit = tuple(
        EmitField(f"measure{at}", types[one.stored] if one.stored else str(expression_type(one.type)), None)
        for at, one in enumerate(plan.measures)
    )
    rule = Rule("rows", schema, None, plan.partition, None, None, None, "detection", emit, rows=plan)
    found = detect(frame.select(*(F.col(quoted(name)) for name in types)), [rule], delay_us=delay_us)
    names = [*plan.partition, *(field.name for field in emit)]
    return found.select(*(F.col(quoted(name)).alias(str(number)) for number, name in enumerate(names)))


def _delay_us(frame: DataFrame, plan: RowPattern, query: Query, clause: Clause) -> int:
    """How late rows may come, as the watermark says it of the column that orders them first."""
    metadata = frame.schema[plan.order[0].column].metadata if plan.order else {}
    if _DELAY not in metadata:
        at = clause.order[0].name if clause.order else clause.opening
        must = "must be ordered by the column of a watermark first, where the input streams"
        do = 'Call withWatermark("time", "1 minute") of the DataFrame, and write ORDER BY time.'
        query.fail(at, must, "another column" if plan.order else "none", do)
    return int(metadata[_DELAY]) * 1000


def _field(column: kinds.StructField, plan: RowPattern) -> Field:
    """A column as an attribute of events.

    Raises:
        ConfigError: it has a type that attributes do not have, or no match can have its name.
    """
    found = expression_type(arrow_type(column.dataType))
    if found is None or isinstance(column.dataType, kinds.TimestampNTZType):
        must = "must read columns of plain types, where the input streams"
        do = "Cast it, or take a part of it, in a subquery."
        raise ConfigError.of(plan.where, must, f"{column.name}, {column.dataType.simpleString()}", do)
    if column.name.lower() in TAKEN_COLUMNS or not column.name.isidentifier():
        must = "must read columns that are named by letters, digits and _, where the input streams"
        do = f"Rename it in a subquery, but not to {', '.join(TAKEN_COLUMNS)}."
        raise ConfigError.of(plan.where, must, column.name, do)
    return Field(column.name, found)
