"""Hashes of texts, and looking texts up by their hashes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.columns import Bools, Ints

Hashes = npt.NDArray[np.uint64]
HashRange = tuple[np.uint64, np.uint64]  # the least and the greatest hash
EVERY_HASH: HashRange = (np.uint64(0), np.uint64((1 << 64) - 1))


def hash_texts(texts: pa.Array) -> Hashes:
    """uint64[n], the hashes of texts. They are the same in every process; different texts seldom share one.

    The hash of a text is the sum of mixed numbers, one for each (place, byte).
    """
    count = len(texts)
    if not count:
        return np.zeros(0, np.uint64)
    texts = texts.cast(pa.large_string())
    offsets = np.frombuffer(texts.buffers()[1], np.int64, count + 1, texts.offset * 8)
    lengths = np.diff(offsets)
    start, end = int(offsets[0]), int(offsets[-1])
    if start == end:
        return _mixed(lengths.astype(np.uint64))
    codes = np.frombuffer(texts.buffers()[2], np.uint8, end - start, start).astype(np.uint64)
    place = np.arange(end - start) - np.repeat(offsets[:-1] - start, lengths)
    total = np.append(np.uint64(0), np.cumsum(_mixed((place.astype(np.uint64) << np.uint64(8)) | codes)))
    sums = total[offsets[1:] - start] - total[offsets[:-1] - start]
    return _mixed(sums + lengths.astype(np.uint64))


def _mixed(values: Hashes) -> Hashes:
    """Splitmix64: each bit of a result depends on all bits of its value."""
    values = (values + np.uint64(0x9E3779B97F4A7C15)).astype(np.uint64)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))  # type: ignore[no-any-return]


def are_within(hashes: Hashes, bounds: HashRange) -> Bools:
    """bool[n], which hashes are in a range, both ends included."""
    return (hashes >= bounds[0]) & (hashes <= bounds[1])


def place_of(hashes: Hashes, keys: pa.Array, wanted: Hashes, texts: pa.Array) -> Ints:
    """Look texts up among keys that are sorted by their hash.

    Args:
        hashes: uint64[n], ascending.
        keys: string[n], the keys with these hashes.
        wanted: uint64[m], the hashes of `texts`.
        texts: string[m].

    Returns:
        int64[m], the index of each text among the keys; -1 if it is not there.
    """
    place = np.searchsorted(hashes, wanted)
    found = np.full(len(wanted), -1, np.int64)
    asked = np.arange(len(wanted))
    while len(asked):  # more than once only if different keys share a hash
        at = place[asked]
        inside = at < len(hashes)
        inside[inside] = hashes[at[inside]] == wanted[asked[inside]]
        asked = asked[inside]
        at = place[asked]
        same = _equal(keys, at, texts, asked)
        found[asked[same]] = at[same]
        asked = asked[~same]
        place[asked] += 1
    return found


def _equal(keys: pa.Array, at: Ints, texts: pa.Array, asked: Ints) -> Bools:
    equal = pc.equal(keys.take(pa.array(at)), texts.take(pa.array(asked)))
    return equal.to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]
