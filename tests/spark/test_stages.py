"""What Spark makes of the stages: where lanes are worked off, keys of slots, workers."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from spark_pace import ways
from spark_pace.job import run_job
from spark_pace.spark.checkpoint.layout import slot_keys
from spark_pace.spark.stages import operators
from tests.spark.jobs import in_core, job, matches, only, random_events, write_files

FEW, MANY = 3, 2_000  # events of a file whose lanes the splitter works off, and of one with too large lanes
SIZES = (FEW, MANY, MANY, FEW, FEW, FEW, MANY)
HERE_SECONDS = 0.005


def test_lanes_are_worked_off_in_the_splitter_or_by_operators_with_the_same_result(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = only(job(tmp_path), "pairs", "keyed")
    events = random_events(5, sum(SIZES))
    for number, size in enumerate(SIZES):
        write_files(tmp_path, events[:size], 1, first=number)
        events = events[size:]
    asked: list[bool] = []
    operated = operators.operated

    def noted(rows: object, plan: object) -> object:
        asked.append(True)
        return operated(rows, plan)  # type: ignore[arg-type]

    monkeypatch.setattr(operators, "operated", noted)
    monkeypatch.setattr(ways, "HERE_SECONDS", HERE_SECONDS)
    run_job(spec)
    assert matches(spec) == in_core(spec).matches.to_pylist()
    assert 0 < len(asked) < len(SIZES)


@pytest.mark.parametrize(("slots", "partitions"), [(1, None), (2, None), (4, None), (3, 8)])
def test_each_slot_has_a_partition_of_its_own(
    spark: SparkSession, slots: int, partitions: int | None
) -> None:
    keys = slot_keys(spark, slots, partitions)
    hashes = spark.sql("SELECT transform(sequence(0, 999), k -> hash(k))").collect()[0][0]
    parts = partitions or slots
    assert [hashes[key] % parts for key in keys] == list(range(slots))
    assert keys == tuple(next(k for k in range(1000) if hashes[k] % parts == slot) for slot in range(slots))


def test_workers_begin_with_what_they_need_loaded(spark: SparkSession) -> None:
    (row,) = spark.range(1).coalesce(1).mapInArrow(_told, "objects long, pool string").collect()
    assert row.objects > 10_000
    assert (row.pool == "system") == hasattr(ctypes.CDLL(None), "mallinfo2")  # see `keep_freed`


def _told(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    list(batches)
    pool = pa.default_memory_pool().backend_name
    yield pa.RecordBatch.from_pydict({"objects": [gc.get_freeze_count()], "pool": [pool]})
