"""Every wrong query of tests/golden/bad_queries is refused with exactly the message beside it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from spark_pace.errors import ConfigError
from spark_pace.rules.row_patterns.queries import file_query
from spark_pace.rules.row_patterns.words import read_query

FILES = sorted((Path(__file__).parents[2] / "golden" / "bad_queries").glob("*.sql"))
ROWS = pa.schema(
    [
        ("k", pa.string()),
        ("t", pa.timestamp("us")),
        ("x", pa.int64()),
        ("y", pa.float64()),
        ("a", pa.list_(pa.int64())),
    ]
).empty_table()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_bad_query_is_refused_with_its_message(path: Path) -> None:
    with pytest.raises(ConfigError) as refused:
        file_query(read_query(path.read_text(), path.name, "spark")).answer(ROWS, 1)
    assert f"{refused.value}\n" == path.with_suffix(".txt").read_text()
