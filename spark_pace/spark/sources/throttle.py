"""Tells Spark after each batch how much the next one may read (see `spark_pace.job_file.pace`)."""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from spark_pace.io.metrics import BatchReport
from spark_pace.job_file import JobSpec, KafkaSource
from spark_pace.job_file.pace import Batch
from spark_pace.spark.internals import GatewayError, has_limits, is_ending, set_limits
from spark_pace.spark.sources.input import Input
from spark_pace.spark.sources.read_limits import TELLS_LIMITS
from spark_pace.spark.stages.merger import MergerHost

_LOG = logging.getLogger(__name__)


def with_limits(spec: JobSpec, spark: SparkSession) -> JobSpec:
    """The job, without `admission` if this Spark does not let a running query change how much it reads."""
    bounded = TELLS_LIMITS or isinstance(spec.source, KafkaSource)  # Kafka's connector is Spark's own
    if not bounded and spec.trigger_us == "available_now":
        _LOG.warning("Spark %s — reads all files that are there in one batch; 4.2 bounds it.", spark.version)
    if spec.admission is None or (bounded and has_limits(spark)):
        return spec
    _LOG.warning("admission — must set how much Spark reads, which this Spark does not allow. It is off.")
    return replace(spec, admission=None)


class Throttle:
    """Sets the cap of a query: the most that its next batch reads.

    It is called with the report of each batch, inside `foreachBatch`, after whoever else listens.
    """

    def __init__(self, spec: JobSpec, job_input: Input, query: StreamingQuery, merger: MergerHost) -> None:
        """Begin with the first cap of the input, which Spark knows from the source's options."""
        assert job_input.first_cap is not None and spec.admission is not None
        every = 0.0 if spec.trigger_us == "available_now" else spec.trigger_us / 1e6
        self._admission = spec.admission.every(every)
        self._input = job_input
        self._query = query
        self._merger = merger
        self._pace = self._admission.begin(job_input.first_cap)
        self._read: list[Any] | None = None  # the offsets after the last batch

    def __call__(self, report: BatchReport) -> None:
        """Set the cap of the next batch. If Spark does not allow that, log that the last one stays."""
        seconds = time.monotonic() - self._merger.began
        batch = Batch(self._amount(report), seconds, report.records, report.pending)
        before, self._pace = self._pace, self._admission.after(self._pace, batch)
        if before.cap == self._pace.cap:
            return
        try:
            set_limits(self._query, self._input.bounded(self._pace.cap))
        except (AttributeError, GatewayError, TypeError, ValueError) as error:
            self._pace = before
            if is_ending():  # the job ends with a line about that
                return
            got = (str(error).strip().splitlines() or [type(error).__name__])[0]
            _LOG.warning(
                "admission — must set how much Spark reads; got: %s. What it reads stays as it is.", got
            )

    def _amount(self, report: BatchReport) -> int:
        """The amount that the batch has read, from the offsets that Spark has noted."""
        checkpoint, batch_id = self._input.checkpoint, report.batch_id
        before = self._read
        if before is None:
            before = checkpoint.offsets_after(batch_id - 1) if batch_id else []
        self._read = checkpoint.offsets_after(batch_id, self._merger.note)
        return self._input.amount(before, self._read, report.records)
