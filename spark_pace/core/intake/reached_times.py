"""How far the source of each record had come before it: the greatest event time of its earlier records."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from spark_pace.core.columns import NO_FRONTIER, Ints


def reached_before(time: Ints, names: pa.DictionaryArray, before: Callable[[str], int]) -> Ints:
    """The greatest time of the source of each record before it; the least of all times where there is none.

    Args:
        time: int64[n], event times in the order of the records.
        names: n sources; null for a record of no source.
        before: tells of a source the greatest time before the first record.

    Returns:
        int64[n], O(n log n) where there are several sources.
    """
    texts = names.dictionary.cast(pa.string()).to_pylist()
    known = np.array([*map(before, texts), NO_FRONTIER], np.int64)
    source = names.indices.cast(pa.int64()).fill_null(len(texts)).to_numpy()
    if len(source) and (source == source[0]).all():
        found = _earlier_greatest(time, known[source[0]])
    else:
        found = _of_each(time, source, known)
    found[source == len(texts)] = NO_FRONTIER
    return found


def _of_each(time: Ints, source: Ints, known: Ints) -> Ints:
    """The reached times of several sources: one running maximum of the times' ranks, source after source."""
    rows = np.argsort(source, kind="stable")
    values, ranks = np.unique(np.append(time, known), return_inverse=True)
    size, of_row = len(values), source[rows]
    is_first = np.append(True, of_row[1:] != of_row[:-1])
    own, beginning = ranks[: len(time)][rows], ranks[len(time) :][of_row]
    # what each record has before it: the record before it, or what its source had reached
    code = np.where(is_first, beginning, np.maximum(np.roll(own, 1), beginning)) + of_row * size
    found = np.empty(len(time), np.int64)
    found[rows] = values[np.maximum.accumulate(code) - of_row * size]
    return found


def _earlier_greatest(time: Ints, known_us: int) -> Ints:
    """The greatest of the times before each, and of `known_us`."""
    return np.maximum.accumulate(np.append(known_us, time[:-1]))
