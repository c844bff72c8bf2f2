"""Queries with ``MATCH_RECOGNIZE`` in a Spark session: the clauses are ours, everything else is Spark's.

The tasks that read the rows of a row pattern sort and pack them, for those that search them. The search is
the least part of the work. Spark takes many times as long to sort rows and to hand them to Python. So each
task hands the rows that it reads to Python, sorts them there and packs them as frames, one for each bucket of
partitions; a task that searches unpacks and merges the frames of its buckets. Numbers are sorted quicker than
rows, and frames are moved quicker. Without ``PARTITION BY`` there is one bucket.

The plan is lazy and reads its input once. Each task takes some hundredths of a second to begin, so partitions
of a small input are put together before (`in_few_tasks`), as Spark does it with small files. Rows that are
equal in ``ORDER BY`` come in the order in which tasks read them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import ceil
from uuid import uuid4

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as kinds

from spark_pace.core.expr import Call, Expr, Literal, walk
from spark_pace.core.expr import Column as ColumnOfExpression
from spark_pace.core.expr.time_functions import KERNELS
from spark_pace.core.frames import decode, encode
from spark_pace.core.hashes import hash_nullable
from spark_pace.core.match.row_patterns.result import result_of
from spark_pace.core.match.row_patterns.rows import expression_type, sorted_table, typed
from spark_pace.core.operate.match_table import TAKEN_COLUMNS
from spark_pace.core.plan.meaning import attributes_of, columns_of
from spark_pace.core.plan.row_pattern import Measure, Outside, RowPattern, final_columns, output_columns
from spark_pace.core.plan.rule import EmitField, EventSchema, Field, Rule
from spark_pace.core.tables import Ints, concat
from spark_pace.errors import ConfigError
from spark_pace.io.delta_tables import quoted
from spark_pace.rules.match_recognize import require_bound, require_streaming
from spark_pace.rules.row_patterns.clause import Clause
from spark_pace.rules.row_patterns.meaning import plan_of
from spark_pace.rules.row_patterns.queries import Beforehand, Rewriting, beforehand, occurrences_in, replaced
from spark_pace.rules.row_patterns.words import Query, read_query
from spark_pace.spark.detect import UTC, detect, shuffle_partitions

_ENOUGH_BUCKETS = 512  # more would make frames small where rows are few
_BUCKETS_OF_TASK = 8
AT_ONCE_ROWS = 1 << 20  # rows of whole buckets that a task searches at a time, about
FRAME_BYTES = 32 << 20  # of the rows that are sorted and packed at a time, about
# Spark bounds what it hands to Python at a time by rows, 10,000 unless it is told otherwise
PIECE_BYTES = 1 << 13
PLACES = ("bucket", "task", "frame", "piece")  # where a piece belongs, in the order that `unpacked` needs
PIECES = ", ".join([*(f"{name} INT" for name in PLACES), "bytes BINARY"])
_SCHEMA = pa.schema([*((name, pa.int32()) for name in PLACES), ("bytes", pa.binary())])

Batches = Iterator[pa.RecordBatch]


def buckets_for(tasks: int) -> int:
    """How many buckets spread the partitions over so many tasks.

    Spark gives a bucket to a task by a hash: of as many buckets as tasks, few tasks would get nearly all.
    """
    return max(tasks, min(_BUCKETS_OF_TASK * tasks, _ENOUGH_BUCKETS))


def packed(plan: RowPattern, names: Sequence[str], buckets: int, task: int, batches: Batches) -> Batches:
    """The rows that a task reads as pieces of sorted frames (`PIECES`).

    Args:
        plan: the plan.
        names: the names of the columns.
        buckets: how many buckets the partitions are put into.
        task: the number of the task, in the order of the input.
        batches: the rows, in the order of the input.
    """
    for number, table in enumerate(_gathered(batches)):
        rows = sorted_table(table.rename_columns(list(names)), (), plan.order)
        pieces = []
        for bucket, part in _in_buckets(rows, plan.partition, buckets):
            frame = encode(part)
            for piece, at in enumerate(range(0, len(frame), PIECE_BYTES)):
                pieces.append((bucket, task, number, piece, frame[at : at + PIECE_BYTES]))
        arrays = [
            pa.array(cells, one.type) for cells, one in zip(zip(*pieces, strict=True), _SCHEMA, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(arrays, schema=_SCHEMA)


def _gathered(batches: Batches) -> Iterator[pa.Table]:
    waiting: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        waiting.append(batch)
        size += batch.nbytes
        if size >= FRAME_BYTES:
            yield pa.Table.from_batches(waiting)
            waiting, size = [], 0
    if any(batch.num_rows for batch in waiting):
        yield pa.Table.from_batches(waiting)


def _in_buckets(rows: pa.Table, partition: Sequence[str], buckets: int) -> Iterator[tuple[int, pa.Table]]:
    """The buckets that have rows, and these rows, which stay in their order."""
    if buckets == 1:
        yield 0, rows
        return
    of = _buckets(rows, partition, buckets)
    together = np.argsort(of, kind="stable")
    rows, bounds = rows.take(pa.array(together)), np.searchsorted(of[together], np.arange(buckets + 1))
    for bucket in np.flatnonzero(np.diff(bounds)).tolist():
        yield bucket, rows.slice(bounds[bucket], bounds[bucket + 1] - bounds[bucket])


def _buckets(rows: pa.Table, partition: Sequence[str], buckets: int) -> Ints:
    """The bucket of each row, one for all rows of a partition, in the least type, which is sorted fastest."""
    hashes = np.zeros(rows.num_rows, np.uint64)
    for name in partition:
        hashes = hashes * np.uint64(31) + hash_nullable(typed(rows, name))  # null is a key too
    return (hashes % np.uint64(buckets)).astype(np.min_scalar_type(buckets))  # type: ignore[no-any-return]


def unpacked(plan: RowPattern, batches: Batches) -> Iterator[pa.Table]:
    """All rows of some buckets at a time, the rows of each partition together and sorted.

    Args:
        plan: the plan.
        batches: the pieces of some buckets, sorted by `PLACES`.
    """
    frames: list[pa.Table] = []
    bucket = rows = 0
    for of, frame in _frames(batches):
        if of != bucket and rows >= AT_ONCE_ROWS:
            yield _merged(plan, frames)
            rows = 0
        frames.append(frame)
        bucket, rows = of, rows + frame.num_rows
    if frames:
        yield _merged(plan, frames)


def _merged(plan: RowPattern, frames: list[pa.Table]) -> pa.Table:
    rows = concat(frames)
    frames.clear()  # frees their memory
    return sorted_table(rows, plan.partition, plan.order)


def _frames(batches: Batches) -> Iterator[tuple[int, pa.Table]]:
    """The frames, each with its bucket."""
    parts: list[bytes] = []
    last = (0, 0, 0)
    for batch in batches:
        for *frame, _, part in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            if parts and last != tuple(frame):
                yield last[0], decode(b"".join(parts))
                parts = []
            last = (frame[0], frame[1], frame[2])
            parts.append(part)
    if parts:
        yield last[0], decode(b"".join(parts))


_UNCERTAIN = "INVALID_NON_DETERMINISTIC_EXPRESSIONS"
_OF_SEVERAL_ROWS = ("INVALID_WHERE_CONDITION", "UNSUPPORTED_GENERATOR", "WINDOW_FUNCTION")  # Spark's errors
_FIRST_WORDS = 6  # CREATE OR REPLACE GLOBAL TEMPORARY VIEW
TASK_BYTES = 4 << 20  # a task is worth that many of its input, at which Spark counts the opening of a file
_UNITS = ("B", "KiB", "MiB", "GiB")
# the first one is that of the whole; what is larger has other units, and no groups
_SIZE = re.compile(rf"sizeInBytes=(?:([\d.]+) ({'|'.join(_UNITS)})\b)?")
_PLAIN: list[tuple[kinds.DataType, pa.DataType]] = [
    (kinds.BooleanType(), pa.bool_()),
    (kinds.ByteType(), pa.int8()),
    (kinds.ShortType(), pa.int16()),
    (kinds.IntegerType(), pa.int32()),
    (kinds.LongType(), pa.int64()),
    (kinds.FloatType(), pa.float32()),
    (kinds.DoubleType(), pa.float64()),
    (kinds.StringType(), pa.string()),
    (kinds.DateType(), pa.date32()),
    (kinds.TimestampType(), pa.timestamp("us", "UTC")),
    (kinds.TimestampNTZType(), pa.timestamp("us")),
]
_ANY_ZONE = {"unix_millis", "unix_micros", "unix_seconds", "timestamp_micros"}
_DELAY = "spark.watermarkDelayMs"  # the key under which Spark notes the delay beside a column
_TYPES: dict[type[kinds.DataType], str] = {
    kinds.BooleanType: "BOOLEAN",
    **dict.fromkeys((kinds.ByteType, kinds.ShortType, kinds.IntegerType, kinds.LongType), "BIGINT"),
    **dict.fromkeys((kinds.FloatType, kinds.DoubleType), "DOUBLE"),
    kinds.StringType: "STRING",
    kinds.DateType: "DATE",
    kinds.TimestampType: "TIMESTAMP",
}


def sql(spark: SparkSession, text: str, dialect: str, most_steps: int) -> DataFrame:
    """Do what `spark_pace.sql` says."""
    query = read_query(text, "query", dialect)
    rewriting = Rewriting(query, occurrences_in(query))
    _refuse_view(rewriting)
    views: list[str] = []

    def view(number: int, of_input: str) -> str:
        frame = spark.sql(of_input)
        names, one = tuple(frame.columns), Beforehand(query, rewriting.occurrences[number].clause, {})
        if not frame.isStreaming:
            one = beforehand(query, one.clause, names, partial(_is_sparks, frame))
            _require_certain(frame, one, query)
            frame = frame.select("*", *(F.expr(sql).alias(name) for name, sql in one.columns.items()))
        plan = plan_of(one.query, one.clause, _arrow_schema(frame), most_steps, spark.catalog.functionExists)
        _require_usable(frame, plan)
        if not frame.isStreaming:
            frame = in_few_tasks(frame, of_input)
        views.append(f"spark_pace_{uuid4().hex}")
        found = _streamed(frame, plan, query, one.clause) if frame.isStreaming else matched(frame, plan)
        whole = _typed(frame, plan, found)
        for measure in plan.outside:
            _require_of_one_row(whole, measure, one)
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


def _require_certain(frame: DataFrame, one: Beforehand, query: Query) -> None:
    """Refuse a function whose value does not follow from the row: written twice it would have one value.

    Spark takes none of these in the condition of a join, and says so at once.

    Raises:
        ConfigError: there is one.
    """
    other = frame.sparkSession.range(0).select(F.lit(1).alias("@other"))
    for name, sql in one.columns.items():
        try:
            frame.join(other, F.expr(sql).isNull())
        except AnalysisException as error:
            if error.getCondition() != _UNCERTAIN:
                raise
            word = next(word for word in one.query.words if word.text == name)
            must = "must be a function whose value follows from the row"
            do = "Compute it in a subquery as a column, and read that column."
            query.fail(word, must, query.shown([word]), do)


def _require_of_one_row(whole: DataFrame, measure: Outside, one: Beforehand) -> None:
    """Refuse a measure by which Spark would put matches together, or make several rows of one.

    Raises:
        ConfigError: it does.
    """
    if is_of_one_row(whole, measure.sql):
        return
    query = one.query
    text = next(named.text for named in one.clause.measures if named.name.text == measure.name)
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
    spark = frame.sparkSession
    partitions = shuffle_partitions(spark) or spark.sparkContext.defaultParallelism
    buckets = buckets_for(partitions) if plan.partition else 1
    pieces = rows.mapInArrow(packing(plan, names, buckets), PIECES)
    together = pieces.repartition("bucket") if plan.partition else pieces.repartition(1)
    return together.sortWithinPartitions(*PLACES).mapInArrow(searching(plan), schema)


def in_few_tasks(frame: DataFrame, query: str) -> DataFrame:
    """The same rows, in no more partitions than there are task slots, and than their size is worth tasks.

    Args:
        frame: the input.
        query: the query that it answers, of which Spark estimates the size; without that it stays as it is.
    """
    slots = frame.sparkSession.sparkContext.defaultParallelism
    told = frame.sparkSession.sql(f"EXPLAIN COST {query}").first()
    size = _SIZE.search(told[0]) if told else None
    if size is None or size[1] is None:
        return frame
    return frame.coalesce(max(slots, ceil(float(size[1]) * 1024 ** _UNITS.index(size[2]) / TASK_BYTES)))


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
    if pa.types.is_decimal(one.type):
        return kinds.DecimalType(one.type.precision, one.type.scale)
    return next(kind for kind, arrow in _PLAIN if arrow == one.type)


def _arrow_schema(frame: DataFrame) -> pa.Schema:
    """The columns as expressions know them; those that they cannot read count as bytes."""
    plain = dict(_PLAIN)

    def arrow(kind: kinds.DataType) -> pa.DataType:
        if isinstance(kind, kinds.DecimalType):
            return pa.decimal128(kind.precision, kind.scale)
        return plain.get(kind, pa.binary())

    return pa.schema([(field.name, arrow(field.dataType)) for field in frame.schema])


def packing(plan: RowPattern, names: tuple[str, ...], buckets: int) -> Callable[[Batches], Batches]:
    """What a task does with the rows that it reads: it sorts them and packs them in buckets."""

    def pack(batches: Batches) -> Batches:
        context = TaskContext.get()
        assert context is not None
        return packed(plan, names, buckets, context.partitionId(), batches)

    return pack


def searching(plan: RowPattern) -> Callable[[Batches], Batches]:
    """What a task does with all rows of some buckets, as others have packed them: it searches them.

    Errors come without the calls that led to them, which Spark would show with them.
    """

    def search(batches: Batches) -> Batches:
        try:
            for rows in unpacked(plan, batches):
                yield from _numbered(result_of(plan, rows))
        except ConfigError as error:
            raise error.with_traceback(None) from None

    return search


def _numbered(table: pa.Table) -> Batches:
    named = table.rename_columns(list(map(str, range(table.num_columns))))
    yield from named.combine_chunks().to_batches(AT_ONCE_ROWS)


def _require_usable(frame: DataFrame, plan: RowPattern) -> None:
    """Refuse times that would be read in another zone than Spark reads them.

    Raises:
        ConfigError: there are some.
    """
    zone = str(frame.sparkSession.conf.get("spark.sql.session.timeZone"))
    if zone in UTC:
        return
    nodes = [node for expr in _computed(plan) for node in walk(expr)]
    if any(_depends_on_zone(node, frame) for node in nodes):
        must = "hours, days, constants of times and times without a zone must be computed in UTC"
        do = "Set spark.sql.session.timeZone to UTC, or compute them in a subquery."
        raise ConfigError.of(plan.where, must, f"a session in {zone}", do)


def _computed(plan: RowPattern) -> Iterator[Expr]:
    """Everything that is computed: of rows, and over slots."""
    parts = [part for one in plan.conditions for part in (*one.fixed, *one.of_match)]
    for part in [*parts, *(one.value for one in plan.measures if one.stored is None)]:
        yield part.expr
        for slot in part.slots:
            of = getattr(slot, "of", None)
            if of is not None:
                yield of


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
        EmitField(f"measure{number}", _type_of(one.stored, str(expression_type(one.type)), types), None)
        for number, one in enumerate(plan.measures)
    )
    rule = Rule("rows", schema, None, plan.partition, None, None, None, "detection", emit, rows=plan)
    found = detect(frame.select(*(F.col(quoted(name)) for name in types)), [rule], delay_us=delay_us)
    names = [*plan.partition, *(field.name for field in emit)]
    return found.select(*(F.col(quoted(name)).alias(str(number)) for number, name in enumerate(names)))


def _type_of(stored: str | None, computed: str, types: dict[str, str]) -> str:
    return computed if stored is None else types[stored]


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
    kind = column.dataType
    if isinstance(kind, kinds.DecimalType):
        return Field(column.name, f"DECIMAL({kind.precision},{kind.scale})")
    found = _TYPES.get(type(kind))
    if found is None:
        must = "must read columns of plain types, where the input streams"
        do = "Cast it, or take a part of it, in a subquery."
        raise ConfigError.of(plan.where, must, f"{column.name}, {kind.simpleString()}", do)
    if column.name.lower() in TAKEN_COLUMNS or not column.name.isidentifier():
        must = "must read columns that are named by letters, digits and _, where the input streams"
        do = f"Rename it in a subquery, but not to {', '.join(TAKEN_COLUMNS)}."
        raise ConfigError.of(plan.where, must, column.name, do)
    return Field(column.name, found)
