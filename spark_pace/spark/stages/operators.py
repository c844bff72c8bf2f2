"""Host of the operators (`mapInArrow`): lanes in, results out; every other row is passed on.

A stage costs a tenth of a second even if it has nothing to do. So the splitter works off small lanes itself,
in its own task (`worked_off`), and the stage runs only if lanes are left (`BatchRows`). A lane has
the same result wherever it is worked off.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.frames import decode_header
from spark_pace.core.operate.operator import operate
from spark_pace.core.operate.python_operator import Answers, CallOperator, Spans, call_here
from spark_pace.core.plan.plan import Plan
from spark_pace.spark.stages.operator_process import OperatorProcess
from spark_pace.spark.stages.prices import Measured
from spark_pace.spark.stages.rows import LANE, PART_ROWS, RESULT, STATS, WORK, Row, to_batches

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

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
                yield from _worked_off(self.plan, row[2], self._call) if row[1] == LANE else [row]

    def _call(self, spans: Spans) -> Iterator[Answers]:
        return _process.call(spans, self.plan.operator_timeout_us)


def worked_off(plan: Plan, lanes: Sequence[bytes], small_bytes: int) -> list[Row] | None:
    """The results of a slot's lanes if they have at most so many bytes; None if they have more.

    Work for a Python operator is never small: one call may take minutes. Neither is what is predicted to take
    longer, altogether, than the plan's bound.
    """
    if sum(map(len, lanes)) > small_bytes:
        return None
    headers = [decode_header(lane) for lane in lanes]
    if any(plan.rules[header["rule_index"]].rule.operator is not None for header in headers):
        return None
    predicted = sum(header["predicted_seconds"] or 0.0 for header in headers)
    if plan.latency_bound_us is not None and predicted * 1_000_000 > plan.latency_bound_us:
        return None
    return [row for lane in lanes for row in _worked_off(plan, lane, call_here)]


def _worked_off(plan: Plan, lane: bytes, call: CallOperator) -> list[Row]:
    """The result of a lane, and what it took."""
    measured = Measured(call)
    began = time.perf_counter()
    result = operate(plan, lane, measured)
    seconds = time.perf_counter() - began
    header = decode_header(result)
    told = {name: header[name] for name in ("rule_index", "selections", "predicted_seconds")}
    work = json.dumps({**told, "operator_seconds": seconds, "sums": measured.sums(header, seconds)})
    return [(header["rule_index"], RESULT, result), (0, WORK, work.encode())]


def operated(rows: DataFrame, plan: Plan) -> DataFrame:
    """Rows of the splitters (`PART_ROWS`), with a result in the place of each lane."""
    return rows.mapInArrow(OperatorHost(plan).stage(), PART_ROWS)


@dataclass
class BatchRows:
    """Gets the rows of batches for the merger from Spark; the operators' stage runs only if there are lanes.

    The splitters' rows stand behind an exchange, so asking for them twice does not compute them twice.
    """

    plan: Plan
    _had_lanes: bool = False  # if the batch before had lanes, this one asks once for all

    def collect(self, rows: DataFrame) -> pa.Table:
        """The rows of a batch (`PART_ROWS`), with no lanes among them.

        Args:
            rows: what `spark_pace.spark.pipeline.split_rows` gives.
        """
        if self._had_lanes:
            found = operated(rows, self.plan).toArrow()
            self._had_lanes = _lanes_left(found)
            return found
        found = rows.where(f"kind <> '{LANE}'").coalesce(1).toArrow()
        self._had_lanes = _lanes_left(found)
        if not self._had_lanes:
            return found
        results = operated(rows.where(f"kind = '{LANE}'"), self.plan).toArrow()
        return pa.concat_tables([found, results.cast(found.schema)])


def _lanes_left(rows: pa.Table) -> bool:
    """Whether a splitter has left lanes for the operators, as it says in its counts."""
    stats = rows.filter(pc.equal(rows.column("kind"), STATS)).column("body").to_pylist()
    return any(json.loads(body).get("lanes_left") for body in stats)
