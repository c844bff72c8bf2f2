"""What overlapping windows cost that aggregate: averages over windows that slide by one second.

Mendes 2013 measures the memory of such windows in tables 4.3 (ten minutes, at 500 to 100,000 events a second)
and 4.4 (20 minutes to 12 hours, at 100,000), for engines that keep the events and for queries that were
rewritten by hand to keep panes. Here each batch brings one second of events, and one window ends in it. The
windows are full before: one event a second fills all panes of a window, and a pane has one row however many
events it has seen. Timed in the core, from a batch's records to its numbered matches, without Spark and
without the snapshot of the state: processor time, the least of several batches, in turn with those of the
other cases. The count and the average of each match are compared with those of numpy and `math.fsum`.

Chapter 6 measures windows on disk (SlideM), windows that queries share (SSM), and a call centre with 104
aggregates over eight keys. Here the windows of 32 rules share panes; and eight rules, one for each key, have
13 aggregates each, over windows of 20 minutes instead of 24 hours, that slide by ten seconds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks import similar_panes
from benchmarks.core_runs import plan_of, records
from benchmarks.rows import Row, Sizes, processor, require
from spark_pace.core.local_run import LocalRun, LocalStep
from spark_pace.core.plan.plan import Plan

SECOND = 1_000_000
WARM, TIMED = 4, 24
RATES = (500, 5_000, 50_000, 100_000)  # table 4.3
AS_EVENTS = (500, 5_000)  # of these, also with events instead of panes
HOURS = {"20 min": 1200, "1 h": 3600, "3 h": 10_800, "12 h": 43_200}  # table 4.4
RATE = 100_000
MANY = 64
WINDOWS, RATE_OF_SHARED = 32, 5_000
KEYS = {
    "instance": 10, "service": 100, "agent": 1_000, "media": 5,
    "leg": 1_000, "agent_site": 20, "call_site": 20, "direction": 2,
}  # fmt: skip
FIELDS = ("alerting", "busy", "wrap_up", "wait", "help", "available")
CHECKED = "numpy, math.fsum"


@dataclass
class Case:
    """Rules over windows of so many seconds, whose windows are full.

    Attributes:
        plan: the plan of the rules.
        size: the length of a window, in seconds.
        rate: how many events each batch brings.
        dense: whether the windows are filled at that rate, not with one event a second.
        local: the run.
        values: of all events so far, by the second.
        seconds: what each timed batch took.
        carried: how many rows are carried.
        state: the bytes of the state.
    """

    plan: Plan
    size: int
    rate: int
    dense: bool = False
    values: list[np.ndarray[tuple[int], np.dtype[np.float64]]] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    carried: int = 0
    state: int = 0

    def __post_init__(self) -> None:
        """Fill the windows."""
        self.sizes = {one.rule.name: one.rule.span.size_us // SECOND for one in self.plan.rules}  # type: ignore[union-attr]
        self.local, self.random, self.offset = LocalRun(self.plan), np.random.default_rng(1), 0
        for start in range(0, self.size, 100):
            count = min(100, self.size - start)
            self.local.step(pa.concat_tables([self._second(self._fill) for _ in range(count)]))

    @property
    def _fill(self) -> int:
        return self.rate if self.dense else 1

    def _second(self, count: int) -> pa.Table:
        """The events of the next second, and what they hold."""
        first, start = self.offset, len(self.values) * SECOND
        self.offset += count
        self.values.append(np.round(self.random.random(count) * 100, 2))
        times = start + np.arange(count) * (SECOND // count)
        return records(times, first, x=self.values[-1])

    def turn(self) -> None:
        """Bring a second of events, and check what the window says that ends."""
        steps, batch = [], self._second(self.rate)
        self.seconds.append(processor(lambda: steps.append(self.local.step(batch))))
        (step,) = steps
        window = np.concatenate(self.values[-1 - self.size : -1])
        require(
            step.matches.num_rows == len(self.plan.rules), f"{self.size} s — must give a match of each rule"
        )
        for rule, n in zip(*(step.matches[name].to_pylist() for name in ("rule", "n")), strict=True):
            held = sum(map(len, self.values[-1 - self.sizes[rule] : -1]))
            require(n == held, f"{rule} — must count {held}; got {n}")
        exact = math.fsum(window.tolist()) / len(window) if len(self.seconds) == WARM + TIMED else None
        if exact is not None:
            found = set(step.matches["mean"].to_pylist()) if len({*self.sizes.values()}) == 1 else {exact}
            require(found == {exact}, f"{self.size} s — must have the mean {exact!r}; got {found}")
        self.carried = step.stats["carry"]

    def done(self) -> float:
        """Milliseconds of a batch; the state is looked at."""
        self.state = len(self.local.splitters[0].snapshot())
        return 1000 * min(self.seconds[WARM:])

    def rows(self, name: str, floor: float | None = None, target: str | None = None) -> Iterator[Row]:
        """The figures: what is carried, how large the state is, and what a batch takes."""
        case, taken = f"{name}; {self.rate:,}/s", self.done()
        yield Row("panes", case, self.carried, "rows carried", None, None, CHECKED)
        yield Row("panes", case, self.state / 1024, "KiB of state", None, None, CHECKED)
        ratio = None if floor is None else taken / floor
        yield Row("panes", case, taken, "ms a batch", ratio, target, CHECKED)


def rule(name: str, size: int) -> str:
    """A rule with the average over windows of so many seconds."""
    return f"{{name: {name}, span: {{every: 1 s, size: {size} s}}, emit: {{n: count(*), mean: avg(x)}}}}"


def plan(size: int, rules: int = 1) -> Plan:
    """The plan of such rules."""
    texts = [rule(f"mean{number}", size) for number in range(rules)]
    return plan_of("time TIMESTAMP, x DOUBLE", "event_time: time", texts)


def with_events(planned: Plan) -> Plan:
    """The plan with rules that carry events instead of panes."""
    return replace(planned, rules=tuple(replace(one, panes=None) for one in planned.rules))


def in_turn(cases: Sequence[Case]) -> None:
    """Bring all their batches, one of each case after the other."""
    for _ in range(WARM + TIMED):
        for case in cases:
            case.turn()


def measure(sizes: Sizes) -> Iterator[Row]:
    """Table 4.3, table 4.4, and many rules over one grid."""
    rates = [Case(plan(600), 600, rate) for rate in RATES]
    events = [Case(with_events(plan(600)), 600, rate, dense=True) for rate in AS_EVENTS]
    in_turn([*rates, *events])
    for case in rates:
        yield from case.rows("10 min")
    for case in events:
        yield from case.rows("10 min, events carried")
    windows = [Case(plan(size), size, RATE) for size in HOURS.values()]
    in_turn(windows)
    floor = windows[0].done()
    for name, case in zip(HOURS, windows, strict=True):
        yield from case.rows(name, floor, "<= 1.2")
    one, many = Case(plan(3600), 3600, RATE), Case(plan(3600, MANY), 3600, RATE)
    in_turn([one, many])
    yield from many.rows(f"1 h, {MANY} rules, beside one", one.done(), "<= 3")
    yield from shared_windows()
    yield from call_centre()
    yield from similar_panes.measure(sizes)


def shared_windows() -> Iterator[Row]:
    """The windows of 32 rules, from one hour to two, beside one rule of two hours (thesis, section 6.5.3)."""
    lengths = np.linspace(3600, 7200, WINDOWS).astype(int).tolist()
    texts = [rule(f"mean{length}", length) for length in lengths]
    several = plan_of("time TIMESTAMP, x DOUBLE", "event_time: time", texts)
    case, one = Case(several, 7200, RATE_OF_SHARED), Case(plan(7200), 7200, RATE_OF_SHARED)
    in_turn([one, case])
    yield from case.rows(f"1 to 2 h, {WINDOWS} rules, beside one", one.done())
    less = sum(lengths) / case.carried
    name = f"1 to 2 h, {WINDOWS} rules; {RATE_OF_SHARED:,}/s"
    yield Row("panes", name, less, "times fewer rows than each alone", None, None, CHECKED)


def call_centre() -> Iterator[Row]:
    """104 aggregates over the windows of eight keys, at 1,000 events a second (thesis, section 6.5.1)."""
    texts = [
        f"{{name: by_{key}, partition_by: [{key}], span: {{every: 10 s, size: 20 min}}, emit: {{n: count(*), "
        + ", ".join(f"sum_{one}: sum({one}), avg_{one}: avg({one})" for one in FIELDS)
        + "}}"
        for key in KEYS
    ]
    schema = ["time TIMESTAMP", *(f"{key} STRING" for key in KEYS), *(f"{one} DOUBLE" for one in FIELDS)]
    local, random = LocalRun(plan_of(", ".join(schema), "event_time: time", texts)), np.random.default_rng(2)
    seconds, counts, step = list[float](), list[int](), None
    for number in range(124):
        times = number * 10 * SECOND + np.arange(10_000) * 1000
        keys = {key: random.integers(0, many, 10_000).astype(str) for key, many in KEYS.items()}
        fields = {one: np.round(random.random(10_000) * 600, 1) for one in FIELDS}
        batch, steps = records(times, number * 10_000, **keys, **fields), list[LocalStep]()
        seconds.append(processor(lambda: steps.append(local.step(batch))))  # noqa: B023  # called at once
        (step,) = steps
        for name in KEYS:
            of_key = step.matches.filter(pc.equal(step.matches["rule"], f"by_{name}"))
            counts.append(pc.sum(of_key["n"]).as_py() or 0)
    require(set(counts[-8:]) == {1_200_000}, "call centre — every window must count all events of 20 min")
    assert step is not None
    name = "call centre, 104 aggregates; 1,000/s"
    yield Row("panes", name, step.stats["carry"], "rows carried", None, None, "each other")
    state = len(local.splitters[0].snapshot()) / (1 << 20)
    yield Row("panes", name, state, "MiB of state", None, None, "each other")
    yield Row("panes", name, 1000 * min(seconds[-4:]), "ms for ten seconds", None, None, "each other")
