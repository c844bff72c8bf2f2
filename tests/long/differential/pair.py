"""A rule and a stream, and how the core differs from the oracle on them."""

from __future__ import annotations

import traceback
from dataclasses import dataclass, field, replace
from functools import cached_property
from random import Random

import pyarrow as pa

from spark_pace.core.order import OrderSpec
from spark_pace.core.plan.meaning import rule_parts
from spark_pace.core.plan.plan import Plan
from spark_pace.core.plan.price import Price
from spark_pace.core.plan.rule import Rule
from tests.long.differential.choices import Settings, drawn, taken_with
from tests.long.differential.streams import arrival_of, spread_of, stream_for, without
from tests.oracle.matches import Match, evaluate
from tests.support.checks import is_out, plan_for, told
from tests.support.drive import drive
from tests.support.results import brief, difference, from_core, from_oracle
from tests.support.streams import SECOND, Arrival, Parallelism


@dataclass(frozen=True)
class Pair:
    """A rule, a stream as it arrives, how the work is cut, and what the choices say.

    Attributes:
        rule: the rule.
        arrival: the stream.
        spread: slots, buckets and lanes.
        parts: in how many pieces a batch is read.
        prices: what operators are predicted to take, batch by batch; empty where nothing is predicted.
        settings: what is set of the choices.
        seed: of the choices that change.
    """

    rule: Rule
    arrival: Arrival
    spread: Parallelism
    parts: int
    prices: tuple[Price | None, ...]
    settings: Settings = field(hash=False)
    seed: int

    @cached_property
    def expected(self) -> list[Match]:
        """What the oracle says."""
        return evaluate(self.rule, self.arrival.on_time()[0])

    def run(self) -> tuple[str, set[str]]:
        """How the core differs from the oracle, nothing if it does not; and the ways that were taken."""
        so_far: list[pa.Table] = []
        with taken_with(self.settings, self.seed) as taken:
            try:
                return self._compared(so_far), taken
            except Exception:
                return f"batch {len(so_far) + 1}:\n{traceback.format_exc()}", taken

    def _compared(self, so_far: list[pa.Table]) -> str:
        """After each batch, what has gone out is what the frontier has made releasable."""
        rows, tables = from_oracle(self.rule, self.expected), self.arrival.tables(self.rule)
        steps = drive(self._plan(), tables, finish=True, parts=self.parts, prices=self.prices or (None,))
        for step in steps:
            so_far.append(step.matches)
            out = [
                row for row, match in zip(rows, self.expected, strict=True) if is_out(match, step.frontier_us)
            ]
            if found := difference(out, from_core(self.rule, pa.concat_tables(so_far))):
                return f"batch {len(so_far)}, frontier {step.frontier_us / 1e6:g} s:\n{found}"
        return ""

    def _plan(self) -> Plan:
        bound_us = SECOND if self.prices else None
        return plan_for([self.rule], OrderSpec(self.arrival.delay_us), self.spread, latency_bound_us=bound_us)

    def shown(self) -> str:
        """All of it, for people to read."""
        lines = [f"  {name}: {part}" for name, part in rule_parts(self.rule).items()]
        lines.append(f"batches: (delay {self.arrival.delay_us // SECOND} s)")
        lines += ["  " + ", ".join(map(told, batch)) for batch in self.arrival.batches]
        lines += [f"work: {self.spread}, {self.parts} parts, prices {self.prices}"]
        lines += [f"choices: {self.settings}, seed {self.seed}", "oracle:"]
        lines += [f"  {brief(row)}" for row in from_oracle(self.rule, self.expected)]
        return "\n".join(["rule:", *lines])


def pair_of(rule: Rule, seed: int) -> Pair:
    """A pair of the rule; one in five has its whole stream in one batch."""
    random = Random(seed)
    arrival = arrival_of(stream_for(rule, random), random)
    if random.random() < 0.2:
        events = tuple(event for batch in arrival.batches for event in batch)
        arrival = replace(arrival, batches=(events,))
    parts = [0.0, 0.001, 0.1, 0.4, 2.0]
    prices = tuple(
        random.choice([None, Price(random.choice(parts), random.choice(parts))])
        for _ in range(random.choice([0, 0, 1, 3]))
    )
    return Pair(rule, arrival, spread_of(random), random.choice([1, 1, 2, 3]), prices, drawn(random), seed)


def smaller(pair: Pair) -> Pair:
    """The pair with only the events, and the set choices, without which it would not differ."""
    batches = pair.arrival.batches
    arrivals = (
        without(pair.arrival, number, place)
        for number, batch in enumerate(batches)
        for place in range(len(batch))
    )
    fewer = (replace(pair, arrival=arrival) for arrival in arrivals)
    freer = (
        replace(pair, settings={name: said for name, said in pair.settings.items() if name != left})
        for left in pair.settings
    )
    for each in (*fewer, *freer, replace(pair, prices=())):
        if each != pair and each.run()[0]:
            return smaller(each)
    return pair
