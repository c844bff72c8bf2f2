"""The answers that the Pairs benchmark expects: plain Python, tick after tick, with nothing of the engine.

What the benchmark leaves open is read as follows. Periods begin at time 0; the tick that closes one does not
belong to it. A security without a trade in a period gives no ratio. Bands use the deviation of the whole, not
of a sample. Where a band is crossed and the stop-loss is reached at once, the crossing counts. The balance of
procedure 4 is what remains when the order is paid (its last line leaves out the price). What is held at the
end is not sold.

Sources: Mendes 2013, section 7.3.3 and procedure 4.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import fsum, sqrt

from examples.pairs.strategies import Strategy

Trade = tuple[int, str, int]  # milliseconds, symbol, cents
CLOCK_MS = 5_000


@dataclass(frozen=True)
class Indicator:
    """An answer of the stream Indicator; `time` is the end of the period, in milliseconds."""

    strategy: str
    time: int
    ratio: float
    average: float
    upper: float
    lower: float


@dataclass(frozen=True)
class MarketOrder:
    """An answer of the stream MarketOrder."""

    strategy: str
    time: int
    type: str
    symbol: str
    price: int
    size: int


Answer = Indicator | MarketOrder


@dataclass
class _Security:
    """What was traded so far."""

    cents: int = 0
    trades: int = 0
    last: int = 0


@dataclass
class _Trader:
    """A strategy at work."""

    of: Strategy
    first: _Security
    second: _Security
    counted: tuple[int, int, int, int] = (0, 0, 0, 0)  # cents and trades of both, up to the last period
    ratios: deque[float] = field(default_factory=deque)
    before: Indicator | None = None
    state: str = "FLAT"
    shares: int = 0
    funds: int = 0
    entered: float = 0.0

    def close(self, time: int) -> Iterator[Answer]:
        """The answers at the end of a period."""
        ratio = self.ratio()
        if ratio is None:
            return
        self.ratios.append(ratio)
        if len(self.ratios) > self.of.periods:
            self.ratios.popleft()
        if len(self.ratios) < self.of.periods:
            return
        average = fsum(self.ratios) / self.of.periods
        deviation = sqrt(fsum((one - average) ** 2 for one in self.ratios) / self.of.periods)
        band = self.of.multiplier * deviation
        now = Indicator(self.of.name, time, ratio, average, average + band, average - band)
        yield now
        target = self.target(now)
        self.before = now
        if target != self.state:
            yield from self.move(target, now)

    def ratio(self) -> float | None:
        """Of the mean prices of the period that ends."""
        one, two = self.first, self.second
        total = (one.cents, one.trades, two.cents, two.trades)
        cents1, trades1, cents2, trades2 = (now - then for now, then in zip(total, self.counted, strict=True))
        self.counted = total
        return (cents1 / trades1) / (cents2 / trades2) if trades1 and trades2 else None

    def target(self, now: Indicator) -> str:
        """The state to be in."""
        before = self.before
        if before is not None:
            if now.ratio >= now.upper and before.ratio < before.upper and self.state != "SHORT_LONG":
                return "SHORT_LONG"
            if now.ratio <= now.lower and before.ratio > before.lower and self.state != "LONG_SHORT":
                return "LONG_SHORT"
        if self.state == "SHORT_LONG" and now.ratio >= (1 + self.of.stop_loss) * self.entered:
            return "FLAT"
        if self.state == "LONG_SHORT" and now.ratio <= (1 - self.of.stop_loss) * self.entered:
            return "FLAT"
        return self.state

    def move(self, target: str, now: Indicator) -> Iterator[MarketOrder]:
        """Sell what is held, buy what the new state holds."""
        held = {"LONG_SHORT": (self.of.symbol1, self.first), "SHORT_LONG": (self.of.symbol2, self.second)}
        if self.state in held:
            symbol, security = held[self.state]
            yield MarketOrder(self.of.name, now.time, "SELL", symbol, security.last, self.shares)
            self.funds += self.shares * security.last
            self.shares = 0
        if target in held:
            symbol, security = held[target]
            self.shares = 10 * (self.funds // (security.last * 10))
            yield MarketOrder(self.of.name, now.time, "BUY", symbol, security.last, self.shares)
            self.funds -= self.shares * security.last
        self.state, self.entered = target, now.ratio


def answers(strategies: Sequence[Strategy], trades: Iterable[Trade]) -> Iterator[Answer]:
    """All answers, in the order of time; those of a period come with the first trade behind it."""
    securities: dict[str, _Security] = {}
    traders = []
    for of in strategies:
        first, second = (securities.setdefault(symbol, _Security()) for symbol in (of.symbol1, of.symbol2))
        traders.append(_Trader(of, first, second, funds=of.funds))
    end = CLOCK_MS
    for time, symbol, price in trades:
        while time >= end:
            for trader in traders:
                if end % (1000 * trader.of.period) == 0:
                    yield from trader.close(end)
            end += CLOCK_MS
        security = securities.get(symbol)
        if security is not None:
            security.cents += price
            security.trades += 1
            security.last = price
