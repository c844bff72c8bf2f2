"""The numbers of the keys' next windows, for rules with several grids that share a carry.

The first grid uses the counter that every rule has; each other grid has a column of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.columns import Ints
from spark_pace.core.split.carry.carry import Touched


def next_selections(touched: Touched, columns: Sequence[str]) -> list[Ints]:
    """int64[k] for each grid, the number of each key's next selection: the counter, then the columns."""
    others = (touched.last_values[name] for name in columns)
    return [touched.next_selection, *(pc.fill_null(column, 0).to_numpy() for column in others)]


def count_on(touched: Touched, columns: Sequence[str], keys: Ints, following: Sequence[Ints]) -> None:
    """Set the next numbers of some keys, for each grid (`following`)."""
    counters = next_selections(touched, columns)
    touched.next_selection[keys] = following[0]
    for name, counter, new in zip(columns, counters[1:], following[1:], strict=True):
        counted = np.array(counter)
        counted[keys] = new
        touched.last_values[name] = pa.array(counted)
