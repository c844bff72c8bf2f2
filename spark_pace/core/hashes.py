"""Hashes of texts and other values: the same in every process and release, for checkpoints rest on them."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spark_pace.core.ranks import float_orders

Hashes: TypeAlias = npt.NDArray[np.uint64]


def hash_values(values: pa.Array) -> Hashes:
    """uint64[n], a hash of each value, equal where the values are equal in SQL; none of them is null."""
    kind = values.type
    if pa.types.is_string(kind):
        return hash_texts(values)
    if pa.types.is_decimal(kind):
        words = np.frombuffer(values.buffers()[1], np.uint64).reshape(-1, 2)
        words = words[values.offset : values.offset + len(values)]
        return _mixed(_mixed(words[:, 0]) ^ words[:, 1])
    if pa.types.is_floating(kind):
        return _mixed(float_orders(values.to_numpy()).view(np.uint64))
    whole = values.cast(pa.int32() if pa.types.is_date32(kind) else pa.int64())
    return _mixed(whole.to_numpy(zero_copy_only=False).astype(np.int64).view(np.uint64))


def hash_texts(texts: pa.Array) -> Hashes:
    """uint64[n], equal for equal texts, and the same in every process; different texts seldom have one hash.

    The hash of a text is the sum of a mixed number for each (place, byte).
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
