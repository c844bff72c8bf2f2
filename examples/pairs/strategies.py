"""The strategies of the Pairs benchmark: drawn, as the benchmark's XML, and as the rules take them.

Sources: Mendes 2013, sections 7.3.1 (how many), B.2 and table B.1 (their parameters).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa

from examples.pairs.ticks import SCALES_OF_A_MARKET, Setting

STRATEGIES_OF_A_SCALE = 25
FUNDS = (1_000_000, 2_000_000, 5_000_000)  # cents
PERIODS = (5, 10, 20, 30, 60)  # seconds
NUMBERS = (5, 6, 7, 8, 9, 10, 15, 20, 25, 30)  # of periods
MULTIPLIERS = (1.2, 1.5, 1.8, 2.0)
STOP_LOSSES = (0.1, 0.2, 0.3)
_EVENTS = pa.schema([
    ("time", pa.int64()), ("strategy", pa.string()), ("pair", pa.string()), ("symbol1", pa.string()),
    ("symbol2", pa.string()), ("period", pa.int64()), ("periods", pa.int64()), ("multiplier", pa.float64()),
    ("stop_loss", pa.float64()), ("funds", pa.int64()),
])  # fmt: skip
_LEGS = pa.schema([("symbol", pa.string()), ("pair", pa.string()), ("number", pa.int64())])


@dataclass(frozen=True)
class Strategy:
    """The parameters of a strategy: seconds of a period, how many periods its bands look back, cents."""

    name: str
    symbol1: str
    symbol2: str
    period: int
    periods: int
    multiplier: float
    stop_loss: float
    funds: int


# the names of the same in the benchmark's XML
_NAMES = {
    "name": "alias", "symbol1": "symbol1", "symbol2": "symbol2", "period": "periodLength",
    "periods": "numPeriods", "multiplier": "bandsMultiplier", "stop_loss": "stopLossPerc",
    "funds": "availableFunds",
}  # fmt: skip
_WHOLE, _FRACTIONS = ("period", "periods", "funds"), ("multiplier", "stop_loss")


def drawn(setting: Setting) -> list[Strategy]:
    """25 strategies for each scale factor; the pairs of a market have as many strategies each."""
    chance = np.random.default_rng([setting.seed, 3])
    of_a_market = SCALES_OF_A_MARKET * STRATEGIES_OF_A_SCALE
    found = []
    for number in range(STRATEGIES_OF_A_SCALE * setting.scale):
        pairs = setting.pairs(number // of_a_market)
        period, periods, funds = (int(chance.choice(values)) for values in (PERIODS, NUMBERS, FUNDS))
        multiplier, stop_loss = (float(chance.choice(values)) for values in (MULTIPLIERS, STOP_LOSSES))
        symbols = pairs[number % of_a_market % len(pairs)]
        found.append(
            Strategy(f"st_{number + 1:05d}", *symbols, period, periods, multiplier, stop_loss, funds)
        )
    return found


def write(path: Path, strategies: Iterable[Strategy]) -> None:
    """Write them as the benchmark's XML."""
    root = ElementTree.Element("Strategies")
    for strategy in strategies:
        values = {name: str(getattr(strategy, field)) for field, name in _NAMES.items()}
        ElementTree.SubElement(root, "PairsStrategy", values)
    ElementTree.indent(root)
    path.write_text(ElementTree.tostring(root, encoding="unicode") + "\n", encoding="utf-8")


def read(path: Path) -> list[Strategy]:
    """What `write` has written."""
    found = []
    for element in ElementTree.parse(path).getroot():
        values: dict[str, Any] = {field: element.attrib[name] for field, name in _NAMES.items()}
        values |= {field: int(values[field]) for field in _WHOLE}
        values |= {field: float(values[field]) for field in _FRACTIONS}
        found.append(Strategy(**values))
    return found


def as_events(strategies: Iterable[Strategy]) -> pa.Table:
    """The strategies as events before the first tick."""
    rows = [
        {**vars(strategy), "time": 0, "strategy": strategy.name, "pair": _pair(strategy)}
        for strategy in strategies
    ]
    return pa.Table.from_pylist(rows, schema=_EVENTS)


def legs(strategies: Iterable[Strategy]) -> pa.Table:
    """The table beside the ticks: of each security that is watched its pair, and its `number` in it."""
    rows = {
        symbol: {"symbol": symbol, "pair": _pair(strategy), "number": number}
        for strategy in strategies
        for number, symbol in enumerate((strategy.symbol1, strategy.symbol2), 1)
    }
    return pa.Table.from_pylist(list(rows.values()), schema=_LEGS)


def _pair(strategy: Strategy) -> str:
    return f"{strategy.symbol1}/{strategy.symbol2}"
