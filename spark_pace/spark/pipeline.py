"""The one query: source -> intake -> splitter -> operators -> merger."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.state import GroupStateTimeout

from spark_pace.core.plan.plan import OnBad, Plan
from spark_pace.spark.checkpoint.sequences import kept_frontiers
from spark_pace.spark.sources.files import SOURCE_NAME, FilesSource
from spark_pace.spark.stages.frontier import tell_frontiers
from spark_pace.spark.stages.intake import FilesIntake
from spark_pace.spark.stages.merger import MergerHost
from spark_pace.spark.stages.operators import OperatorHost
from spark_pace.spark.stages.rows import PART_ROWS, SLOT_ROWS
from spark_pace.spark.stages.splitter import STATE_SCHEMA, SplitterHost

# microseconds between two batches; or all that is there now; or a batch that was planned and not finished, and no other
Trigger = int | Literal["available_now", "unfinished"]


@dataclass(frozen=True)
class Input:
    """The files of a job and how a batch takes them."""

    path: str
    format: Literal["json", "csv", "parquet"]
    max_files: int | None
    finish: bool
    on_bad_record: OnBad


def read_files(spark: SparkSession, plan: Plan, source: Input, manifest: Path) -> DataFrame:
    """The rows of the intake (`SLOT_ROWS`), streaming."""
    spark.dataSource.register(FilesSource)
    tasks = spark.sparkContext.defaultParallelism
    options = {
        "root": source.path,
        "manifest": str(manifest),
        "tasks": str(tasks),
        "finish": str(source.finish).lower(),
    }
    if source.max_files is not None:
        options["max_files"] = str(source.max_files)
    names = spark.readStream.format(SOURCE_NAME).options(**options).load()
    intake = FilesIntake(plan, os.path.abspath(source.path), source.format, source.on_bad_record)
    return names.mapInArrow(intake.stage(), SLOT_ROWS)


def match_rows(intake: DataFrame, plan: Plan, keys: tuple[int, ...], parts: int) -> DataFrame:
    """The rows for the merger (`PART_ROWS`) from those of the intake.

    `keys` are the slots' group keys; operators run in `parts` tasks. The query's shuffle partitions must equal the slots.
    """
    # A Python stage that goes straight into an exchange fails in Spark (ColumnarBatchRow cannot be cast to UnsafeRow):
    # a projection that cannot be optimised away must stand between, here the one to the group key.
    key = F.element_at(F.array(*map(F.lit, keys)), F.col("slot") + 1)
    splitter = SplitterHost(plan, {key: slot for slot, key in enumerate(keys)}, parts)
    split = (
        intake.select(key.alias("key"), "kind", "body")
        .groupBy("key")
        .applyInPandasWithState(
            splitter.stage(), PART_ROWS, STATE_SCHEMA, "append", GroupStateTimeout.NoTimeout
        )
    )
    dealt = split.select(F.expr(f"pmod(part, {parts})").alias("part"), "kind", "body").repartitionById(
        parts, F.col("part")
    )
    return dealt.mapInArrow(OperatorHost(plan).stage(), PART_ROWS)


def start(rows: DataFrame, merger: MergerHost, trigger: Trigger, name: str) -> StreamingQuery:
    """Start the query on the merger's checkpoint; its tasks are told the frontiers that are kept there."""
    tell_frontiers(rows.sparkSession, kept_frontiers(merger.checkpoint))
    writer = rows.writeStream.queryName(name).foreachBatch(merger)
    writer = writer.option("checkpointLocation", str(merger.checkpoint))
    if trigger == "unfinished":
        return writer.trigger(once=True).start()
    if trigger == "available_now":
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=f"{max(trigger // 1000, 1)} milliseconds").start()
