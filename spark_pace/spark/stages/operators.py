"""Host of the operators (`mapInArrow`): lanes in, results out; every other row is passed on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from spark_pace.core.frames import decode_header
from spark_pace.core.operate.operator import operate
from spark_pace.core.operate.python_operator import Answers, Spans
from spark_pace.core.plan.plan import Plan
from spark_pace.spark.stages.operator_process import OperatorProcess
from spark_pace.spark.stages.rows import LANE, RESULT, Row, to_batches

Batches = Iterator[pa.RecordBatch]

_process = OperatorProcess()  # of this Python worker of Spark


@dataclass(frozen=True)
class OperatorHost:
    """Runs one operator instance: stateless, so any task may run it, and may run it again."""

    plan: Plan

    def stage(self) -> Callable[[Batches], Batches]:
        """The function for `mapInArrow`: `PART_ROWS` to `PART_ROWS`; a result's part is its rule's index."""
        return lambda batches: to_batches(self._rows(batches), "part")

    def _rows(self, batches: Batches) -> Iterator[Row]:
        if any(planned.rule.operator is not None for planned in self.plan.rules):
            _process.start()
        for batch in batches:
            for row in zip(*map(pa.Array.to_pylist, batch.columns), strict=True):
                yield self._row(*row)

    def _row(self, part: int, kind: str, body: bytes) -> Row:
        if kind != LANE:
            return part, kind, body
        return decode_header(body)["rule_index"], RESULT, operate(self.plan, body, self._call)

    def _call(self, spans: Spans) -> Iterator[Answers]:
        return _process.call(spans, self.plan.operator_timeout_us)
