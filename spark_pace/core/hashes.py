"""Hashes of texts and other values, and buckets of keys.

They are the same in every process and release, for checkpoints rest on them.
"""

from __future__ import annotations

import zlib
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spark_pace import ways
from spark_pace.core.ranks import float_orders
from spark_pace.core.tables import Ints, bools

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


def hash_nullable(values: pa.Array) -> Hashes:
    """uint64[n], a hash of each value as `hash_values` makes it; 0 of null."""
    known = bools(values.is_valid())
    hashes = np.zeros(len(values), np.uint64)
    hashes[known] = hash_values(values.drop_null())
    return hashes


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


def _codes() -> npt.NDArray[np.uint32]:
    """uint32[256]: the table of CRC-32, with an entry for each byte."""
    codes = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        codes = np.where(codes & 1, codes >> 1 ^ 0xEDB88320, codes >> 1).astype(np.uint32)
    return codes


_CODES = _codes()


def buckets_of(texts: pa.Array, buckets: int) -> Ints:
    """int64[n], the bucket of each of n texts, none null: the CRC-32 of the text, modulo their number."""
    if buckets == 1 or not len(texts):
        return np.zeros(len(texts), np.int64)
    texts = texts.cast(pa.large_binary())
    offsets = np.frombuffer(texts.buffers()[1], np.int64, len(texts) + 1, texts.offset * 8)
    content = np.frombuffer(texts.buffers()[2] or b"", np.uint8)
    lengths = np.diff(offsets)
    code = np.full(len(texts), 0xFFFFFFFF, np.uint32)
    by_length = np.argsort(-lengths, kind="stable")
    many = np.searchsorted(-lengths[by_length], -np.arange(min(ways.LONG_BYTES, int(lengths.max()))), "left")
    for place, count in enumerate(many.tolist()):  # `count` texts have a byte at this place
        rows = by_length[:count]
        code[rows] = _CODES[(code[rows] ^ content[offsets[rows] + place]) & 0xFF] ^ code[rows] >> np.uint32(8)
    code = ~code
    for row in np.flatnonzero(lengths > ways.LONG_BYTES).tolist():
        code[row] = zlib.crc32(texts[row].as_py())
    return (code % np.uint32(buckets)).astype(np.int64)  # type: ignore[no-any-return]
