"""Turns whole columns of any type into text, for JSON, CSV and tables on the terminal.

A time becomes ISO text in UTC, bytes become UTF-8 text (with escapes for bytes that are no UTF-8), numbers
that are not finite become text, and a map becomes an object.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from json.encoder import encode_basestring
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from spark_pace.io.text.column_types import is_text

TEXT = pa.large_string()  # the lists of a batch may have more than 2 GB of text
Encode = Callable[[str], str]


def json_objects(members: Mapping[str, pa.Array], rows: int, encode: Encode = encode_basestring) -> pa.Array:
    """Build one JSON object for each row.

    Args:
        members: for each name its values as JSON text, large_string[rows] without nulls.
        rows: how many objects.
        encode: makes a JSON string of a text.

    Returns:
        large_string[rows], in the bytes that `json.dumps` gives.
    """
    parts: list[Any] = [pa.repeat(pa.scalar("{", TEXT), rows)]
    for name, values in members.items():
        parts += [pa.scalar(f"{', ' if len(parts) > 1 else ''}{encode(name)}: ", TEXT), values]
    return _put_together(*parts, "}")


def fields_as_json(
    matches: pa.RecordBatch, fields_of: Callable[[str, pa.RecordBatch], Iterable[str]]
) -> pa.Array:
    """Build a JSON object for each match, with the fields of its rule: large_string[matches].

    `fields_of` gives the names of a rule's fields, by its name and its matches.
    """
    texts, places = [pa.array([], TEXT)], [np.array([], np.int64)]
    for rule in pc.unique(matches["rule"]).to_pylist():
        place = np.flatnonzero(pc.equal(matches["rule"], rule))
        own = matches.take(pa.array(place))
        names, none = own.schema.names, pa.nulls(len(place))  # a rule may have a field since these matches
        fields = {name: own[name] if name in names else none for name in fields_of(rule, own)}
        texts.append(json_objects({name: as_json(values) for name, values in fields.items()}, len(place)))
        places.append(place)
    return pa.concat_arrays(texts).take(pa.array(np.argsort(np.concatenate(places))))


def as_json(values: pa.Array, encode: Encode = encode_basestring) -> pa.Array:
    """Each value as JSON text, in the bytes that `json.dumps` gives: large_string[n] without nulls."""
    kind = values.type
    if kinds.is_struct(kind):
        members = {
            field.name: as_json(child, encode) for field, child in zip(kind, values.flatten(), strict=True)
        }
        texts = json_objects(members, len(values), encode)
    elif kinds.is_map(kind):
        texts = _json_maps(values, encode)
    elif kinds.is_list(kind) or kinds.is_large_list(kind):
        texts = _put_together("[", _joined(values, as_json(values.flatten(), encode)), "]")
    elif kinds.is_floating(kind):
        finite = pc.is_finite(values)
        numbers = pc.if_else(finite, values, None).to_pylist()
        plain = pa.array(json.dumps(numbers)[1:-1].split(", ") if numbers else [], TEXT)
        texts = pc.if_else(
            finite, plain, _put_together('"', pa.array(map(str, values.to_pylist()), TEXT), '"')
        )
    elif kinds.is_boolean(kind) or kinds.is_integer(kind) or kinds.is_decimal(kind) or kinds.is_null(kind):
        texts = values.cast(TEXT)
    else:
        distinct = as_text(values).dictionary_encode()
        texts = pa.array(map(encode, distinct.dictionary.to_pylist()), TEXT).take(distinct.indices)
    return pc.if_else(values.is_valid(), texts, "null")


def as_text(values: pa.Array) -> pa.Array:
    """Text of values that are neither numbers nor nested: large_string[n], null where the value is null."""
    kind = values.type
    if kinds.is_timestamp(kind):
        texts = values.cast(pa.timestamp("us"), safe=False).cast(TEXT)
        for written, wanted in ((" ", "T"), (".000000", "")):
            texts = pc.replace_substring(texts, written, wanted)
        return _put_together(texts, "Z")
    if kinds.is_binary(kind) or kinds.is_large_binary(kind) or kinds.is_binary_view(kind):
        given = values.to_pylist()
        texts = [None if value is None else value.decode("utf-8", "backslashreplace") for value in given]
        return pa.array(texts, TEXT)
    if is_text(kind) or kinds.is_integer(kind) or kinds.is_date(kind):
        return values.cast(TEXT)
    return pa.array([None if value is None else str(value) for value in values.to_pylist()], TEXT)


def as_cells(values: pa.Array) -> list[Any]:
    """The values as cells: None, numbers and booleans as they are, nested values as JSON, others as text."""
    kind = values.type
    if kinds.is_nested(kind):
        return pc.if_else(values.is_valid(), as_json(values), None).to_pylist()  # type: ignore[no-any-return]
    if kinds.is_boolean(kind) or kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_decimal(kind):
        return values.to_pylist()  # type: ignore[no-any-return]
    return as_text(values).to_pylist()  # type: ignore[no-any-return]


def _json_maps(values: pa.Array, encode: Encode) -> pa.Array:
    entry = pa.struct([("key", values.type.key_type), ("value", values.type.item_type)])
    lists = values.cast(pa.list_(entry))
    keys, items = lists.flatten().flatten()
    members = _put_together(as_json(as_text(keys), encode), ": ", as_json(items, encode))
    return _put_together("{", _joined(lists, members), "}")


def _joined(lists: pa.Array, texts: pa.Array) -> pa.Array:
    """The texts of each list's elements, joined by commas: large_string[n]."""
    lengths = pc.list_value_length(lists).fill_null(0)
    offsets = np.concatenate([[0], np.cumsum(lengths.to_numpy(zero_copy_only=False), dtype=np.int64)])
    return pc.binary_join(pa.LargeListArray.from_arrays(pa.array(offsets), texts), pa.scalar(", ", TEXT))


def _put_together(*parts: pa.Array | pa.Scalar | str) -> pa.Array:
    """The texts of each row's parts, joined without a separator; null where a part is null."""
    return pc.binary_join_element_wise(
        *(pa.scalar(part, TEXT) if isinstance(part, str) else part for part in parts), pa.scalar("", TEXT)
    )
