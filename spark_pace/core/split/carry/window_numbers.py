"""The numbers of the next windows of keys, where rules with several grids share what is carried.

The first grid has the counter that every rule has; the others have columns beside it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.columns import Ints
from spark_pace.core.split.carry.carry import Touched


def next_selections(touched: Touched, columns: Sequence[str]) -> list[Ints]:
    """int64[k] each, the number of each key's next selection: the counter, and that of each column."""
    others = (touched.last_values[name] for name in columns)
    return [touched.next_selection, *(pc.fill_null(column, 0).to_numpy() for column in others)]


def count_on(touched: Touched, columns: Sequence[str], keys: Ints, following: Sequence[Ints]) -> None:
    """Set the counter and the columns of some keys."""
    counters = next_selections(touched, columns)
    touched.next_selection[keys] = following[0]
    for name, counter, new in zip(columns, counters[1:], following[1:], strict=True):
        counted = np.array(counter)
        counted[keys] = new
        touched.last_values[name] = pa.array(counted)
