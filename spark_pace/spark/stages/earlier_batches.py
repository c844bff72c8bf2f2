"""Tells a batch's tasks what the batches before it have left: what it begins with, and prices.

The driver has the first from the batch before (`spark_pace.spark.checkpoint.batch_begin`). Prices are the
predicted times of operators, learned from each batch. Local properties of Spark bring both to the tasks.

Prices are part neither of the plan nor of a checkpoint, because no result depends on them: they decide where
lanes are worked off and, with a latency bound, how many lanes there are. A run begins without prices, because
those of an earlier run may come from another machine or another version of an operator.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from pyspark import TaskContext
from pyspark.sql import SparkSession

from spark_pace.core.intake.sift import Past
from spark_pace.core.operate.python_operator import Answers, CallOperator, Spans
from spark_pace.core.plan.plan import Plan
from spark_pace.core.plan.price import Floats, Price, price_of, sums_of_calls, sums_of_lane
from spark_pace.core.tables import Ints
from spark_pace.errors import StateError, counted
from spark_pace.spark.checkpoint.batch_begin import Begin
from spark_pace.spark.checkpoint.checkpoint import Checkpoint
from spark_pace.spark.internals import BATCH_ID

_PRICES = "spark_pace.prices"  # a local property: JSON of {rule's index: [selection, event]}
_KEPT = 0.5  # the weight of earlier measurements is halved with each batch


def tell(spark: SparkSession, name: str, value: Mapping[Any, Any]) -> None:
    """Tell tasks a value that JSON has, by a local property of Spark."""
    spark.sparkContext.setLocalProperty(name, json.dumps(value))


def told(name: str) -> dict[str, Any]:
    """In a task: what the driver has told it; nothing where there is no task."""
    task = TaskContext.get()
    return json.loads((task and task.getLocalProperty(name)) or "{}")  # type: ignore[no-any-return]


@dataclass
class Measured:
    """Calls a rule's Python operator for a lane, and records the time of each call, if it is known."""

    call: CallOperator
    _rows: list[Ints] = field(default_factory=list)
    _seconds: list[float] = field(default_factory=list)

    def __call__(self, spans: Spans) -> Iterator[Answers]:
        """Yield the answers of the wrapped function."""
        self._rows.append(spans.end - spans.start)
        for answers in self.call(spans):
            self._seconds += answers.seconds or (0.0,) * len(answers.counts)
            yield answers

    def sums(self, weight: int, seconds: float) -> list[float]:
        """The sums from which the rule's price is computed, see `sums_of_calls` and `sums_of_lane`.

        Args:
            weight: the events of the lane's selections; see `LaneHeader`.
            seconds: the time that the lane took.
        """
        sums = sums_of_lane(weight, seconds)
        if self._rows:
            sums = sums_of_calls(self._rows[0], np.array(self._seconds), seconds)
        return list(map(float, sums))


@dataclass
class Prices:
    """The prices of a plan's rules, learned on the driver; those `known`, by the rule's index in the plan."""

    plan: Plan
    known: dict[int, Price] = field(default_factory=dict)
    _sums: dict[int, Floats] = field(default_factory=dict)

    def learn(self, work: Iterable[Mapping[str, Any]]) -> None:
        """Update the prices by the rows `WORK` of a batch."""
        new: dict[int, Floats] = {}
        for lane in work:
            rule = lane["rule_index"]
            new[rule] = new.get(rule, 0.0) + np.array(lane["sums"])
        for rule, sums in new.items():
            self._sums[rule] = self._sums.get(rule, 0.0) * _KEPT + sums
            price = price_of(self._sums[rule], by_call=self.plan.rules[rule].rule.operator is not None)
            if price is not None:
                self.known[rule] = price

    def tell(self, spark: SparkSession) -> None:
        """Tell the tasks of later batches the prices. Call it inside the query's `foreachBatch`."""
        tell(spark, _PRICES, {rule: [price.selection, price.event] for rule, price in self.known.items()})


def prices_of_batch() -> dict[int, Price]:
    """In a task: the prices for its batch, by the rule's index in the plan."""
    return {int(rule): Price(*parts) for rule, parts in told(_PRICES).items()}


def longest_lanes(work: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The longest measured and the longest predicted time of a lane, from the rows `WORK` of a batch.

    The keys are fields of `spark_pace.io.metrics.BatchReport`.
    """
    predicted = [lane["predicted_seconds"] for lane in work if lane["predicted_seconds"] is not None]
    return {
        "longest_lane_seconds": max((lane["operator_seconds"] for lane in work), default=0.0),
        "longest_lane_predicted": max(predicted, default=None),
    }


def over_bound(plan: Plan, work: Sequence[Mapping[str, Any]], slots: int) -> str | None:
    """Why no cut into lanes was predicted to keep the plan's latency bound; None if one was.

    Args:
        plan: the plan, which has a bound.
        work: the rows `WORK` of the batch.
        slots: how many tasks run at once.
    """
    assert plan.latency_bound_us is not None
    bound = plan.latency_bound_us / 1_000_000
    known = [lane for lane in work if lane["predicted_seconds"] is not None]
    total = sum(lane["predicted_seconds"] for lane in known)
    if total > bound * slots:
        most = f"{bound:,.4g} s on each of {counted(slots, 'slot')}"
        return f"{total:,.4g} s predicted for operators, more than {most}"
    longest = max(known, key=lambda lane: lane["predicted_seconds"], default=None)
    if longest is None or longest["predicted_seconds"] <= bound * (1 + 1e-6):
        return None
    rule = plan.rules[longest["rule_index"]].rule.name
    of = f"a lane of {counted(longest['selections'], 'selection')} of {rule}"
    return f"{longest['predicted_seconds']:,.4g} s predicted for {of}, more than {bound:,.4g} s"


_EARLIER = "spark_pace.earlier"  # a local property: JSON of {batch id: the fields of its `Earlier` but one}


@dataclass(frozen=True)
class Earlier:
    """What a task knows of the batches before its own.

    Attributes:
        batch_id: its own batch.
        past: the facts about earlier records.
        states: the batch that has left the slots their states; -1: none has.
    """

    batch_id: int
    past: Past
    states: int


def tell_earlier(spark: SparkSession, begins: Mapping[int, Begin]) -> None:
    """Tell the tasks of later batches what each begins with, by the batch's number.

    Call it in the thread that starts the query, or inside the query's `foreachBatch`.
    """
    tell(spark, _EARLIER, {at: [asdict(begin.past), begin.states] for at, begin in begins.items()})


def earlier_than_batch() -> Earlier:
    """In a task: what is known of the batches before its own.

    Raises:
        StateError: the task was not told.
    """
    task = TaskContext.get()
    assert task is not None
    number = task.getLocalProperty(BATCH_ID)
    assert number is not None  # a start has looked at the property
    found = told(_EARLIER).get(number)
    if found is not None:
        return Earlier(int(number), Past(**found[0]), found[1])
    file = Checkpoint(Path()).sequence(int(number))  # without the folder, which a task does not know
    must = f"must hold the frontier that batch {number} begins with"
    raise StateError(f"{file} — {must}; got none. Restore the whole checkpoint.")
