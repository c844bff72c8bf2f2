"""Tables as frames: compressed where that saves bytes, and the same tables again."""

from __future__ import annotations

from typing import Literal

import pyarrow as pa
import pytest

from spark_pace import ways
from spark_pace.core.frames import decode, encode


def table(rows: int) -> pa.Table:
    return pa.table({
        "n": pa.array([None, *range(rows - 1)], pa.int64()),
        "text": pa.array([str(number % 7) for number in range(rows)]).dictionary_encode(),
        "list": [[number, None] for number in range(rows)],
    })  # fmt: skip


@pytest.mark.parametrize("codec", ["zstd", "lz4"])
@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("rows", [1, 5, 5000])
def test_a_frame_gives_its_table_again(
    monkeypatch: pytest.MonkeyPatch, rows: int, compressed: bool, codec: Literal["zstd", "lz4"]
) -> None:
    monkeypatch.setattr(ways, "is_compressed", lambda _: compressed)
    assert decode(encode(table(rows), codec)).equals(table(rows))


def test_many_rows_are_compressed_and_a_few_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    few, many = len(encode(table(5))), len(encode(table(5000)))
    monkeypatch.setattr(ways, "is_compressed", lambda _: False)
    assert (len(encode(table(5))), len(encode(table(5000))) > 3 * many) == (few, True)
