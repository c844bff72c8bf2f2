"""The host of the operators (`mapInArrow`): replaces lanes by their results, and passes other rows on.

The stage costs two tenths of a second even if it has nothing to do, and lanes must be encoded for it. So the
splitter works off cheap lanes in its own task (`Handover`), and the stage runs only if lanes are left
(`BatchRows`). A lane has the same result in both places.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame

from spark_pace import ways
from spark_pace.core.match.contexts import context_of
from spark_pace.core.operate.lane_matches import work_off
from spark_pace.core.operate.python_operator import CallOperator, call_here
from spark_pace.core.plan.plan import Plan
from spark_pace.core.plan.price import Price
from spark_pace.core.plan.rule import Rule
from spark_pace.core.plan.shape import shape_of
from spark_pace.core.split.task import Lane, decode_lane
from spark_pace.spark.stages.earlier_batches import Measured
from spark_pace.spark.stages.operator_process import OperatorProcess
from spark_pace.spark.stages.rows import (
    LANE,
    PART_ROWS,
    RESULT,
    STATS,
    WORK,
    Row,
    bodies,
    giving_back,
    to_batches,
)

Batches = Iterator[pa.RecordBatch]

_LANE_SECONDS = 0.002  # predicted for any lane, until times were measured
_PLAIN_EVENT_SECONDS = 0.25e-6  # predicted for each event of a plain pattern, likewise
_EVENT_SECONDS = 10e-6  # predicted for each event of other rules; far too much for most
_process = OperatorProcess()  # one for each Python worker of Spark


def operated(rows: DataFrame, plan: Plan) -> DataFrame:
    """The splitters' rows (`PART_ROWS`) with lanes replaced by their results; their part is a rule's index.

    Nothing is kept from row to row, so any task may work off a lane, also more than once.
    """
    return rows.mapInArrow(partial(_operated, plan), PART_ROWS)


def _operated(plan: Plan, batches: Batches) -> Batches:
    """In a task: the rows with lanes replaced."""
    return giving_back(to_batches(_results(plan, batches), "part"))


def _results(plan: Plan, batches: Batches) -> Iterator[Row]:
    if any(planned.rule.operator is not None for planned in plan.rules):
        _process.start()
    call = partial(_process.call, timeout_us=plan.operator_timeout_us)
    for batch in batches:
        for row in zip(*map(pa.Array.to_pylist, batch.columns), strict=True):
            yield from worked_off(plan, row[2], call) if row[1] == LANE else [row]


def worked_off(plan: Plan, lane: Lane | bytes, call: CallOperator) -> list[Row]:
    """Work off a lane; return its results as rows `RESULT`, and the time it took as a row `WORK`."""
    measured = Measured(call)
    began = time.perf_counter()
    lane = decode_lane(lane) if isinstance(lane, bytes) else lane
    results = work_off(plan, lane, measured)
    rows = [(result.header.rule_index, RESULT, result.encode()) for result in results]
    seconds = time.perf_counter() - began
    work = {
        "rule_index": lane.header.rule_index,
        "selections": sum(result.selections for result in results),
        "predicted_seconds": lane.header.predicted_seconds,
        "operator_seconds": seconds,
        "sums": measured.sums(lane.header.weight, seconds),
    }
    return [*rows, (0, WORK, json.dumps(work).encode())]


@dataclass
class Handover:
    """Takes the lanes of a slot, and works them off here if all together are cheap.

    Attributes:
        plan: the plan.
        prices: the predicted times of operators, by the rule's index in the plan.
        most_seconds: the most that all lanes of the slot may take here.
    """

    plan: Plan
    prices: Mapping[int, Price]
    most_seconds: float
    _kept: list[Lane] = field(default_factory=list)
    _encoded: list[bytes] = field(default_factory=list)
    _seconds: float = 0.0

    def take(self, lane: Lane) -> None:
        """Take the next lane. Lanes for other tasks are encoded at once, because bytes take less memory."""
        self._kept.append(lane)
        self._seconds += self._predicted(lane)
        bound_us = self.plan.latency_bound_us
        bound = math.inf if bound_us is None else bound_us / 1_000_000
        if ways.is_handed_over(self._seconds, min(self.most_seconds, bound)):
            self._encoded += [kept.encode() for kept in self._kept]
            self._kept = []

    def rows(self, slot: int, parts: int) -> list[Row]:
        """The rows of all results (`RESULT`, `WORK`), or those of the lanes for `parts` partitions."""
        if self._encoded:
            return [((slot + number) % parts, LANE, lane) for number, lane in enumerate(self._encoded)]
        return [row for lane in self._kept for row in worked_off(self.plan, lane, call_here)]

    def _predicted(self, lane: Lane) -> float:
        """The predicted time of a lane in seconds; infinite for Python operators, which may take minutes."""
        header, rule = lane.header, self.plan.rules[lane.header.rule_index].rule
        if rule.operator is not None:
            return math.inf
        if header.predicted_seconds is not None:
            return header.predicted_seconds
        if (price := self.prices.get(header.rule_index)) is not None:
            return price.event * header.weight
        of_event = _PLAIN_EVENT_SECONDS if _is_plain(rule) else _EVENT_SECONDS
        return _LANE_SECONDS + of_event * float(lane.events.num_rows)


def _is_plain(rule: Rule) -> bool:
    """True if each event takes little time: for plain patterns, and where the splitter has found matches."""
    pattern = rule.pattern
    if rule.fold is not None or rule.rows is not None:
        return True
    if pattern is None or rule.span is not None or pattern.where:
        return False
    in_order = pattern.order not in ("conjunction", "disjunction")
    return in_order and not context_of(pattern).gathers and shape_of(pattern).simple


@dataclass
class BatchRows:
    """Collects the rows of batches for the merger; the operators' stage runs only if there are lanes.

    The splitters' rows come from an exchange, so reading them twice does not compute them twice.
    """

    plan: Plan
    _had_lanes: bool = False  # if the batch before had lanes, the next one is collected in one step

    def collect(self, rows: DataFrame) -> pa.Table:
        """The rows of a batch (`PART_ROWS`) without lanes.

        Args:
            rows: the result of `spark_pace.spark.stages.splitter.split_rows`.
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
    """True if a splitter has left lanes for the operators, according to its counts."""
    return any(json.loads(body).get("lanes_left") for body in bodies(rows, STATS))
