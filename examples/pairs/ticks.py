"""The ticks of the Pairs benchmark: trades at a rate that varies, and prices of pairs that move together.

What the benchmark leaves open is chosen here: half-cosines between the rates; start prices from 30 to 150,
0.6 % of volatility in the root of a second; two securities of a pair share all of that, and their log prices
differ by a spread of 2 % that comes back within 1 to 10 seconds.

Sources: Mendes 2013, sections 7.3.2 (input), 7.3.5 (scaling), 7.3.7 (execution rules), B.1 (the generator).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from string import ascii_uppercase

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

PEAK = 1.5  # times the basis rate
SCALES_OF_A_MARKET = 10
VOLATILITY, SPREAD, SLOWEST = 0.006, 0.02, 10.0  # in the root of a second; of log prices; seconds
_GRID = 0.05  # seconds between the points at which the rate is added up
_ROUNDS = 2_000  # in which each security trades once, that are made together
_SCHEMA = pa.schema(
    [("time", pa.int64()), ("symbol", pa.string()), ("price", pa.int64()), ("size", pa.int64())]
)


@dataclass(frozen=True)
class Setting:
    """What is generated; the standard but for what is said otherwise.

    Attributes:
        scale: the scale factor.
        seed: of all chance.
        minutes: of the ramp, of the way down to the basis rate, of the measured interval, of the last part.
        securities: of a market.
        rate: the basis rate of a market, ticks a second.
    """

    scale: int
    seed: int = 1
    minutes: tuple[float, float, float, float] = (1.0, 30.0, 60.0, 30.0)
    securities: int = 100
    rate: float = 5_000.0

    @property
    def markets(self) -> int:
        """One for every ten of the scale factor."""
        return -(-self.scale // SCALES_OF_A_MARKET)

    @property
    def basis(self) -> float:
        """Ticks a second at the least, after the ramp."""
        return self.rate * self.markets

    @property
    def measured(self) -> tuple[float, float]:
        """Where the measured interval begins and ends, in seconds."""
        begin = 60 * sum(self.minutes[:2])
        return begin, begin + 60 * self.minutes[2]

    @cached_property
    def symbols(self) -> list[str]:
        """The securities, market by market; those of a pair are neighbours, at the begin of the market."""
        chance, found = np.random.default_rng([self.seed, 0]), dict[str, None]()
        while len(found) < self.markets * self.securities:
            found["".join(chance.choice(list(ascii_uppercase), 6))] = None
        return list(found)

    def pairs(self, market: int) -> list[tuple[str, str]]:
        """The securities of a market that are correlated: half of them, two by two."""
        own = self.symbols[market * self.securities :][: self.securities // 4 * 2]
        return list(zip(own[::2], own[1::2], strict=True))

    def rates(self, seconds: Floats) -> Floats:
        """Ticks a second at some times."""
        peak, (begin, end), ramp = PEAK * self.basis, self.measured, 60 * self.minutes[0]
        last = end + 60 * self.minutes[3]
        middle = (begin + end) / 2
        turns = [
            (ramp, begin, 1.0, 0.0),
            (begin, middle, 0.0, 1.0),
            (middle, end, 1.0, 0.0),
            (end, last, 0.0, 1.0),
        ]
        rates = np.where(seconds < ramp, peak * seconds / max(ramp, _GRID), 0.0)
        for first, until, high, then in turns:
            share = (seconds - first) / max(until - first, _GRID)
            above = then + (high - then) * (1 + np.cos(np.pi * share)) / 2
            rates = np.where(
                (seconds >= first) & (seconds <= until), self.basis + (peak - self.basis) * above, rates
            )
        return rates


def ticks(setting: Setting) -> Iterator[pa.Table]:
    """All ticks in their order: `time` (milliseconds), `symbol`, `price` (cents), `size`."""
    seconds = np.arange(0.0, 60 * sum(setting.minutes) + _GRID, _GRID)
    rates = setting.rates(seconds)
    due = np.concatenate([[0.0], np.cumsum((rates[1:] + rates[:-1]) / 2 * _GRID)])  # ticks until each second
    count = len(setting.symbols)
    names = pa.array(setting.symbols * _ROUNDS)
    chance, prices = np.random.default_rng([setting.seed, 1]), _Prices(setting)
    reached, last = 0.0, 0.0
    while reached < due[-1]:
        # of a Poisson process: exponential distances, in expected ticks
        at = reached + np.cumsum(chance.exponential(size=_ROUNDS * count))
        times = np.interp(at, due, seconds)
        own = np.append(last, times[::count])
        cents = prices.of_rounds(np.diff(own))
        sizes = chance.integers(10, 101, len(at)) * 10
        rows = int(np.searchsorted(at, due[-1]))
        milliseconds = (times * 1000).astype(np.int64)
        yield pa.table([milliseconds, names, cents.ravel(), sizes], schema=_SCHEMA).slice(0, rows)
        reached, last = float(at[-1]), float(own[-1])


class _Prices:
    """The prices of all securities, round by round."""

    def __init__(self, setting: Setting) -> None:
        self._chance = np.random.default_rng([setting.seed, 2])
        place = np.arange(len(setting.symbols))
        in_pair = place % setting.securities < setting.securities // 4 * 2
        self._first = np.flatnonzero(in_pair & (place % setting.securities % 2 == 0))
        self._log = np.log(self._chance.uniform(3_000, 15_000, len(place)))
        self._spread = np.zeros(len(self._first))
        self._slowness = self._chance.uniform(1.0, SLOWEST, len(self._first))

    def of_rounds(self, gaps: Floats) -> Ints:
        """The prices in cents of each round; `gaps` are the seconds from each to the one before."""
        chance = self._chance.standard_normal((len(gaps), len(self._log)))
        steps = VOLATILITY * np.sqrt(gaps)[:, None] * chance - VOLATILITY**2 / 2 * gaps[:, None]
        steps[:, self._first + 1] = steps[:, self._first]
        logs = self._log + np.cumsum(steps, axis=0)
        self._log = logs[-1].copy()
        spread = self._spreads(gaps) / 2
        logs[:, self._first] += spread
        logs[:, self._first + 1] -= spread
        cents: Ints = np.maximum(np.rint(np.exp(logs)), 1.0).astype(np.int64)
        return cents

    def _spreads(self, gaps: Floats) -> Floats:
        """Of each pair, round by round: they come back to nothing, as an Ornstein-Uhlenbeck process does."""
        kept = np.exp(-gaps[:, None] / self._slowness)
        kicks = SPREAD * np.sqrt(1 - kept**2) * self._chance.standard_normal(kept.shape)
        spreads = np.empty_like(kept)
        for number in range(len(gaps)):
            self._spread = kept[number] * self._spread + kicks[number]
            spreads[number] = self._spread
        return spreads
