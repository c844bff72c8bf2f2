"""Host of the operators: lanes in, results out, every other row passed on (`mapInArrow`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from spark_pace.core.operator import operate
from spark_pace.core.plan import Plan
from spark_pace.spark.rows import LANE, RESULT

Batches = Iterator[pa.RecordBatch]


@dataclass(frozen=True)
class OperatorHost:
    """Runs one operator instance: stateless, so any task may run it, and may run it again."""

    plan: Plan

    def stage(self) -> Callable[[Batches], Batches]:
        """The function for `mapInArrow`: `PART_ROWS` to `ROWS`."""
        return lambda batches: (self._batch(batch) for batch in batches)

    def _batch(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        kinds = batch.column("kind").to_pylist()
        bodies = [operate(self.plan, body) if kind == LANE else body for kind, body in zip(kinds, batch.column("body").to_pylist(), strict=True)]
        renamed = [RESULT if kind == LANE else kind for kind in kinds]
        return pa.record_batch([pa.array(renamed), pa.array(bodies, pa.binary())], schema=pa.schema([("kind", pa.string()), ("body", pa.binary())]))
