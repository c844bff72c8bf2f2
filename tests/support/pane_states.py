"""A state of a build that carried a row for the events of each pane, and the stream and rules it is of.

That build has made `KEPT` by ``state_after(FIRST)``; no later one can.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from spark_pace import ways
from spark_pace.core.local_run import LocalRun
from spark_pace.core.order.order import OrderSpec
from spark_pace.core.plan.plan import Plan, build_plan
from spark_pace.rules import load_rules

KEPT = Path(__file__).parents[1] / "fixtures" / "pane_rows.state"
FIRST, BATCHES, SECONDS = 7, 12, 6
SECOND = 1_000_000
ALL = (
    "n: count(*), known: count(x), total: sum(x), mean: avg(x), spread: stddev(x), least: min(x), "
    "greatest: max(name), began: first(x), ended: last(x)"
)
RULES = f"""
events: {{schema: "time TIMESTAMP, card STRING, name STRING, x DOUBLE", event_time: time}}
rules:
  - {{name: of_all, span: {{every: 2 s, size: 20 s}}, emit: {{{ALL}}}}}
  - {{name: shorter, span: {{every: 2 s, size: 8 s}}, emit: {{{ALL}}}}}
  - {{name: of_cards, partition_by: [card], span: {{every: 3 s, size: 15 s}}, emit: {{{ALL}}}}}
  - {{name: long_panes, partition_by: [card], span: {{every: 20 s, size: 40 s}}, emit: {{{ALL}}}}}
  - {{name: forgetful, partition_by: [card], forget_key_after: 6 s, span: {{every: 1 s, size: 5 s}},
      emit: {{{ALL}}}}}
"""


def plan(folder: Path) -> Plan:
    """The plan of the rules."""
    (folder / "panes.yaml").write_text(RULES, encoding="utf-8")
    return build_plan(load_rules(folder / "panes.yaml"), order=OrderSpec(1_500_000), slots=1, buckets=1)


def batches() -> list[pa.Table]:
    """The stream: cards that fall silent and come again, nulls, and numbers that are not finite."""
    random, tables, offset = np.random.default_rng(5), list[pa.Table](), 0
    for number in range(BATCHES):
        count = 40
        times = number * SECONDS * SECOND + np.sort(random.integers(0, SECONDS * SECOND, count))
        cards = [f"c{(number // 4 + draw) % 5}" for draw in random.integers(0, 3, count).tolist()]
        values = [round(one, 2) for one in random.normal(0, 1e6, count).tolist()]
        odd = {3: math.inf, 4: -math.inf, 5: math.nan, 6: None}
        x = [odd.get(draw, one) for draw, one in zip(random.integers(0, 200, count), values, strict=True)]
        time = pa.array(times)
        tables.append(pa.table({
            "@time": time,
            "@source": pa.array(["s"] * count).dictionary_encode(),
            "@offset": np.arange(offset, offset + count),
            "time": time.view(pa.timestamp("us")),
            "card": cards,
            "name": [f"n{draw}" for draw in random.integers(0, 9, count)],
            "x": pa.array(x, pa.float64()),
        }))  # fmt: skip
        offset += count
    return tables


def state_after(folder: Path, count: int) -> bytes:
    """The state behind so many batches, with many chunks in it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ways, "is_kept_in_part", lambda _: True)
        patch.setattr(ways, "is_merged", lambda *_: False)
        patch.setattr(ways, "is_cleaned", lambda *_: False)
        local = LocalRun(plan(folder))
        for batch in batches()[:count]:
            local.step(batch)
        return local.splitters[0].snapshot()
