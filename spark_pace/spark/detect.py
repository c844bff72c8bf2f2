"""Finds the matches of rules in a user's streaming DataFrame, as another streaming DataFrame.

It must have the attributes of the rules' schema, in types that keep every value. Conditions that only compare
attributes with constants are written in Spark SQL, so that the JVM drops events that no rule wants.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import Column as ColumnOfSpark
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    CharType,
    DataType,
    DecimalType,
    NullType,
    StructType,
    TimestampNTZType,
    VarcharType,
)

from spark_pace.core.expr import (
    ARROW_TYPES,
    STRUCT,
    Call,
    Column,
    Expr,
    ExprType,
    Literal,
    array_element,
    decimal_digits,
    is_single,
)
from spark_pace.core.intake.pack import wanted
from spark_pace.core.match.row_patterns.rows import expression_type
from spark_pace.core.merger import matches_schema, merge
from spark_pace.core.operate.match_table import decode_result
from spark_pace.core.order import OrderSpec
from spark_pace.core.plan.plan import Plan, RulePlan, build_plan
from spark_pace.core.plan.rule import EventSchema, Field, Rule
from spark_pace.core.tables import SOURCE, chosen
from spark_pace.errors import ConfigError, EventError, one_line
from spark_pace.io.bad_records import BAD_SCHEMA, UNIT_US, event_times, with_places
from spark_pace.io.delta_tables import quoted
from spark_pace.io.event_files import EventsRead
from spark_pace.io.text.parsers import meant_column
from spark_pace.spark.checkpoint.layout import slot_keys
from spark_pace.spark.internals import spark_schema
from spark_pace.spark.stages.intake import Batches, Found, intake_rows
from spark_pace.spark.stages.operators import operated
from spark_pace.spark.stages.rows import RESULT, STATS, bodies
from spark_pace.spark.stages.splitter import split_rows

TESTS = {
    "and": "({} AND {})",
    "or": "({} OR {})",
    "not": "(NOT {})",
    "is_null": "({} IS NULL)",
    "=": "({} = {})",
    "<>": "({} <> {})",
    "<": "({} < {})",
    ">": "({} > {})",
    "<=": "({} <= {})",
    ">=": "({} >= {})",
    "<=>": "({} <=> {})",
    "like": "({} LIKE {})",
    "startswith": "startswith({}, {})",
    "endswith": "endswith({}, {})",
    "contains": "contains({}, {})",
}


def to_spark_filter(condition: Expr) -> str:
    """A condition in Spark SQL that is true where `condition` is true, and perhaps elsewhere.

    It only compares attributes with constants. Spark must not compute, because its results differ: its
    optimizer multiplies the constants of ``i * 5000000000 * 5000000000`` first, and it takes the parts of a
    time in the session's zone.
    """
    if isinstance(condition, Call) and condition.function in ("and", "or"):
        return TESTS[condition.function].format(*map(to_spark_filter, condition.arguments))
    return plain_sql(condition) if _is_plain(condition) else "true"


def _is_plain(expr: Expr) -> bool:
    return not isinstance(expr, Call) or (
        (expr.function in TESTS or expr.function == "in") and all(map(_is_plain, expr.arguments))
    )


def plain_sql(expr: Expr) -> str:
    """The Spark SQL for an attribute (the column of its name), a constant, or a test of these."""
    if isinstance(expr, Literal):
        return _literal(expr)
    if isinstance(expr, Column):
        return quoted(expr.attribute)
    assert isinstance(expr, Call)  # a single event has no aggregates
    arguments = [plain_sql(argument) for argument in expr.arguments]
    return in_sql(expr, arguments) if expr.function == "in" else TESTS[expr.function].format(*arguments)


def in_sql(call: Call, arguments: list[str]) -> str:
    """The Spark SQL for ``x in (1, 2)``; for DOUBLEs, a chain of equalities.

    Spark looks up DOUBLEs in a long list by their bits, so that -0.0 would differ from 0.0.
    """
    if call.arguments[0].type == "DOUBLE":
        return "(" + " OR ".join(f"({arguments[0]} = {item})" for item in arguments[1:]) + ")"
    return f"({arguments[0]} IN ({', '.join(arguments[1:])}))"


def _literal(literal: Literal) -> str:
    value = literal.value
    if value is None:
        return "NULL" if literal.type == "NULL" else f"CAST(NULL AS {literal.type})"
    if literal.type == "STRING":
        # Spark replaces ${...} before it parses, so a dollar sign must be written as an escape
        return "'" + str(value).replace("\\", "\\\\").replace("'", "\\'").replace("$", "\\u0024") + "'"
    if literal.type == "TIMESTAMP":
        return f"timestamp_micros({value}L)"
    if literal.type == "DATE":
        return f"date_from_unix_date({value})"
    return f"CAST('{value}' AS {literal.type})"


_PLAIN = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
UTC = ("UTC", "Etc/UTC", "GMT", "Z", "+00:00")

SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"


def require_events(df: DataFrame, schema: EventSchema) -> None:
    """Raise an error unless a DataFrame streams, and each attribute has a column of a type that fits.

    Raises:
        ConfigError: it does not stream, lacks a column, or has one whose values a cast could change.
    """
    if not df.isStreaming:
        do = "Make it by spark.readStream; for a table at rest take spark_pace.replay."
        raise ConfigError.of("detect", "must be given a streaming DataFrame", "one that does not stream", do)
    for field in schema.fields:
        try:
            found = df.select(_column(field, schema)).schema[0]
        except AnalysisException as error:
            raise _missing(df, field) from error
        _require_type(df, field, found.dataType)


def _column(field: Field, schema: EventSchema) -> ColumnOfSpark:
    return F.col(".".join(map(quoted, schema.path_of(field.name))))


def _missing(df: DataFrame, field: Field) -> ConfigError:
    meant = meant_column(field.name, df.columns)
    do = f"{meant} Rename it." if meant else "Add it, or correct the schema."
    must, got = f"must be given a DataFrame with the column {field.name}", ", ".join(df.columns) or "none"
    return ConfigError.of("detect", must, got, do)


def _require_type(df: DataFrame, field: Field, kind: DataType) -> None:
    got = f"{field.name} {kind.simpleString()}"
    must = f"must be given the column {field.name} as {field.type}, or as a type that it holds"
    if isinstance(kind, TimestampNTZType) and field.type == "TIMESTAMP":
        zone = df.sparkSession.conf.get("spark.sql.session.timeZone")
        if zone not in UTC:
            do = "Times without a zone are read as UTC: set spark.sql.session.timeZone to UTC."
            raise ConfigError.of("detect", must, f"{got}, in a session in {zone}", do)
    elif not _keeps(field.type, kind):
        do = f'Cast it before: df.withColumn("{field.name}", …), or correct the schema.'
        raise ConfigError.of("detect", must, got, do)


def _keeps(declared: ExprType, kind: DataType) -> bool:
    """True if every value of a column keeps its meaning in the declared type."""
    if isinstance(kind, NullType):
        return True
    if declared == STRUCT:
        return isinstance(kind, StructType)
    if (element := array_element(declared)) is not None:
        return isinstance(kind, ArrayType) and _keeps(element, kind.elementType)
    if (digits := decimal_digits(declared)) is not None:
        # Spark itself refuses a value with too many digits before the point
        return isinstance(kind, DecimalType) and kind.scale <= digits[1]
    found = expression_type(arrow_type(kind))
    return found == declared or (found, declared) == ("BIGINT", "DOUBLE")


def arrow_type(kind: DataType) -> pa.DataType:
    """The type of a column as expressions know it; one that they cannot read counts as bytes."""
    if isinstance(kind, DecimalType):
        return pa.decimal128(kind.precision, kind.scale)
    if isinstance(kind, VarcharType | CharType):
        return pa.string()
    return _PLAIN.get(kind.simpleString(), pa.binary())


COUNTS = ("events", "late", "carry", "open")  # the counters that Spark's metrics show


def detect(
    df: DataFrame,
    rules: Sequence[Rule],
    *,
    delay_us: int = 0,
    tie_break: Sequence[str] = (),
    slots: int | None = None,
) -> DataFrame:
    """Find the matches of `rules` in a streaming DataFrame, each as soon as it is decided.

    All rules count as having ``merge: detection``: the result is unordered and has no `out_seq`; to order it,
    sort by (`rule`, `selection_id`, `seq`).
    The frontier follows the event times of the rows that some rule uses; these times must be from 1900 to
    2199. Rows that fail a simple condition (attributes compared with constants) are dropped in the JVM.
    Late rows are left out. The query's ``lastProgress["observedMetrics"]["spark_pace"]`` counts them as
    `late`, besides `events`, `carry` and `open`. Spark runs a task per shuffle partition and batch: set
    ``spark.sql.shuffle.partitions`` to about the number of cores.

    Args:
        df: a streaming DataFrame with the attributes of the rules' schema; other columns are ignored.
        rules: all over one schema.
        delay_us: how many microseconds an event may come behind the newest one without being late.
        tie_break: the attributes that order events of the same time, before those of the schema's own
            `tie_break`. If there are none at all, all attributes order them.
        slots: the number of groups of the stateful stage; by default the shuffle partitions, at most eight.
            Do not change it, nor the rules, while a checkpoint is used.

    Raises:
        ConfigError: `df` does not stream or fit the schema, a rule reads others, or partitions lack a number.

    Returns:
        A streaming DataFrame: `rule, key, selection_id, seq, opened_at, matched_at`, all fields, `events`.
    """
    spark = df.sparkSession
    partitions = _known_partitions(spark)
    cores = spark.sparkContext.defaultParallelism
    plan = _plan(rules, delay_us, tie_break, min(slots or 8, partitions), cores)
    require_events(df, plan.schema)
    keys = slot_keys(spark, plan.slots, partitions)
    return _merged(operated(split_rows(_intake_rows(df, plan), plan, keys, cores), plan), plan)


def _intake_rows(df: DataFrame, plan: Plan) -> DataFrame:
    """The intake's rows (`SLOT_ROWS`), made of those rows of `df` that some rule may use."""
    fields = plan.schema.fields
    wanted_sql = " OR ".join(_stream_sql(plan, planned) for planned in plan.rules)
    typed = df.select(*(_declared(field, plan.schema) for field in fields)).where(wanted_sql)
    # columns are named by numbers, because mapInArrow takes a dot in a name for a field of a struct
    numbered = typed.toDF(*map(str, range(len(fields))))
    return intake_rows(numbered, plan, "fail", partial(_read, plan), None)


def _declared(field: Field, schema: EventSchema) -> ColumnOfSpark:
    """The column of an attribute, in its type and with its name; for a STRUCT, True where it is present."""
    column = _column(field, schema)
    if field.type == STRUCT:
        return F.when(column.isNotNull(), True).alias(field.name)
    return column.cast(field.type).alias(field.name)


def _merged(results: DataFrame, plan: Plan) -> DataFrame:
    """Turn the rows for the merger (`PART_ROWS`) into matches, and report the sums of `COUNTS` to Spark."""
    counts = F.when(F.col("kind") == STATS, F.col("body").cast("string"))
    sums = [F.sum(F.get_json_object(counts, f"$.{name}").cast("long")).alias(name) for name in COUNTS]
    observed = results.observe("spark_pace", *sums)
    schema = matches_schema(planned.rule for planned in plan.rules)
    return observed.mapInArrow(partial(_merge, plan), spark_schema(schema)).drop("out_seq")


def _plan(rules: Sequence[Rule], delay_us: int, tie_break: Sequence[str], slots: int, cores: int) -> Plan:
    for rule in rules:
        if rule.reads:
            must, got = "must be given rules that read events", f"{rule.name}, which reads other rules"
            raise ConfigError.of("detect", must, got, "Run rules over rules in a job, or by replay.")
    own = rules[0].schema
    if own.side_tables:
        must, got = "must be given rules whose events join no tables", "rules with events.lookup"
        do = "Join the tables to the DataFrame, and declare their columns in schema."
        raise ConfigError.of("detect", must, got, do)
    single = [field.name for field in own.fields if is_single(field.type)]
    for name in tie_break:
        if name not in single:
            must, got = "must name attributes of the rules that are single values", one_line(repr(name))
            raise ConfigError.of("tie_break", must, got, f"Use one of: {', '.join(single)}.")
    schema = replace(own, tie_break=tuple(dict.fromkeys([*tie_break, *own.tie_break])))
    return build_plan(
        [replace(rule, schema=schema, merge="detection") for rule in rules],
        order=OrderSpec(delay_us),
        slots=slots,
        buckets=slots,
        lanes=cores,
        on_operator_error="fail",
        tie_break="columns",
    )


def _stream_sql(plan: Plan, planned: RulePlan) -> str:
    """A condition in Spark SQL that is true for all events of a rule's stream, and perhaps for others."""
    tests = [to_spark_filter(plan.predicates[predicate]) for _, predicate in planned.bits]
    member = "true" if planned.takes_all else " OR ".join(tests)
    passes = "true" if planned.filter_bit is None else to_spark_filter(plan.predicates[planned.filter_bit])
    return f"(({member}) AND {passes})"


def _read(plan: Plan, batch: pa.RecordBatch) -> Iterator[Found]:
    """In a task: the events among rows with the schema's attributes; they have neither source nor offset."""
    schema, columns = plan.schema, zip(plan.schema.fields, batch.columns, strict=True)
    typed = pa.table({field.name: column.cast(ARROW_TYPES[field.type]) for field, column in columns})
    events = chosen(typed, wanted(plan, typed))
    counts, possible = event_times(events, schema)
    if not possible.all():
        must, do = "must be an event time from 1900 to 2199", "Filter such rows out before detect."
        raise EventError(f"{schema.event_time} — {must}; got null or another. {do}")
    nowhere = np.zeros(events.num_rows, np.int64)
    events = with_places(events, counts.to_numpy() * UNIT_US[schema.time_unit], nowhere)
    sources = pa.DictionaryArray.from_arrays(nowhere.astype(np.int32), pa.array([""]))
    events = events.add_column(1, SOURCE, sources)
    yield EventsRead(events, BAD_SCHEMA.empty_table(), events.num_rows), 0, ""


def _merge(plan: Plan, batches: Batches) -> Batches:
    """The merger for a DataFrame: takes results of operators, gives matches without `out_seq`."""
    results = (decode_result(body) for batch in batches for body in bodies(batch, RESULT))
    yield from merge(plan, results, {}).matches.to_batches()


def _known_partitions(spark: SparkSession) -> int:
    """The number that the session is set to.

    Raises:
        ConfigError: the platform chooses it, by ``auto``.
    """
    number = spark.conf.get(SHUFFLE_PARTITIONS) or "1"
    if not number.isdecimal():
        must, do = "must be a number where detect is called", "Set it to about the number of cores."
        raise ConfigError.of(SHUFFLE_PARTITIONS, must, number, do)
    return int(number)
