"""Builds the streaming query: intake rows of `spark_pace.spark.sources` -> splitter -> operators -> merger.

In a job the merger starts the operators, and only if the splitter has left lanes to work off
(`spark_pace.spark.stages.operators`).
"""

from __future__ import annotations

from typing import Literal

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.state import GroupStateTimeout

from spark_pace import ways
from spark_pace.core.plan.plan import Plan
from spark_pace.spark.checkpoint.batch_begin import kept_begins
from spark_pace.spark.checkpoint.checkpoint import ChunkFiles
from spark_pace.spark.checkpoint.layout import slot_keys
from spark_pace.spark.stages.earlier_batches import tell_earlier
from spark_pace.spark.stages.merger import MergerHost
from spark_pace.spark.stages.operators import operated
from spark_pace.spark.stages.rows import PART_ROWS
from spark_pace.spark.stages.splitter import STATE_SCHEMA, SplitterHost

# the microseconds from batch to batch; or all that is there now; or only the batch that was planned and
# not finished
Trigger = int | Literal["available_now", "unfinished"]


def match_rows(intake: DataFrame, plan: Plan, keys: tuple[int, ...], parts: int) -> DataFrame:
    """The rows for the merger (`PART_ROWS`) after operators have worked off all lanes; see `split_rows`."""
    return operated(split_rows(intake, plan, keys, parts), plan)


def split_rows(
    intake: DataFrame,
    plan: Plan,
    keys: tuple[int, ...],
    parts: int,
    chunks: ChunkFiles | None = None,
    checkpoint_id: str = "",
) -> DataFrame:
    """The splitters' output for rows of the intake (`SLOT_ROWS`), distributed for operators (`PART_ROWS`).

    The query must have as many shuffle partitions as there are slots.

    Args:
        intake: the rows of the intake.
        plan: the plan.
        keys: the group key of each slot.
        parts: the number of tasks for operators.
        chunks: the files for large chunks of the carry; None: all of it is in Spark's state.
        checkpoint_id: the checkpoint whose states are gone on with; empty: there is no such file of ours.
    """
    # A Python stage directly in front of an exchange fails in Spark (ColumnarBatchRow cannot be cast to
    # UnsafeRow). A projection that cannot be optimised away must stand between them: here the one to the
    # group key.
    key = F.element_at(F.array(*map(F.lit, keys)), F.col("slot") + 1)
    slot_of_key = {key: slot for slot, key in enumerate(keys)}
    splitter = SplitterHost(plan, slot_of_key, parts, ways.HERE_SECONDS, chunks, checkpoint_id)
    slots = intake.select(key.alias("key"), "kind", "body").groupBy("key")
    split = slots.applyInPandasWithState(
        splitter.stage(), PART_ROWS, STATE_SCHEMA, "append", GroupStateTimeout.NoTimeout
    )
    part = F.expr(f"pmod(part, {parts})").alias("part")
    return _shared_out(split.select(part, "kind", "body"), parts)


def _shared_out(rows: DataFrame, parts: int) -> DataFrame:
    """The rows, those of each part in a partition of its own."""
    if hasattr(DataFrame, "repartitionById"):
        return rows.repartitionById(parts, F.col("part"))
    # PySpark 4.0 sends rows by the hash of a key
    keys = F.array(*map(F.lit, slot_keys(rows.sparkSession, parts)))
    return rows.repartition(parts, F.element_at(keys, F.expr("CAST(part + 1 AS INT)")))


def start(rows: DataFrame, merger: MergerHost, trigger: Trigger, name: str) -> StreamingQuery:
    """Start the query on the merger's checkpoint, after telling its tasks about earlier batches."""
    tell_earlier(rows.sparkSession, kept_begins(merger.checkpoint))
    writer = rows.writeStream.queryName(name).foreachBatch(merger)
    writer = writer.option("checkpointLocation", str(merger.checkpoint))
    if trigger == "unfinished":
        return writer.trigger(once=True).start()
    if trigger == "available_now":
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=f"{max(trigger // 1000, 1)} milliseconds").start()
