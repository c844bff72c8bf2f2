"""Matches of a user's streaming DataFrame, as a streaming DataFrame."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from spark_pace.core.columns import NO_FRONTIER, OFFSET, SOURCE, TIME, array, chosen
from spark_pace.core.expr import ARROW_TYPES
from spark_pace.core.intake.pack import wanted
from spark_pace.core.merger import matches_schema, merge
from spark_pace.core.operate.match_table import EVENTS_TYPE
from spark_pace.core.order.order import OrderSpec
from spark_pace.core.plan.plan import Plan, RulePlan, build_plan
from spark_pace.core.plan.rule import Field, Rule
from spark_pace.errors import EventError
from spark_pace.io.delta import quoted
from spark_pace.io.files import EARLIEST_US, END_US, UNIT_US
from spark_pace.spark.checkpoint.layout import slot_keys
from spark_pace.spark.pipeline import match_rows
from spark_pace.spark.spark_filter import to_spark_filter
from spark_pace.spark.stages.intake import TaskIntake
from spark_pace.spark.stages.rows import RESULT, SLOT_ROWS, STATS, Row, to_batches

Batches = Iterator[pa.RecordBatch]
COUNTS = ("events", "late", "carry", "open")  # those of `StepOutput.stats` that Spark is told


def detect(
    df: DataFrame,
    rules: Sequence[Rule],
    *,
    delay_us: int = 0,
    tie_break: Sequence[str] = (),
    slots: int | None = None,
) -> DataFrame:
    """The matches of `rules` in a streaming DataFrame, each as soon as it is decided.

    Every rule is taken as with ``merge: detection``: the result is in no order and has no `out_seq`; sort what you
    need by (`rule`, `selection_id`, `seq`). The frontier moves with the event times of the rows that some rule wants;
    these must have an event time from 1900 to 2199. Where a condition only compares attributes and constants, other
    rows do not even cross into Python. Late ones are left out and counted, with `events`, `carry` and `open`, in the
    query's ``lastProgress["observedMetrics"]["spark_pace"]``. Spark runs a task per shuffle partition and batch: set
    ``spark.sql.shuffle.partitions`` to about the number of cores.

    Args:
        df: has the attributes of the rules' schema; others are ignored.
        rules: over one schema.
        delay_us: allowed lateness in microseconds.
        tie_break: attributes that order events of one event time, before those the schema names; if there are none
            at all, all attributes do.
        slots: groups of the stateful stage, by default the shuffle partitions, eight at the most. Keep it, and the
            rules, for the life of a checkpoint.

    Returns:
        `rule, key, selection_id, seq, opened_at, matched_at`, every field of every rule, and `events`.
    """
    spark = df.sparkSession
    partitions = int(spark.conf.get("spark.sql.shuffle.partitions") or 1)
    cores = spark.sparkContext.defaultParallelism
    plan = _plan(rules, delay_us, tie_break, min(slots or 8, partitions), cores)
    fields = plan.schema.fields
    wanted = df.select(*(F.col(quoted(field.name)).cast(field.type) for field in fields)).where(
        wanted_sql(plan)
    )
    rows = wanted.select(*map(_crossing, fields)).mapInArrow(ColumnsIntake(plan).stage(), SLOT_ROWS)
    results = match_rows(rows, plan, slot_keys(spark, plan.slots, partitions), cores)
    counts = F.when(F.col("kind") == STATS, F.col("body").cast("string"))
    observed = results.observe(
        "spark_pace",
        *(F.sum(F.get_json_object(counts, f"$.{name}").cast("long")).alias(name) for name in COUNTS),
    )
    crossing = _without_zone(matches_schema(plan))
    merged = observed.mapInArrow(ResultsMerger(plan).stage(), from_arrow_schema(crossing))
    return merged.select(*(_final(field) for field in matches_schema(plan) if field.name != "out_seq"))


def _plan(rules: Sequence[Rule], delay_us: int, tie_break: Sequence[str], slots: int, cores: int) -> Plan:
    own = rules[0].schema
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


def wanted_sql(plan: Plan) -> str:
    """What the JVM lets through: at least the events that belong to some rule's stream; the intake finds which do."""
    return " OR ".join(_stream_sql(plan, rule) for rule in plan.rules)


def _stream_sql(plan: Plan, rule: RulePlan) -> str:
    member = (
        "true"
        if rule.takes_all
        else " OR ".join(to_spark_filter(plan.predicates[predicate]) for _, predicate in rule.bits)
    )
    passes = "true" if rule.filter_bit is None else to_spark_filter(plan.predicates[rule.filter_bit])
    return f"(({member}) AND {passes})"


def _crossing(field: Field) -> Column:
    """Times cross as numbers: as timestamps they would bear the name of the session's zone."""
    column = F.col(quoted(field.name))
    return F.unix_micros(column).alias(field.name) if field.type == "TIMESTAMP" else column


@dataclass(frozen=True)
class ColumnsIntake:
    """Host of the intake for columns: rows of the schema in, frames for the slots out."""

    plan: Plan

    def stage(self) -> Callable[[Batches], Batches]:
        """The function for `mapInArrow`."""
        return lambda batches: to_batches(self._rows(batches), "slot")

    def _rows(self, batches: Batches) -> Iterator[Row]:
        intake = TaskIntake(
            self.plan, NO_FRONTIER, "fail"
        )  # no driver tells the frontier here: the splitters decide what is late
        for batch in batches:
            yield from intake.take(self._events(pa.Table.from_batches([batch])))
        yield from intake.rows_at_end()

    def _events(self, table: pa.Table) -> pa.Table:
        schema = self.plan.schema
        typed = pa.table(
            {field.name: table.column(field.name).cast(ARROW_TYPES[field.type]) for field in schema.fields}
        )
        events = chosen(typed, wanted(self.plan, typed))
        counts = array(events, schema.event_time).cast(pa.int64())
        unit = UNIT_US[schema.time_unit]
        possible = pc.and_(pc.greater_equal(counts, EARLIEST_US // unit), pc.less(counts, END_US // unit))
        if not pc.all(pc.fill_null(possible, False)).as_py():
            raise EventError(
                f"{schema.event_time} — must be an event time from 1900 to 2199; got null or another. Filter such rows out before detect."
            )
        rows = events.num_rows
        nowhere = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array([""]))
        ours = {TIME: pc.multiply(counts, unit), SOURCE: nowhere, OFFSET: pa.array(np.zeros(rows, np.int64))}
        return pa.table([*ours.values(), *events.columns], [*ours, *events.column_names])


@dataclass(frozen=True)
class ResultsMerger:
    """Host of the merger where nothing is numbered: results in, matches out."""

    plan: Plan

    def stage(self) -> Callable[[Batches], Batches]:
        """The function for `mapInArrow`."""
        return self._merge

    def _merge(self, batches: Batches) -> Batches:
        results = [
            body
            for batch in batches
            for kind, body in zip(*map(pa.Array.to_pylist, batch.columns[1:]), strict=True)
            if kind == RESULT
        ]
        matches = merge(self.plan, results, {}).matches
        yield from matches.cast(_without_zone(matches.schema)).to_batches()


def _without_zone(schema: pa.Schema) -> pa.Schema:
    """The matches with times as numbers, for the same reason as in `_crossing`."""
    event = pa.struct(
        [
            (field.name, pa.int64() if pa.types.is_timestamp(field.type) else field.type)
            for field in EVENTS_TYPE.value_type
        ]
    )
    types = [pa.int64() if pa.types.is_timestamp(field.type) else field.type for field in schema]
    return pa.schema(
        [
            (field.name, pa.list_(event) if field.name == "events" else kind)
            for field, kind in zip(schema, types, strict=True)
        ]
    )


def _final(field: pa.Field) -> Column:
    column = F.col(quoted(field.name))
    if field.name == "events":
        names = [part.name for part in EVENTS_TYPE.value_type]
        return F.transform(
            column, lambda e: F.struct(*(_time(e[name], name == "event_time").alias(name) for name in names))
        ).alias("events")
    return _time(column, pa.types.is_timestamp(field.type)).alias(field.name)


def _time(column: Column, is_time: bool) -> Column:
    return F.timestamp_micros(column) if is_time else column
