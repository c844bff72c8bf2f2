"""Computes how far each record's source had come before it: the greatest time of its earlier records."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from spark_pace.core.columns import NO_FRONTIER, Ints


def reached_before(time: Ints, names: pa.DictionaryArray, before: Callable[[str], int]) -> Ints:
    """For each record, the greatest event time of earlier records of its source.

    Args:
        time: int64[n], event times in the order of the records.
        names: the n sources; null for a record without source.
        before: gives the greatest time of a source before the first record.

    Returns:
        int64[n]; `NO_FRONTIER` where there is no earlier record. O(n log n) with several sources.
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
    """The reached times of several sources, by one running maximum of ranks, source by source."""
    rows = np.argsort(source, kind="stable")
    values, ranks = np.unique(np.append(time, known), return_inverse=True)
    size, of_row = len(values), source[rows]
    is_first = np.append(True, of_row[1:] != of_row[:-1])
    own, beginning = ranks[: len(time)][rows], ranks[len(time) :][of_row]
    # before each record: the record before it, or the time that its source had reached
    code = np.where(is_first, beginning, np.maximum(np.roll(own, 1), beginning)) + of_row * size
    found = np.empty(len(time), np.int64)
    found[rows] = values[np.maximum.accumulate(code) - of_row * size]
    return found


def _earlier_greatest(time: Ints, known_us: int) -> Ints:
    """int64[n]: the greatest of `known_us` and the times before each."""
    return np.maximum.accumulate(np.append(known_us, time[:-1]))
