"""The one query: what `spark_pace.spark.sources` gives -> splitter -> operators -> merger.

In a job it is the merger that starts the operators, and only if lanes are left that the splitter did not work
off itself (`spark_pace.spark.stages.operators`).
"""

from __future__ import annotations

from typing import Literal

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.state import GroupStateTimeout

from spark_pace import ways
from spark_pace.core.plan.plan import Plan
from spark_pace.spark.checkpoint.chunks import ChunkFiles
from spark_pace.spark.checkpoint.sequences import kept_pasts
from spark_pace.spark.stages.merger import MergerHost
from spark_pace.spark.stages.operators import operated
from spark_pace.spark.stages.past import tell_pasts
from spark_pace.spark.stages.rows import PART_ROWS
from spark_pace.spark.stages.splitter import STATE_SCHEMA, SplitterHost

# a batch every so many microseconds; or batches of all that is there now; or only the batch that was planned
# and not finished
Trigger = int | Literal["available_now", "unfinished"]


def match_rows(intake: DataFrame, plan: Plan, keys: tuple[int, ...], parts: int) -> DataFrame:
    """The rows for the merger (`PART_ROWS`), with all lanes worked off; arguments: see `split_rows`."""
    return operated(split_rows(intake, plan, keys, parts), plan)


def split_rows(
    intake: DataFrame, plan: Plan, keys: tuple[int, ...], parts: int, chunks: ChunkFiles | None = None
) -> DataFrame:
    """What the splitters make of the rows of the intake (`SLOT_ROWS`), dealt out to operators (`PART_ROWS`).

    The query must have as many shuffle partitions as there are slots.

    Args:
        intake: the rows of the intake.
        plan: the plan.
        keys: for each slot the key of its group.
        parts: the number of tasks that operators run in.
        chunks: where large chunks of what is carried are kept; None: with the rest, in Spark's state.
    """
    # A Python stage directly in front of an exchange fails in Spark (ColumnarBatchRow cannot be cast to
    # UnsafeRow). A projection that cannot be optimised away must stand between them: here the one to the
    # group key.
    key = F.element_at(F.array(*map(F.lit, keys)), F.col("slot") + 1)
    slot_of_key = {key: slot for slot, key in enumerate(keys)}
    splitter = SplitterHost(plan, slot_of_key, parts, ways.HERE_SECONDS, chunks)
    slots = intake.select(key.alias("key"), "kind", "body").groupBy("key")
    split = slots.applyInPandasWithState(
        splitter.stage(), PART_ROWS, STATE_SCHEMA, "append", GroupStateTimeout.NoTimeout
    )
    part = F.expr(f"pmod(part, {parts})").alias("part")
    return split.select(part, "kind", "body").repartitionById(parts, F.col("part"))


def start(rows: DataFrame, merger: MergerHost, trigger: Trigger, name: str) -> StreamingQuery:
    """Start the query on the merger's checkpoint, and tell its tasks what that says of earlier records."""
    tell_pasts(rows.sparkSession, kept_pasts(merger.checkpoint))
    writer = rows.writeStream.queryName(name).foreachBatch(merger)
    writer = writer.option("checkpointLocation", str(merger.checkpoint))
    if trigger == "unfinished":
        return writer.trigger(once=True).start()
    if trigger == "available_now":
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=f"{max(trigger // 1000, 1)} milliseconds").start()
