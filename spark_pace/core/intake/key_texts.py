"""Makes the text of partition keys: the JSON object of the `partition_by` columns, with nulls."""

from __future__ import annotations

import datetime
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.plan.structs import shown_values
from spark_pace.core.ranks import distinct

_ESCAPED = r'["\\\x00-\x1f]'  # the characters that JSON escapes in a text


def key_texts(names: Sequence[str], columns: Sequence[pa.Array]) -> pa.DictionaryArray:
    """dictionary<int32, string>[n]: each row's key as compact JSON, made once for each distinct key."""
    first, code = distinct(columns)
    parts: list[Any] = []
    for name, column in zip(names, columns, strict=True):
        parts += ["," if parts else "{", f"{_json(name)}:", _json_texts(column.take(pa.array(first)))]
    texts = pc.binary_join_element_wise(*parts, "}", "")
    return pa.DictionaryArray.from_arrays(pa.array(code, pa.int32()), texts)


def _json_texts(values: pa.Array) -> pa.Array:
    """string[n]: each value as JSON; times and dates as ISO 8601."""
    if pa.types.is_string(values.type):
        texts = pc.binary_join_element_wise('"', values, '"', "")
        alone = pc.fill_null(pc.match_substring_regex(values, _ESCAPED), False)
    elif not pa.types.is_temporal(values.type) and not pa.types.is_floating(values.type):
        texts, alone = values.cast(pa.string()), pa.array(np.zeros(len(values), np.bool_))
    else:
        texts, alone = pa.nulls(len(values), pa.string()), pc.is_valid(values)
    if pc.any(alone).as_py():
        told = [_json(_plain(value)) for value in shown_values(values.filter(alone))]
        texts = pc.replace_with_mask(texts, alone, pa.array(told, pa.string()))
    return pc.fill_null(texts, "null")


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _plain(value: Any) -> Any:
    if isinstance(value, (datetime.datetime, datetime.date)):
        return value.isoformat()
    return value + 0.0 if isinstance(value, float) else value  # -0.0 is the key 0.0
