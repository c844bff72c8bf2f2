"""The queries of `benchmarks/row_patterns.py`: in Flink's words they ask the same."""

from __future__ import annotations

import pytest

from benchmarks.row_patterns import CASES, FLINKS, OURS, answer, ticks

ROWS = 2_000


@pytest.mark.parametrize(("query", "partitions"), CASES)
def test_both_texts_of_a_query_find_the_same(query: str, partitions: str):
    table = ticks(ROWS)
    ours, flinks = (answer(texts[query], partitions, table)[0] for texts in (OURS, FLINKS))
    assert ours.equals(flinks)
    assert ours.num_rows > 0
