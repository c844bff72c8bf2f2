"""Well-known examples give the rows that their documents show, without Spark."""

from __future__ import annotations

import pytest

from spark_pace.rules.row_patterns.queries import file_query
from spark_pace.rules.row_patterns.words import read_query
from tests.support.row_pattern_examples import EXAMPLES, Example


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_the_rows_are_those_of_the_document(example: Example) -> None:
    query = file_query(read_query(example.query, "query", example.dialect))
    found = query.answer(example.table, 1_000_000).to_pylist()
    assert [_lower(row) for row in found] == [_lower(row) for row in example.rows]


def _lower(row: dict[str, object]) -> dict[str, object]:
    return {name.lower(): cell for name, cell in row.items()}
