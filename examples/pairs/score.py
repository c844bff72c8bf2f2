"""The score of a run of the Pairs benchmark: its load over the 99th percentile of the latencies of orders.

Sources: Mendes 2013, section 7.3.6, appendix A and table 7.1.
"""

from __future__ import annotations

from examples.pairs.ticks import SCALES_OF_A_MARKET

# by scale factor: the 99th percentile in seconds of the engines X and Y on eight cores; Y ran two scales
PUBLISHED = {
    1: {"X": 0.063, "Y": 0.022},
    2: {"X": 0.175, "Y": 0.024},
    3: {"X": 0.203},
    4: {"X": 0.351},
    5: {"X": 91.862},
}


def load(scale: int) -> int:
    """The work a second that a scale factor poses, in units of the benchmark."""
    markets = -(-scale // SCALES_OF_A_MARKET)
    of_last_market = (scale - 1) % SCALES_OF_A_MARKET + 1
    return scale * markets + 2 * (SCALES_OF_A_MARKET * (markets - 1) + of_last_market)


def p_score(scale: int, seconds: float) -> float:
    """The score; `seconds` is the 99th percentile of the latencies of orders in the measured interval."""
    return load(scale) / seconds
