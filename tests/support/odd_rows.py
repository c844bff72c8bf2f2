"""Rows for clauses of MATCH_RECOGNIZE whose numbers are at the ends of what numbers can be."""

from __future__ import annotations

import math
from random import Random

import pyarrow as pa

from tests.support.row_pattern_cases import rows_of

NUMBERS = [0, 0, 1, 1, 2, 3, -2, 1 << 62, -(1 << 62), (1 << 63) - 1, -(1 << 63), 1 << 53, None]
DOUBLES = [0.0, -0.0, 0.1, 0.3, -0.7, 2.5, 1e16, -1e16, 1e-9, 3.3, None]
ODD_DOUBLES = [*DOUBLES, math.nan, math.inf, -math.inf]
FAR_DOUBLES = [*DOUBLES, 1e300, -1e300, 1e-300]


def rows_with_odd_values(random: Random) -> pa.Table:
    """Rows whose numbers overflow, are not exact, are no numbers, or are far apart."""
    doubles, most = random.choice([DOUBLES, ODD_DOUBLES, FAR_DOUBLES]), random.choice([3, len(NUMBERS)])
    return rows_of(random, 25, lambda: (random.choice(NUMBERS[:most]), random.choice(doubles)))
