"""What windows cost that have keys, that weigh prices, and that similar rules share.

Mendes 2013 measures in chapter 6 the volume-weighted average price of 100 symbols over an hour at 50,000 to
300,000 events a second, with the window on disk (SlideM, table 6.1), 2 to 32 such queries over windows of an
hour to two (SSM), and 64 similar queries, of which no engine shares the windows. Here windows slide by a
second, and each batch brings one: processor time in the core, as in `benchmarks.panes`, in turn.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.core_runs import plan_of, records
from benchmarks.rows import Row, Sizes, processor, require
from spark_pace.core.local_run import LocalRun

SECOND = 1_000_000
WARM, TIMED = 4, 40
HOURS = {"20 min": 1200, "3 h": 10_800, "12 h": 43_200}  # of table 4.4
KEYS, KEYED_RATE = 20, 20_000
SYMBOLS, RATES = 100, (50_000, 100_000, 300_000)  # table 6.1
WEIGHED = "vwap: sum(volume * price) / sum(volume)"
FUNCTIONS = ("avg(price)", "max(price)", "stddev(price)", "sum(price)", "min(price)", "last(price)")
SIMILAR = 64
CHECKED = "counts of numpy"


@dataclass
class Stream:
    """Rules over trades, and a run of theirs whose windows are full, with one trade a second and symbol.

    Attributes:
        rules: their texts; each has a field n that counts.
        longest: the longest window, in seconds.
        symbols: how many symbols there are.
        rate: how many trades a batch brings.
        seconds: what each timed batch took.
    """

    rules: Sequence[str]
    longest: int
    symbols: int
    rate: int
    seconds: list[float] = field(default_factory=list)
    state: int = 0
    carried: int = 0

    def __post_init__(self) -> None:
        """Fill the windows."""
        schema = "time TIMESTAMP, symbol STRING, price DOUBLE, volume BIGINT"
        self.local = LocalRun(plan_of(schema, "event_time: time", self.rules))
        self.random, self.offset, self.now = np.random.default_rng(1), 0, 0
        self.names = np.array([f"S{number:03}" for number in range(self.symbols)])
        for start in range(0, self.longest, 100):
            count = min(100, self.longest - start)
            self.local.step(self._trades(count, self.symbols))

    def _trades(self, seconds: int, rate: int) -> pa.Table:
        """So many trades in each of the next seconds, of each symbol as many."""
        count, first = seconds * rate, self.offset
        times = self.now * SECOND + np.arange(count) // rate * SECOND
        self.now, self.offset = self.now + seconds, self.offset + count
        return records(
            times,
            first,
            symbol=np.resize(self.names, count),
            price=np.round(50 + self.random.random(count) * 10, 2),
            volume=self.random.integers(1, 100, count),
        )

    def turn(self) -> None:
        """Bring a second of trades; every window must count those that are in it."""
        steps, batch = [], self._trades(1, self.rate)
        self.seconds.append(processor(lambda: steps.append(self.local.step(batch))))
        (step,) = steps
        full = len(self.seconds) - 1  # windows that end now have so many full seconds
        for planned in self.local.plan.rules:
            size = planned.rule.span.size_us // SECOND  # type: ignore[union-attr]
            held = full * self.rate + (size - full) * self.symbols
            of_rule = step.matches.filter(pc.equal(step.matches["rule"], planned.rule.name))
            keys = self.symbols if planned.rule.partition_by else 1
            found = (of_rule.num_rows, pc.sum(of_rule["n"]).as_py())
            require(found == (keys, held), f"{planned.rule.name} — must count {(keys, held)}; got {found}")
        self.carried = step.stats["carry"]

    def rows(self, name: str, floor: float | None = None, target: str | None = None) -> Iterator[Row]:
        """The figures of a batch: the least, and the mean, in which chunks are merged too."""
        timed, taken = self.seconds[WARM:], self.done()
        state = len(self.local.splitters[0].snapshot()) / 1024
        yield Row("panes", name, self.carried, "rows carried", None, None, CHECKED)
        yield Row("panes", name, state, "KiB of state", None, None, CHECKED)
        mean = 1000 * float(np.mean(timed))
        yield Row("panes", f"{name}, mean", mean, "ms a batch", None, None, CHECKED)
        yield Row(
            "panes", name, taken, "ms a batch", None if floor is None else taken / floor, target, CHECKED
        )

    def done(self) -> float:
        """Milliseconds of a batch: the least."""
        return 1000 * min(self.seconds[WARM:])


def rule(name: str, size: int, fields: str, keyed: bool = True) -> str:
    """A rule over windows of so many seconds."""
    key = "partition_by: [symbol], " if keyed else ""
    return f"{{name: {name}, {key}span: {{every: 1 s, size: {size} s}}, emit: {{n: count(*), {fields}}}}}"


def in_turn(streams: Sequence[Stream]) -> None:
    """Bring all their batches, one of each after the other."""
    for _ in range(WARM + TIMED):
        for stream in streams:
            stream.turn()


def measure(sizes: Sizes) -> Iterator[Row]:
    """Windows with keys, weighed prices, and similar rules."""
    for fields, name in (
        ("mean: avg(price)", "mean"),
        ("least: min(price), last: last(price)", "least, last"),
    ):
        keyed = [Stream([rule("r", size, fields)], size, KEYS, KEYED_RATE) for size in HOURS.values()]
        in_turn(keyed)
        for length, stream in zip(HOURS, keyed, strict=True):
            case = f"{length}, {KEYS} keys, {name}; {KEYED_RATE:,}/s"
            yield from stream.rows(case, keyed[0].done(), "<= 1.2")
    weighed = [Stream([rule("vwap", 3600, WEIGHED)], 3600, SYMBOLS, rate) for rate in RATES]
    in_turn(weighed)
    for rate, stream in zip(RATES, weighed, strict=True):
        yield from stream.rows(f"1 h, VWAP of {SYMBOLS} symbols; {rate:,}/s")
    lengths = np.linspace(3600, 7200, 32).astype(int).tolist()
    yield from _beside_one("32 VWAP", [(length, WEIGHED) for length in lengths], SYMBOLS, 5_000)
    similar = [
        (600 + 40 * number, f"one: {FUNCTIONS[number % 6]}, other: {FUNCTIONS[(number + 1) % 6]}")
        for number in range(SIMILAR)
    ]
    yield from _beside_one(f"{SIMILAR} similar", similar, 0, 20_000)


def _beside_one(name: str, rules: Sequence[tuple[int, str]], symbols: int, rate: int) -> Iterator[Row]:
    """Rules of these windows and fields, beside the one with the longest window."""
    keyed, longest = symbols > 0, max(length for length, _ in rules)
    texts = [rule(f"r{place}", *one, keyed) for place, one in enumerate(rules)]
    several = Stream(texts, longest, max(symbols, 1), rate)
    one = Stream([rule("r", *max(rules), keyed)], longest, max(symbols, 1), rate)
    in_turn([one, several])
    case = f"{name} rules, windows to {longest // 60} min, beside one; {rate:,}/s"
    yield from several.rows(case, one.done())
    less = sum(length for length, _ in rules) * max(symbols, 1) / several.carried
    yield Row("panes", case, less, "times fewer rows than each alone", None, None, CHECKED)
