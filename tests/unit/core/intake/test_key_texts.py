"""The text of keys, and their buckets."""

from __future__ import annotations

import datetime
import json
import zlib
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_pace.core.intake.pack import key_texts
from spark_pace.core.ranks import buckets_of

STEADY = settings(deadline=None, derandomize=True, database=None)
TEXTS = st.text(st.characters(codec="utf-8") | st.sampled_from('"\\\n\x00\x1f\x7f\u2028é'), max_size=6)
VALUES = {
    pa.string(): TEXTS,
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.int32(): st.integers(-(2**31), 2**31 - 1),
    pa.bool_(): st.booleans(),
    pa.float64(): st.floats(),
}


def texts_of(name: str, values: list[Any], kind: pa.DataType | None = None) -> list[str]:
    return key_texts([name], [pa.array(values, kind)]).to_pylist()  # type: ignore[no-any-return]


def test_a_key_is_the_compact_json_object_of_its_columns() -> None:
    columns = [pa.array(["Ä-1"]), pa.array([2])]
    assert key_texts(["plate", "lane"], columns).to_pylist() == ['{"plate":"Ä-1","lane":2}']


@pytest.mark.parametrize("kind", VALUES, ids=str)
@STEADY
@given(st.data())
def test_a_key_is_what_json_makes_of_its_value(kind: pa.DataType, data: st.DataObject) -> None:
    values = data.draw(st.lists(st.none() | VALUES[kind], max_size=8))
    name = data.draw(TEXTS)
    plain = [value + 0.0 if isinstance(value, float) else value for value in values]
    told = [json.dumps({name: value}, ensure_ascii=False, separators=(",", ":")) for value in plain]
    assert texts_of(name, values, kind) == told


def test_times_and_dates_are_iso_8601() -> None:
    columns = [
        pa.array([datetime.datetime(2013, 1, 1, 5, 17), None]),
        pa.array([datetime.date(2013, 1, 2), datetime.date(2013, 1, 2)]),
    ]
    assert key_texts(["t", "d"], columns).to_pylist() == [
        '{"t":"2013-01-01T05:17:00","d":"2013-01-02"}',
        '{"t":null,"d":"2013-01-02"}',
    ]


def test_null_is_a_key_like_others() -> None:
    assert texts_of("x", [1, None, 1, None]) == ['{"x":1}', '{"x":null}', '{"x":1}', '{"x":null}']


def test_minus_zero_is_the_key_zero() -> None:
    assert set(texts_of("x", [0.0, -0.0])) == {'{"x":0.0}'}


def test_every_combination_of_several_columns_is_its_own_key() -> None:
    texts = key_texts(["x", "y"], [pa.array(["a", "a", "b", "b"]), pa.array([1, 2, 1, 1])])
    assert texts.to_pylist() == ['{"x":"a","y":1}', '{"x":"a","y":2}', '{"x":"b","y":1}', '{"x":"b","y":1}']
    assert len(texts.dictionary) == 3


def test_no_rows_have_no_keys() -> None:
    assert texts_of("x", [], pa.string()) == []


@STEADY
@given(st.lists(TEXTS | st.integers(200, 300).map("é".__mul__)), st.integers(1, 7), st.integers(0, 3))
def test_the_bucket_of_a_key_is_its_checksum_s(texts: list[str], buckets: int, skipped: int) -> None:
    told = [zlib.crc32(text.encode()) % buckets for text in texts[skipped:]]
    assert buckets_of(pa.array(texts, pa.string())[skipped:], buckets).tolist() == told
