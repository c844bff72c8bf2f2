"""What a run of the Pairs benchmark reports.

Sources: Mendes 2013, sections 7.3.6 (what a report says beside the score) and B.5 (validation).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from examples.pairs.latency import Latencies
from examples.pairs.score import PUBLISHED, load, p_score
from examples.pairs.strategies import STRATEGIES_OF_A_SCALE
from examples.pairs.ticks import PEAK, Floats, Setting
from examples.pairs.validation import INDICATORS, ORDERS, Validation
from spark_pace.errors import counted

DISCLOSED = (
    "positions, balance and stop-loss are a Python function (examples/pairs/orders.py), all else is rules",
    "what comes before the measured interval is read as a backlog, not when it is due",
)
_STEP = 0.25  # seconds of a bar of the histogram


@dataclass(frozen=True)
class Run:
    """What a run was and has shown.

    Attributes:
        setting: what was generated.
        kills: how often the job was killed while it was measured.
        records: how many ticks and strategies were sent.
        validations: by stream of answers.
        latencies: by rule, of the measured interval.
        batches: how long each batch took, seconds.
    """

    setting: Setting
    kills: int
    records: int
    validations: dict[str, Validation]
    latencies: dict[str, Latencies]
    batches: Sequence[float]


def figures(seconds: Floats) -> dict[str, float]:
    """Count, mean, percentiles and worst of some latencies."""
    if not len(seconds):
        return {"count": 0}
    p50, p90, p99 = np.percentile(seconds, (50, 90, 99))
    found = {"p50": p50, "p90": p90, "p99": p99, "mean": seconds.mean(), "worst": seconds.max()}
    return {"count": len(seconds), **{name: round(float(value), 3) for name, value in found.items()}}


def as_json(run: Run) -> dict[str, Any]:
    """The report."""
    scale, orders = run.setting.scale, figures(run.latencies[ORDERS].from_append)
    score = p_score(scale, orders["p99"]) if orders["count"] and not run.kills else None
    bars = (run.latencies[ORDERS].from_append // _STEP).astype(np.int64)
    return {
        "scale": scale,
        "seed": run.setting.seed,
        "strategies": STRATEGIES_OF_A_SCALE * scale,
        "basis_rate": run.setting.basis,
        "minutes": run.setting.minutes,
        "records": run.records,
        "kills": run.kills,
        "validation": {stream: asdict(one) for stream, one in run.validations.items()},
        "orders": orders,
        "orders_from_due": figures(run.latencies[ORDERS].from_due),
        "indicators": figures(run.latencies[INDICATORS].from_append),
        "histogram": {f"{number * _STEP:g} s": int(count) for number, count in enumerate(np.bincount(bars))},
        "batch_seconds": figures(np.array(run.batches)),
        "load": load(scale),
        "p_score": None if score is None else round(score, 2),
        "published": {
            engine: round(p_score(scale, seconds), 2) for engine, seconds in PUBLISHED.get(scale, {}).items()
        },
        "disclosed": list(DISCLOSED),
    }


def as_text(run: Run) -> str:
    """The report as lines."""
    found = as_json(run)
    basis = found["basis_rate"]
    head = f"{found['strategies']} strategies, {basis:,.0f} to {PEAK * basis:,.0f} ticks/s"
    sent = f"{counted(found['records'], 'record')}, {counted(run.kills, 'kill')}"
    lines = [f"Pairs, scale factor {found['scale']}: {head}, {sent}"]
    for stream, counts in found["validation"].items():
        lines.append(f"  {stream:12} " + ", ".join(f"{name} {count:,}" for name, count in counts.items()))
    for name in ("orders", "orders_from_due", "indicators", "batch_seconds"):
        lines.append(f"  {name:16} " + ", ".join(f"{key} {value:,}" for key, value in found[name].items()))
    lines += [f"  orders from {bar}: {count}" for bar, count in found["histogram"].items() if count]
    lines.append(
        f"  load {found['load']}, p_score {found['p_score']}, published {found['published'] or 'none'}"
    )
    return "\n".join([*lines, *(f"  {line}" for line in DISCLOSED)])
