"""A small Pairs benchmark: three minutes of ticks of 20 securities, and strategies that look back briefly."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from examples.pairs.oracle import Answer, MarketOrder, answers
from examples.pairs.run import prepare, trades
from examples.pairs.strategies import Strategy, as_events, drawn
from examples.pairs.ticks import Setting, ticks

SMALL = Setting(1, minutes=(0.2, 1.5, 1.0, 0.3), securities=20, rate=100)


def brief_strategies() -> list[Strategy]:
    """Those of the small setting; every third one leaves its position at a loss of a thousandth."""
    return [
        replace(
            one,
            period=min(one.period, 10),
            periods=min(one.periods, 9),
            stop_loss=one.stop_loss if number % 3 else 0.001,
        )
        for number, one in enumerate(drawn(SMALL))
    ]


def write_small(folder: Path, files: int) -> Path:
    """What the job needs, with the ticks in so many files; returns the job file."""
    prepare(folder, brief_strategies())
    pq.write_table(as_events(brief_strategies()), folder / "events" / "00.parquet")
    table = pa.concat_tables(ticks(SMALL))
    rows = -(-table.num_rows // files)
    for number in range(files):
        pq.write_table(table.slice(number * rows, rows), folder / "events" / f"{number + 1:02d}.parquet")
    return folder / "job.yaml"


def expected_answers() -> list[Answer]:
    """What the oracle answers."""
    return list(answers(brief_strategies(), trades(SMALL)))


def stop_losses(found: list[Answer]) -> Iterator[MarketOrder]:
    """The orders that sell where nothing is bought."""
    orders = [one for one in found if isinstance(one, MarketOrder)]
    bought = {(one.strategy, one.time) for one in orders if one.type == "BUY"}
    return (one for one in orders if one.type == "SELL" and (one.strategy, one.time) not in bought)
