"""Finds the lines of a text by operations on whole arrays, so that a flood of blank lines costs little."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from spark_pace.io.text.blocks import Bytes, Ints

_NEWLINE, _SPACE = b"\n "
_IS_SPACE = np.isin(
    np.arange(256), np.frombuffer(b" \t\n\r\x0b\x0c", np.uint8)
)  # the bytes that Python's `strip` removes


def parts_of(chunk: bytes, most: int) -> Iterator[bytes]:
    """Cut a chunk into parts of at most `most` lines, without the newlines between the parts."""
    start = 0
    if len(chunk) >= most:
        ends = np.flatnonzero(np.frombuffer(chunk, np.uint8) == _NEWLINE)
        for end in ends[most - 1 :: most].tolist():
            yield chunk[start:end]
            start = end + 1
    yield chunk[start:]


def filled_lines(chunk: bytes) -> tuple[Ints, Ints]:
    """Find the lines that are not blank.

    Returns:
        int64[2, n], where each begins and ends; int64[n], its number among all lines.
    """
    text = np.frombuffer(chunk, np.uint8)
    if not len(text) or chunk.isspace():
        return np.empty((2, 0), np.int64), np.empty(0, np.int64)
    newlines = np.flatnonzero(text == _NEWLINE)
    bounds = np.empty((2, len(newlines) + 1), np.int64)
    bounds[0, 0], bounds[0, 1:] = 0, newlines + 1
    bounds[1, :-1], bounds[1, -1] = newlines, len(text)
    numbers = np.arange(bounds.shape[1])
    empty = bounds[0] == bounds[1]
    if empty.any():
        bounds, numbers = np.ascontiguousarray(bounds[:, ~empty]), numbers[~empty]
    first_letters = text[bounds[0]]
    spaced = np.flatnonzero(first_letters <= _SPACE)  # other control characters do no harm here
    if len(spaced):
        letters = ~_IS_SPACE[text]
        # pairs: the letters in a line, and the letters between it and the next, which are dropped
        counts = np.add.reduceat(np.append(letters, False), bounds[:, spaced].T.ravel(), dtype=np.int64)[::2]
        filled = np.ones(len(numbers), np.bool_)
        filled[spaced] = counts > 0
        bounds, numbers = np.ascontiguousarray(bounds[:, filled]), numbers[filled]
    return bounds, numbers


def lines_at(text: Bytes, bounds: Ints) -> pa.BinaryArray:
    """The lines of a text that begin and end at `bounds`, int64[2, n]; none may be empty."""
    edges = np.zeros(len(text) + 1, np.int8)
    edges[bounds[0]], edges[bounds[1]] = 1, -1
    inside = np.cumsum(edges[:-1], dtype=np.int8).view(np.bool_)
    ends = np.append(0, np.cumsum(bounds[1] - bounds[0])).astype(np.int32)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(text[inside])]
    return pa.BinaryArray.from_buffers(pa.binary(), bounds.shape[1], buffers)
