"""The Pairs benchmark (Mendes 2013, chapter 7), by `examples/pairs`: how long orders take, and its score.

A few minutes of the measured interval instead of an hour; what comes before it is read as a backlog. All
answers of a run must be those of the oracle. Beside our scores stands the best one of each engine of the
thesis, on eight cores.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.jobs import OUT
from benchmarks.rows import Row, Sizes, require
from examples.pairs.report import as_json
from examples.pairs.run import run
from examples.pairs.score import PUBLISHED, p_score
from examples.pairs.ticks import Setting

MINUTES = {1: 4.0, 5: 3.0, 10: 3.0, 20: 3.0}  # of the measured interval, by scale factor
FIGURES = ("p50", "p90", "p99", "worst", "mean")
SCORE = "work/s²"


def measure(sizes: Sizes) -> Iterator[Row]:
    """The latencies of orders in seconds, from append to commit; the scores."""
    for scale, minutes in MINUTES.items():
        found = run(Setting(scale, minutes=(1.0, 30.0, minutes, 0.0)), OUT / "pairs" / str(scale))
        for stream, one in found.validations.items():
            require(one.passed, f"pairs: scale factor {scale}: {stream}: {one}; nothing was measured")
        report = as_json(found)
        require(report["orders"]["count"], f"pairs: scale factor {scale}: no order was measured")
        yield from rows_of(report)
    for engine in ("X", "Y"):
        scores = {scale: p_score(scale, of[engine]) for scale, of in PUBLISHED.items() if engine in of}
        best = max(scores, key=scores.__getitem__)
        yield Row("pairs", f"engine {engine} at its best: {_told(best)}; score", scores[best], SCORE)


def rows_of(report: dict[str, Any]) -> Iterator[Row]:
    """The figures of a run."""
    name, checked = _told(report["scale"]), "the oracle's answers"
    for figure in FIGURES:
        yield Row("pairs", f"{name}; {figure}", report["orders"][figure], "s", None, None, checked)
    yield Row("pairs", f"{name}; score", report["p_score"], SCORE, None, None, checked)


def _told(scale: int) -> str:
    return f"scale factor {scale}, {25 * scale} strategies"
