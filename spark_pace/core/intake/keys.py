"""The text of a partition key: the JSON object of the `partition_by` columns, nulls included."""

from __future__ import annotations

import datetime
import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from spark_pace.core.columns import distinct


def key_texts(names: Sequence[str], columns: Sequence[pa.Array]) -> pa.DictionaryArray:
    """The key of each row as dictionary<int32, string>. The text is made once for each distinct key."""
    first, code = distinct(columns)
    values = [column.take(pa.array(first)).to_pylist() for column in columns]
    texts = [key_text(names, row) for row in zip(*values, strict=True)]
    return pa.DictionaryArray.from_arrays(pa.array(code, pa.int32()), pa.array(texts, pa.string()))


def key_text(names: Sequence[str], values: Sequence[Any]) -> str:
    """One key as compact JSON; times and dates in ISO 8601."""
    row = {name: _plain(value) for name, value in zip(names, values, strict=True)}
    return json.dumps(row, ensure_ascii=False, separators=(",", ":"))


def _plain(value: Any) -> Any:
    if isinstance(value, (datetime.datetime, datetime.date)):
        return value.isoformat()
    return value + 0.0 if isinstance(value, float) else value  # -0.0 is the key 0.0
