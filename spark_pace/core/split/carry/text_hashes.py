"""Keys by the hashes of their texts: ranges of hashes, and the place of a key among others."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.columns import Bools, Ints
from spark_pace.core.hashes import Hashes

HashRange = tuple[np.uint64, np.uint64]  # the least and the greatest hash
EVERY_HASH: HashRange = (np.uint64(0), np.uint64((1 << 64) - 1))


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
