"""Computes the buckets of whole columns of partition keys: the CRC-32 of the text, modulo their number."""

from __future__ import annotations

import zlib

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spark_pace import ways
from spark_pace.core.columns import Ints


def _table() -> npt.NDArray[np.uint32]:
    """uint32[256]: the table of CRC-32, with an entry for each byte."""
    codes = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        codes = np.where(codes & 1, codes >> 1 ^ 0xEDB88320, codes >> 1).astype(np.uint32)
    return codes


_TABLE = _table()


def buckets_of(texts: pa.Array, buckets: int) -> Ints:
    """int64[n]: the bucket of each of n texts, none of them null."""
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
        code[rows] = _TABLE[(code[rows] ^ content[offsets[rows] + place]) & 0xFF] ^ code[rows] >> np.uint32(8)
    code = ~code
    for row in np.flatnonzero(lengths > ways.LONG_BYTES).tolist():
        code[row] = zlib.crc32(texts[row].as_py())
    return (code % np.uint32(buckets)).astype(np.int64)  # type: ignore[no-any-return]
